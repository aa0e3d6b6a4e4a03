//! Suggestions for Java: a method in the polluter's test class that puts the polluted state back after each
//! of its tests.

use crate::edit::Edit;
use crate::state::Piece;

/// A method that puts pieces back; `None` if there is no way to write one for them, or if it is not plain
/// which class it belongs to.
pub fn put_back(pieces: &[&Piece], source: &str) -> Option<Edit> {
    let keepers: Vec<Keeper> = pieces.iter().copied().map(keeper).collect::<Option<_>>()?;
    let method = format!("putBack{}", name_for(pieces.first()?));
    let mut ends = source.lines().enumerate();
    let mut ends = ends.by_ref().filter(|(_, line)| line.trim_end() == "}");
    let (at, _) = ends.next()?;
    if ends.next().is_some() || source.contains(&method) {
        return None;
    }
    let mut lines = Vec::new();
    for field in keepers.iter().filter_map(|keeper| keeper.field.as_ref()) {
        lines.extend([String::new(), format!("    {field}")]);
    }
    lines.extend([
        String::new(),
        format!("    @{}", annotation(source)?),
        format!("    public void {method}() {{"),
    ]);
    let statements = keepers.iter().map(|keeper| &keeper.statement);
    lines.extend(statements.map(|statement| format!("        {statement}")));
    lines.push("    }".to_owned());
    Some(Edit {
        at,
        removed: 0,
        lines,
    })
}

/// The work of such a method for one piece.
struct Keeper {
    /// A field that remembers what it was before the test.
    field: Option<String>,
    statement: String,
}

fn keeper(piece: &Piece) -> Option<Keeper> {
    // A class inside another one is written with a dot.
    let path = piece.path.replace('$', ".");
    let before = piece.before.as_deref();
    let mut field = None;
    let statement = match (piece.kind.as_str(), before) {
        ("system property", None) => format!("System.clearProperty(\"{}\");", plain(&piece.path)?),
        ("system property", Some(before)) => {
            let name = plain(&piece.path)?;
            format!("System.setProperty(\"{name}\", {});", literal(before)?)
        }
        ("static field", Some(before)) => format!("{path} = {};", literal(before)?),
        ("thread local", None) => format!("{path}.remove();"),
        ("contents", Some("[]")) => format!("{path}.clear();"),
        ("contents", Some(before)) => {
            // An atomic value has one; for anything else this does not compile.
            let one = before.strip_prefix('[')?.strip_suffix(']')?;
            format!("{path}.set({});", literal(one)?)
        }
        ("calls of the mock", _) => format!("org.mockito.Mockito.clearInvocations({path});"),
        ("file", None) if piece.after.as_deref() != Some("a folder") => {
            format!("new java.io.File(\"{}\").delete();", plain(&piece.path)?)
        }
        ("default", _) => {
            let class = match piece.path.as_str() {
                "locale" => "java.util.Locale",
                _ => "java.util.TimeZone",
            };
            field = Some(format!(
                "private final {class} before = {class}.getDefault();"
            ));
            format!("{class}.setDefault(before);")
        }
        (_, _) => return None,
    };
    Some(Keeper { field, statement })
}

/// A value that is written in Java as it is shown.
fn literal(shown: &str) -> Option<&str> {
    let is_known = matches!(shown, "null" | "true" | "false") || shown.parse::<f64>().is_ok();
    let text = shown
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    (is_known || text.and_then(plain).is_some()).then_some(shown)
}

/// A text that stands between quotes as it is, and was not cut.
fn plain(text: &str) -> Option<&str> {
    let is_odd = |letter: char| letter.is_control() || matches!(letter, '"' | '\\' | '…');
    (!text.contains(is_odd)).then_some(text)
}

/// The annotation of a method that runs after each test.
fn annotation(source: &str) -> Option<&'static str> {
    if source.contains("org.junit.jupiter.") {
        Some("org.junit.jupiter.api.AfterEach")
    } else if source.contains("org.junit.") {
        Some("org.junit.After")
    } else {
        None
    }
}

/// The last word of a piece's path, as a part of a name.
fn name_for(piece: &Piece) -> String {
    let mut words = piece.path.split(|letter: char| !letter.is_alphanumeric());
    let word = words.rfind(|word| !word.is_empty());
    let mut letters = word.unwrap_or("State").chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;

    const SOURCE: &str = "package shop;\n\nimport org.junit.Test;\n\npublic class CartTest {\n    @Test\n    \
                          public void total() {\n    }\n}\n";

    fn piece(kind: &str, path: &str, before: Option<&str>) -> Piece {
        Piece {
            key: path.to_owned(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: Some("something".to_owned()),
            owner: None,
            is_mock: false,
            is_restorable: true,
            ends: Vec::new(),
        }
    }

    fn statement(kind: &str, path: &str, before: Option<&str>) -> Option<String> {
        keeper(&piece(kind, path, before)).map(|keeper| keeper.statement)
    }

    #[test]
    fn the_method_stands_at_the_end_of_the_class() {
        let field = piece("static field", "shop.Shop.currency", Some("\"eur\""));
        let edit = put_back(&[&field], SOURCE).unwrap();
        let expected = SOURCE.replace(
            "    }\n}\n",
            "    }\n\n    @org.junit.After\n    public void putBackCurrency() {\n        \
             shop.Shop.currency = \"eur\";\n    }\n}\n",
        );
        assert_eq!(apply(SOURCE, &edit), expected);
        let jupiter = SOURCE.replace("org.junit.Test", "org.junit.jupiter.api.Test");
        let edit = put_back(&[&field], &jupiter).unwrap();
        assert!(apply(&jupiter, &edit).contains("@org.junit.jupiter.api.AfterEach\n"));
        let zone = piece("default", "time zone", Some("\"UTC\""));
        let text = apply(SOURCE, &put_back(&[&zone], SOURCE).unwrap());
        assert!(text.contains(
            "private final java.util.TimeZone before = java.util.TimeZone.getDefault();"
        ));
    }

    #[test]
    fn each_kind_of_piece_is_put_back_in_its_own_way() {
        let told = |kind, path, before| statement(kind, path, before).unwrap();
        assert_eq!(
            told("system property", "a.b", None),
            "System.clearProperty(\"a.b\");"
        );
        assert_eq!(
            told("system property", "a", Some("\"x\"")),
            "System.setProperty(\"a\", \"x\");"
        );
        assert_eq!(told("static field", "s.A$B.n", Some("0")), "s.A.B.n = 0;");
        assert_eq!(
            told("contents", "s.A.LIST", Some("[]")),
            "s.A.LIST.clear();"
        );
        assert_eq!(
            told("contents", "s.A.SOLD", Some("[0]")),
            "s.A.SOLD.set(0);"
        );
        assert_eq!(told("thread local", "s.A.USER", None), "s.A.USER.remove();");
        assert_eq!(
            told("file", "a.txt", None),
            "new java.io.File(\"a.txt\").delete();"
        );
    }

    #[test]
    fn what_cannot_be_written_down_has_no_method() {
        assert_eq!(
            statement("static field", "s.A.b", Some("a shop.Cart")),
            None
        );
        assert_eq!(statement("static field", "s.A.b", Some("\"cut…\"")), None);
        assert_eq!(statement("contents", "s.A.b", Some("[\"a\", 1]")), None);
        assert_eq!(statement("field", "s.A.b.c", Some("1")), None);
        let field = piece("static field", "s.A.b", Some("1"));
        let two = format!("{SOURCE}\nclass Other {{\n}}\n");
        assert_eq!(put_back(&[&field], &two), None, "which of two classes?");
        assert_eq!(
            put_back(&[&field], "class Old extends TestCase {\n}\n"),
            None
        );
    }
}
