//! A resource that a test opens is closed when the test ends.

use super::block::{Function, assignment, is_whole};
use crate::edit::Edit;

/// The ends of the names of calls whose results `with` can close.
const BY_WITH: [&str; 8] = [
    "open",
    "socket",
    "create_server",
    "create_connection",
    "HTTPServer",
    "TCPServer",
    "TemporaryFile",
    "ZipFile",
];

/// The kinds of state that closing something can put back.
pub const KINDS: [&str; 3] = ["descriptor", "port", "process"];

/// Edits that each close one of the things that a test opens, the likeliest first: the one of this line
/// (from 0) if it is known, then by what is known about what opens them.
pub fn close_after(source: &str, test: &str, line: Option<usize>) -> Vec<Edit> {
    let Some(function) = Function::named(source, test) else {
        return Vec::new();
    };
    let mut all: Vec<(usize, Edit)> = function
        .body()
        .filter_map(|(at, text)| {
            let (rank, opened) = opened(text)?;
            let rank = if line == Some(at) { 0 } else { rank };
            Some((rank, surround(&function, at, opened)?))
        })
        .collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, edit)| edit).collect()
}

/// The way to close what was opened.
enum Opened {
    /// `with` this.
    With(String),
    /// These lines, in a `finally`.
    Finally(Vec<String>),
}

/// What a statement opens, and how sure that is: 0 is the surest.
fn opened(statement: &str) -> Option<(usize, Opened)> {
    let statement = statement.trim();
    if let Some(inside) = statement.strip_prefix("os.dup2(") {
        let inside = inside.strip_suffix(')').filter(|inside| is_whole(inside))?;
        let number = inside.split(',').nth(1)?.trim();
        return Some((1, Opened::Finally(vec![format!("os.close({number})")])));
    }
    let (name, value) = assignment(statement)?;
    let (maker, _) = value.split_once('(')?;
    if !value.ends_with(')') || maker.contains(' ') {
        return None;
    }
    let last = maker.rsplit('.').next().unwrap_or(maker);
    let at_last = |lines: &[String]| Opened::Finally(lines.to_vec());
    Some(match last {
        "open" if maker == "os.open" => (1, at_last(&[format!("os.close({name})")])),
        "Popen" => (
            1,
            at_last(&[format!("{name}.kill()"), format!("{name}.wait()")]),
        ),
        _ if BY_WITH.contains(&last) => (1, Opened::With(format!("with {value} as {name}:"))),
        _ => (2, at_last(&[format!("{name}.close()")])),
    })
}

/// The rest of the block after a line within `with`, or followed by what must be done at last.
fn surround(function: &Function<'_>, line: usize, opened: Opened) -> Option<Edit> {
    let end = function.block_end(line);
    let rest: Vec<&str> = (line + 1..end).map(|at| function.line(at)).collect();
    // A text of several lines must not be moved.
    if rest.is_empty()
        || rest
            .iter()
            .any(|text| text.contains("\"\"\"") || text.contains("'''"))
    {
        return None;
    }
    let text = function.line(line);
    let margin = &text[..super::block::indent_of(text)];
    let inner = rest.iter().map(|text| match text.trim() {
        "" => String::new(),
        _ => format!("    {text}"),
    });
    let (at, first) = match &opened {
        Opened::With(with) => (line, format!("{margin}{with}")),
        Opened::Finally(_) => (line + 1, format!("{margin}try:")),
    };
    let mut lines = vec![first];
    lines.extend(inner);
    if let Opened::Finally(closing) = opened {
        lines.push(format!("{margin}finally:"));
        lines.extend(closing.iter().map(|one| format!("{margin}    {one}")));
    }
    Some(Edit {
        at,
        removed: end - at,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;

    fn closed(source: &str, line: Option<usize>) -> Vec<String> {
        let edits = close_after(source, "test_one", line);
        edits.iter().map(|edit| apply(source, edit)).collect()
    }

    #[test]
    fn a_server_is_closed_by_with() {
        let source = "import socket\n\n\ndef test_one():\n    server = socket.socket()\n    server.listen()\n\n    assert server\n\n\ndef test_two():\n    pass\n";
        let wanted = "import socket\n\n\ndef test_one():\n    with socket.socket() as server:\n        server.listen()\n\n        assert server\n\n\ndef test_two():\n    pass\n";
        assert_eq!(closed(source, None), [wanted]);
    }

    #[test]
    fn a_child_is_ended_and_a_descriptor_closed_at_last() {
        let source = "class TestIt:\n    def test_one(self):\n        child = subprocess.Popen(['cat'])\n        assert child\n";
        let wanted = "class TestIt:\n    def test_one(self):\n        child = subprocess.Popen(['cat'])\n        try:\n            assert child\n        finally:\n            child.kill()\n            child.wait()\n";
        assert_eq!(closed(source, None), [wanted]);
        let source = "def test_one():\n    os.dup2(here, 77)\n    assert True\n";
        assert!(closed(source, None)[0].contains("    finally:\n        os.close(77)\n"));
    }

    #[test]
    fn the_line_that_is_known_comes_first_and_then_what_is_known_to_open() {
        let source = "def test_one():\n    shop = Shop('a')\n    log = open('b')\n    till = Till()\n    shop.run(log, till)\n";
        let firsts = |line: Option<usize>| -> Vec<usize> {
            let edits = close_after(source, "test_one", line);
            edits.iter().map(|edit| edit.at).collect()
        };
        assert_eq!(firsts(None), [2, 2, 4]);
        assert_eq!(firsts(Some(3)), [4, 2, 2]);
    }

    #[test]
    fn what_cannot_be_moved_is_left_alone() {
        let text = "def test_one():\n    log = open('b')\n    log.write('''a\nb''')\n";
        let last = "def test_one():\n    log = open('b')\n";
        let several = "def test_one():\n    log = open(\n        'b')\n    assert log\n";
        let twice =
            "def test_one():\n    log = open('b')\n    assert log\ndef test_one():\n    pass\n";
        for source in [text, last, several, twice, ""] {
            assert_eq!(closed(source, None), [""; 0], "{source}");
        }
    }
}
