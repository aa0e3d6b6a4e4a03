//! JUnit's ids, and the methods of a Java source: `shop.CartTest$Nested#total(int)[1]`.

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;

use crate::framework::project::Place;

/// Words before which no type stands: what follows them is no declaration.
const NO_TYPES: [&str; 6] = ["new", "return", "throw", "else", "assert", "case"];

/// The place of a test, if its class is in a file of its name in one of the folders of sources.
pub(crate) fn place_of(test: &TestId, folders: &[String]) -> Option<Place> {
    let (class, method) = split(test)?;
    let top = class.split('$').next().unwrap_or(class).replace('.', "/");
    let mut files = folders
        .iter()
        .map(|folder| Utf8Path::new(folder).join(format!("{top}.java")));
    Some(Place {
        source: files.find(|file| file.is_file())?,
        function: bare(method).to_owned(),
    })
}

/// The id of the same test in another source and with another method's name.
pub(crate) fn id_at(test: &TestId, folders: &[String], place: &Place) -> Option<TestId> {
    let (class, method) = split(test)?;
    let inside = |folder: &String| Some(place.source.strip_prefix(folder).ok()?.to_owned());
    let inside: Utf8PathBuf = folders.iter().find_map(inside)?;
    let top = inside.as_str().strip_suffix(".java")?.replace('/', ".");
    let nested = class.find('$').map_or("", |at| &class[at..]);
    let rest = &method[bare(method).len()..];
    let name = format!("{top}{nested}#{}{rest}", place.function);
    Some(TestId::copy_of(&name, test.copy()))
}

/// The name, among the frames of `new`, of a method among the frames of `old`, if it is one of the test's own source:
/// a frame has the whole name.
pub(crate) fn in_frames(frame: &str, old: &TestId, new: &TestId) -> Option<String> {
    let ((old_class, old_method), (class, method)) = (split(old)?, split(new)?);
    if frame == format!("{old_class}.{}", bare(old_method)) {
        return Some(format!("{class}.{}", bare(method)));
    }
    let top = |class: &str| class.split('$').next().unwrap_or(class).to_owned();
    let rest = frame.strip_prefix(&top(old_class))?;
    let is_whole = rest.starts_with(['.', '$']) && top(old_class) != top(class);
    is_whole.then(|| format!("{}{rest}", top(class)))
}

/// The methods of a source, each with its text without its own name, and without white space and comments.
pub(crate) fn functions(source: &str) -> Vec<(String, String)> {
    let words = words(source);
    let mut found = Vec::new();
    for at in 1..words.len() {
        let (before, name) = (words[at - 1], words[at]);
        let is_typed =
            is_name(before) && !NO_TYPES.contains(&before) || matches!(before, ">" | "]");
        if !is_name(name) || !is_typed || words.get(at + 1) != Some(&"(") {
            continue;
        }
        let Some(head) = closing(&words, at + 1) else {
            continue;
        };
        let body = words[head..]
            .iter()
            .position(|word| matches!(*word, "{" | ";" | "="));
        let Some(body) = body
            .map(|body| head + body)
            .filter(|body| words[*body] == "{")
        else {
            continue;
        };
        if let Some(end) = closing(&words, body) {
            found.push((name.to_owned(), words[at + 1..=end].join(" ")));
        }
    }
    found
}

/// The class and what stands behind it.
fn split(test: &TestId) -> Option<(&str, &str)> {
    test.name().split_once('#')
}

/// A method's name without its parameters.
fn bare(method: &str) -> &str {
    method.split(['(', '[']).next().unwrap_or(method)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|one: char| one.is_alphabetic() || one == '_' || one == '$')
}

/// The place where the bracket at a place is closed.
fn closing(words: &[&str], at: usize) -> Option<usize> {
    let (opens, closes) = if words[at] == "(" {
        ("(", ")")
    } else {
        ("{", "}")
    };
    let mut depth = 0_usize;
    for (place, word) in words.iter().enumerate().skip(at) {
        if *word == opens {
            depth += 1;
        } else if *word == closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(place);
            }
        }
    }
    None
}

/// Names and numbers, texts in quotes, and single signs; no comments.
fn words(source: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |at| at + 4)
        } else if rest.starts_with("\"\"\"") {
            quoted(rest, "\"\"\"")
        } else if first == '"' || first == '\'' {
            quoted(rest, &rest[..1])
        } else if first.is_alphanumeric() || first == '_' || first == '$' {
            let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
            rest.find(|one| !is_part(one)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, more) = rest.split_at(length);
        if !word.starts_with("//") && !word.starts_with("/*") {
            words.push(word);
        }
        rest = more.trim_start();
    }
    words
}

/// The length of a text in quotes, with them.
fn quoted(text: &str, quote: &str) -> usize {
    let mut at = quote.len();
    while at < text.len() {
        if text[at..].starts_with('\\') {
            at += 1;
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        } else if text[at..].starts_with(quote) {
            return at + quote.len();
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_of_a_source_are_found_with_their_bodies() {
        let source = r#"
            class CartTest {
                // void commented() { }
                @Test(expected = Bad.class) public void total() throws Bad, Worse {
                    if (price("}") == '}') { new Cart(1) { int more() { return 2; } }; }
                }
                private <T extends Comparable<T>> List<T> sorted(List<T> all) { return all; }
                abstract int none();
                int[] many() { return another(3); }
            }"#;
        let found = functions(source);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["total", "more", "sorted", "many"]);
        assert_eq!(found[3].1, "( ) { return another ( 3 ) ; }");
    }

    #[test]
    fn an_id_keeps_nested_class_types_and_parameters_under_another_name() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(scratch.path()).unwrap();
        std::fs::create_dir(folder.join("shop")).unwrap();
        std::fs::write(folder.join("shop/CartTest.java"), "").unwrap();
        let folders = [folder.to_string()];
        let test = TestId::new("shop.CartTest$Nested#total(int)[1]");
        let place = place_of(&test, &folders).unwrap();
        assert_eq!(place.source, folder.join("shop/CartTest.java"));
        assert_eq!(place.function, "total");
        let old = Place {
            source: folder.join("old/BasketTest.java"),
            function: "sum".to_owned(),
        };
        let id = id_at(&test, &folders, &old).unwrap();
        assert_eq!(id.name(), "old.BasketTest$Nested#sum(int)[1]");
        let now = |frame: &str| in_frames(frame, &id, &test);
        assert_eq!(
            now("old.BasketTest$Nested.sum").as_deref(),
            Some("shop.CartTest$Nested.total")
        );
        assert_eq!(
            now("old.BasketTest.helper").as_deref(),
            Some("shop.CartTest.helper")
        );
        assert_eq!(now("old.BasketTests.helper"), None);
        assert_eq!(now("shop.Cart.total"), None);
    }
}
