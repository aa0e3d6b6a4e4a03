//! Suggestions: a fixture in the polluter's test file that puts the polluted state back; a copy in place of
//! what is changed; the end of what is left open.
//!
//! Whether one helps is for the driver to see: it applies the diff to a copy and runs the tests. What has
//! not been seen to help is not shown.

mod block;
pub mod closing;
pub mod copying;
pub mod java;

use crate::edit::Edit;
use crate::state::Piece;

/// A change of one file that has been seen to help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The file, from the root of the work tree.
    pub file: String,
    /// The whole change, as `git apply` takes it.
    pub diff: String,
}

/// The work of a fixture for one piece of state.
struct Keeper {
    /// The modules that it needs.
    imports: Vec<String>,
    /// Its body, each line without the indentation of the function.
    body: Vec<String>,
    /// Whether it uses pytest's own fixture `monkeypatch`.
    takes_monkeypatch: bool,
}

/// The names that a test file uses for things at a path.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The file's own name as a module.
    pub own: &'a str,
    /// The module at the beginning of a path.
    pub module_of: &'a dyn Fn(&str) -> Option<String>,
}

impl Names<'_> {
    /// The import that a path needs, and the path as it is then written.
    fn of(self, path: &str) -> Option<(Option<String>, String)> {
        let module = (self.module_of)(path)?;
        if module != self.own {
            return Some((Some(format!("import {module}")), path.to_owned()));
        }
        let inside = path.strip_prefix(&format!("{module}."))?;
        Some((None, inside.to_owned()))
    }
}

/// A fixture in a test file that puts pieces back after each test of the file; `None` if there is no way
/// to write one for them.
pub fn suggest(pieces: &[&Piece], source: &str, names: Names<'_>) -> Option<Edit> {
    let keepers: Vec<Keeper> = pieces
        .iter()
        .map(|piece| keeper(piece, names))
        .collect::<Option<_>>()?;
    let has_yield = |keeper: &&Keeper| keeper.body.iter().any(|line| line.contains("yield"));
    if keepers.iter().filter(has_yield).count() > 1 {
        return None; // A fixture yields once.
    }
    let mut imports: Vec<String> = vec!["import pytest".to_owned()];
    imports.extend(keepers.iter().flat_map(|keeper| keeper.imports.clone()));
    imports.sort();
    imports.dedup();
    imports.retain(|import| !source.lines().any(|line| brings(line, import)));
    let takes_monkeypatch = keepers.iter().any(|keeper| keeper.takes_monkeypatch);
    let parameter = if takes_monkeypatch { "monkeypatch" } else { "" };
    let paths: Vec<&str> = pieces.iter().map(|piece| piece.path.as_str()).collect();
    let mut lines = imports;
    if !lines.is_empty() {
        lines.extend([String::new(), String::new()]);
    }
    lines.push("@pytest.fixture(autouse=True)".to_owned());
    lines.push(format!("def put_back_{}({parameter}):", name_for(pieces)));
    lines.push(format!(
        "    \"\"\"Puts back {}.\"\"\"",
        paths.join(" and ")
    ));
    // The one that yields goes last: what is above it runs before the test.
    let (last, first): (Vec<&Keeper>, Vec<&Keeper>) = keepers.iter().partition(has_yield);
    for keeper in first.into_iter().chain(last) {
        lines.extend(keeper.body.iter().map(|line| format!("    {line}")));
    }
    lines.extend([String::new(), String::new()]);
    let at = place_for(source);
    let before = source.lines().take(at).last();
    if before.is_some_and(|line| !line.trim().is_empty()) && lines[0].starts_with('@') {
        lines.splice(0..0, [String::new(), String::new()]);
    }
    Some(Edit {
        at,
        removed: 0,
        lines,
    })
}

/// Whether a line of a file does what an import would.
fn brings(line: &str, import: &str) -> bool {
    let line = line.trim_end();
    let modules = |line: &str| {
        let modules = line.strip_prefix("import ").unwrap_or_default();
        let modules = modules.split(',').map(|module| module.trim().to_owned());
        modules
            .filter(|module| !module.is_empty())
            .collect::<Vec<String>>()
    };
    let wanted = modules(import);
    line == import || (!wanted.is_empty() && wanted.iter().all(|one| modules(line).contains(one)))
}

/// The line where the block goes: before the first definition, so that imports stay together.
fn place_for(source: &str) -> usize {
    let starts = ["def ", "class ", "@", "async def "];
    let is_definition = |line: &str| starts.iter().any(|start| line.starts_with(start));
    let lines: Vec<&str> = source.lines().collect();
    lines
        .iter()
        .position(|line| is_definition(line))
        .unwrap_or(lines.len())
}

fn name_for(pieces: &[&Piece]) -> String {
    let path = pieces.first().map_or("state", |piece| piece.path.as_str());
    let words: String = path
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    let words: Vec<&str> = words.split('_').filter(|word| !word.is_empty()).collect();
    let from = words.len().saturating_sub(3);
    words[from..].join("_")
}

fn keeper(piece: &Piece, names: Names<'_>) -> Option<Keeper> {
    let path = piece.path.as_str();
    let was_there = piece.before.is_some();
    match piece.kind.as_str() {
        "environment" => {
            let name = key_of(path)?;
            Some(match &piece.before {
                Some(before) => patching(&[], format!("monkeypatch.setenv({name}, {before})")),
                None => yielding(
                    &["import os"],
                    &[],
                    &[&format!("os.environ.pop({name}, None)")],
                ),
            })
        }
        "module" => {
            let name = key_of(path)?;
            let before = format!("monkeypatch.setitem(sys.modules, {name}, sys.modules[{name}])");
            let after = format!("sys.modules.pop({name}, None)");
            Some(if was_there {
                patching(&["import sys"], before)
            } else {
                yielding(&["import sys"], &[], &[&after])
            })
        }
        "global" | "attribute" | "replaced" => attribute(path, was_there, names),
        "item" => item(piece, names),
        "cache" => {
            let (import, path) = names.of(path)?;
            let after = format!("{path}.cache_clear()");
            Some(yielding(&as_words(import.as_ref()), &[], &[&after]))
        }
        "random" if path != "random" && path != "numpy.random" => {
            let (import, path) = names.of(path)?;
            let before = format!("before = {path}.getstate()");
            let after = format!("{path}.setstate(before)");
            Some(yielding(&as_words(import.as_ref()), &[&before], &[&after]))
        }
        "file" => file(piece),
        kind => setting(kind, path),
    }
}

/// A setting of the process or the interpreter.
fn setting(kind: &str, path: &str) -> Option<Keeper> {
    let keep = |module: &str, before: &str, after: &str| {
        let import = format!("import {module}");
        let before: Vec<&str> = before.lines().collect();
        Some(yielding(&[&import], &before, &[after]))
    };
    match kind {
        "folder" => Some(patching(
            &["import os"],
            "monkeypatch.chdir(os.getcwd())".to_owned(),
        )),
        "search-path" => {
            let line = "monkeypatch.setattr(sys, \"path\", list(sys.path))";
            Some(patching(&["import sys"], line.to_owned()))
        }
        "random" if path == "numpy.random" => keep(
            "numpy",
            "before = numpy.random.get_state()",
            "numpy.random.set_state(before)",
        ),
        "random" => keep(
            "random",
            "before = random.getstate()",
            "random.setstate(before)",
        ),
        "logging" => logging(path),
        "warnings" => Some(Keeper {
            imports: vec!["import warnings".to_owned()],
            body: vec![
                "with warnings.catch_warnings():".to_owned(),
                "    yield".to_owned(),
            ],
            takes_monkeypatch: false,
        }),
        "locale" => keep(
            "locale",
            "before = locale.setlocale(locale.LC_ALL)",
            "locale.setlocale(locale.LC_ALL, before)",
        ),
        // The variable TZ itself has a fixture of its own, or was put back already.
        "time-zone" => keep("time", "", "time.tzset()"),
        "process" if path == "umask" => keep(
            "os",
            "before = os.umask(0)\nos.umask(before)",
            "os.umask(before)",
        ),
        "signal" => {
            let name = path.strip_prefix("handler of ")?;
            let before = format!("before = signal.getsignal(signal.{name})");
            let after = format!("signal.signal(signal.{name}, before)");
            keep("signal", &before, &after)
        }
        _ => None,
    }
}

/// An attribute of a module, a class or an object.
fn attribute(path: &str, was_there: bool, names: Names<'_>) -> Option<Keeper> {
    let (import, path) = names.of(path)?;
    let (owner, name) = match path.rsplit_once('.') {
        Some((owner, name)) => (owner, name),
        None => ("sys.modules[__name__]", path.as_str()),
    };
    if !is_plain(&path) {
        return None;
    }
    let is_own = !path.contains('.');
    let mut imports = as_words(import.as_ref());
    if is_own {
        imports.push("import sys");
    }
    if was_there {
        let line = format!("monkeypatch.setattr({owner}, \"{name}\", {path})");
        return Some(patching(&imports, line));
    }
    let after = format!("vars({owner}).pop(\"{name}\", None)");
    Some(yielding(&imports, &[], &[&after]))
}

fn as_words(import: Option<&String>) -> Vec<&str> {
    import.into_iter().map(String::as_str).collect()
}

/// An item of a container, or all of it.
fn item(piece: &Piece, names: Names<'_>) -> Option<Keeper> {
    let (import, path) = names.of(&piece.path)?;
    let (imports, path) = (as_words(import.as_ref()), path.as_str());
    if let Some(key) = key_of(path) {
        let container = &path[..path.len() - key.len() - 2];
        let before = format!("monkeypatch.setitem({container}, {key}, {container}[{key}])");
        let after = format!("{container}.pop({key}, None)");
        return Some(if piece.before.is_some() {
            patching(&imports, before)
        } else {
            yielding(&imports, &[], &[&after])
        });
    }
    if !is_plain(path) {
        return None;
    }
    let before = piece.before.as_deref()?;
    let (saved, after) = if before.starts_with('[') {
        (
            format!("before = list({path})"),
            format!("{path}[:] = before"),
        )
    } else if before.starts_with('{') || before.starts_with("set(") {
        (
            format!("before = {path}.copy()"),
            format!("{path}.clear()\n{path}.update(before)"),
        )
    } else {
        (format!("before = {path}[:]"), format!("{path}[:] = before"))
    };
    let after: Vec<&str> = after.split('\n').collect();
    Some(yielding(&imports, &[&saved], &after))
}

fn logging(path: &str) -> Option<Keeper> {
    let (logger, what) = path.rsplit_once('.')?;
    let line = match what {
        "handlers" | "filters" => {
            format!("monkeypatch.setattr({logger}, \"{what}\", list({logger}.{what}))")
        }
        "level" => {
            let before = format!("before = {logger}.level");
            let after = format!("{logger}.setLevel(before)");
            return Some(yielding(&["import logging"], &[&before], &[&after]));
        }
        _ => format!("monkeypatch.setattr({logger}, \"{what}\", {logger}.{what})"),
    };
    Some(patching(&["import logging"], line))
}

fn file(piece: &Piece) -> Option<Keeper> {
    let path = piece.path.as_str();
    if path.starts_with('$') || path.contains('"') || path.contains('\\') {
        return None;
    }
    let import = "from pathlib import Path";
    if piece.before.is_some() {
        let before = format!("before = Path(\"{path}\").read_bytes()");
        let after = format!("Path(\"{path}\").write_bytes(before)");
        return Some(yielding(&[import], &[&before], &[&after]));
    }
    let is_folder = piece
        .after
        .as_deref()
        .is_some_and(|after| after.starts_with("a folder"));
    if is_folder {
        let after = format!("shutil.rmtree(\"{path}\", ignore_errors=True)");
        return Some(yielding(&["import shutil"], &[], &[&after]));
    }
    let test = format!("if Path(\"{path}\").exists():");
    let after = format!("    Path(\"{path}\").unlink()");
    Some(yielding(&[import], &[], &[&test, &after]))
}

fn patching(imports: &[&str], line: String) -> Keeper {
    Keeper {
        imports: imports.iter().map(ToString::to_string).collect(),
        body: vec![line],
        takes_monkeypatch: true,
    }
}

fn yielding(imports: &[&str], before: &[&str], after: &[&str]) -> Keeper {
    let lines = before.iter().chain(&["yield"]).chain(after);
    Keeper {
        imports: imports.iter().map(ToString::to_string).collect(),
        body: lines.map(ToString::to_string).collect(),
        takes_monkeypatch: false,
    }
}

/// The key at the end of a path, quoted as it stands there: `'eur'` of `shop.RATES['eur']`.
fn key_of(path: &str) -> Option<&str> {
    let inside = path.strip_suffix(']')?;
    let start = inside.rfind('[')?;
    let key = &inside[start + 1..];
    let is_number = !key.is_empty() && key.chars().all(|digit| digit.is_ascii_digit());
    let is_text = key.len() > 1 && key.starts_with('\'') && key.ends_with('\'');
    (is_text || is_number).then_some(key)
}

/// Whether Python would read a path as it stands.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_')
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
    };
    path.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{apply, to_diff};

    fn piece(kind: &str, path: &str, before: Option<&str>, after: Option<&str>) -> Piece {
        Piece {
            key: String::new(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            owner: None,
            is_mock: false,
            is_restorable: true,
            ends: Vec::new(),
        }
    }

    fn lines(piece: &Piece) -> Vec<String> {
        let names = Names {
            own: "test_cart",
            module_of: &|_| Some("shop.cart".to_owned()),
        };
        suggest(&[piece], "import pytest\nimport shop.cart\n", names)
            .map(|edit| edit.lines)
            .unwrap_or_default()
    }

    #[test]
    fn each_common_kind_of_state_has_a_fixture() {
        for (piece, wanted) in [
            (
                piece(
                    "environment",
                    "os.environ['HOME']",
                    Some("'/a'"),
                    Some("'/b'"),
                ),
                "monkeypatch.setenv('HOME', '/a')",
            ),
            (
                piece("environment", "os.environ['NEW']", None, Some("'1'")),
                "os.environ.pop('NEW', None)",
            ),
            (
                piece("global", "shop.cart.RATE", Some("1"), Some("2")),
                "monkeypatch.setattr(shop.cart, \"RATE\", shop.cart.RATE)",
            ),
            (
                piece("item", "shop.cart.CACHE['eur']", None, Some("1")),
                "shop.cart.CACHE.pop('eur', None)",
            ),
            (
                piece("item", "shop.cart.ITEMS", Some("[]"), Some("[1]")),
                "shop.cart.ITEMS[:] = before",
            ),
            (
                piece("cache", "shop.cart.load", Some("0"), Some("1")),
                "shop.cart.load.cache_clear()",
            ),
            (
                piece("time-zone", "time zone", Some("UTC/UTC"), Some("SHOP/SHOP")),
                "time.tzset()",
            ),
            (
                piece(
                    "signal",
                    "handler of SIGUSR1",
                    Some("0"),
                    Some("a function"),
                ),
                "signal.signal(signal.SIGUSR1, before)",
            ),
            (
                piece("process", "umask", Some("0o22"), Some("0o77")),
                "os.umask(before)",
            ),
            (
                piece("random", "numpy.random", Some("a"), Some("b")),
                "numpy.random.set_state(before)",
            ),
        ] {
            let lines = lines(&piece);
            assert!(
                lines.iter().any(|line| line.trim() == wanted),
                "{wanted}: {lines:#?}"
            );
        }
        assert!(lines(&piece("thread", "Thread-1", None, Some("alive"))).is_empty());
        let own = piece("global", "test_cart.LEFT", Some("1"), Some("2"));
        let names = Names {
            own: "test_cart",
            module_of: &|_| Some("test_cart".to_owned()),
        };
        let block = suggest(&[&own], "", names).unwrap().lines;
        let wanted = "    monkeypatch.setattr(sys.modules[__name__], \"LEFT\", LEFT)";
        assert!(block.iter().any(|line| line == wanted), "{block:#?}");
    }

    #[test]
    fn the_diff_adds_only_and_keeps_what_is_imported() {
        let source = "\"\"\"Tests.\"\"\"\nimport os\n\n\ndef test_one():\n    pass\n";
        let piece = piece("folder", "cwd", Some("'/a'"), Some("'/b'"));
        let names = Names {
            own: "test_one",
            module_of: &|_| None,
        };
        let edit = suggest(&[&piece], source, names).unwrap();
        let diff = to_diff("test_one.py", source, &edit);
        let expected = "\
--- a/test_one.py
+++ b/test_one.py
@@ -2,5 +2,13 @@
 import os
 
 
+import pytest
+
+
+@pytest.fixture(autouse=True)
+def put_back_cwd(monkeypatch):
+    \"\"\"Puts back cwd.\"\"\"
+    monkeypatch.chdir(os.getcwd())
+
+
 def test_one():
     pass
";
        // The last line of the block is one of the two blank lines between definitions.
        assert_eq!(diff, expected.replace(",13", ",14"));
        assert!(apply(source, &edit).contains("import os\n\n\nimport pytest\n"));
    }
}
