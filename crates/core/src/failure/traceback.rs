//! Frames out of the texts of frameworks: Python's own tracebacks, pytest's long and short ones, and Java's stacks.
//!
//! A runner should send the frames themselves if it can: a text is made for people. What cannot be read from it is
//! left out.

use crate::trial::Frame;

/// The facts that a text tells about a failure.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The frames of the project, the outermost first.
    pub(super) frames: Vec<Frame>,
    /// The kind of what was raised, if the text names it in a place of its own.
    pub(super) kind: Option<String>,
}

/// Between the traceback of an exception and that of one that was raised because of it, which is the one that counts.
const CHAINED: [&str; 2] = [
    "The above exception was the direct cause of",
    "During handling of the above exception, another exception",
];

/// Folders with the code of others.
const FOREIGN: [&str; 5] = [
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "/lib64/python",
    "<",
];

/// Packages of Java, of what runs tests, and of what tests are written with.
const FOREIGN_PACKAGES: [&str; 16] = [
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "kotlin.",
    "groovy.lang.",
    "org.codehaus.groovy.",
    "junit.",
    "org.junit.",
    "org.opentest4j.",
    "org.hamcrest.",
    "org.assertj.",
    "org.mockito.",
    "org.apache.maven.surefire.",
    "unflake.junit.",
];

/// Reads what a framework wrote about a failure.
pub(super) fn read(text: &str) -> Told {
    let mut java = read_java(text);
    if !java.is_empty() {
        java.reverse();
        return Told {
            frames: java,
            kind: None,
        };
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let is_chain = |line: &&str| CHAINED.iter().any(|words| line.contains(words));
    if let Some(at) = lines.iter().rposition(is_chain) {
        lines.drain(..=at);
    }
    let mut reader = PythonReader::default();
    for line in lines {
        reader.read(line);
    }
    reader
        .told
        .frames
        .retain(|frame| is_of_project(&frame.file));
    reader.told
}

fn is_of_project(file: &str) -> bool {
    let file = file.replace('\\', "/");
    !FOREIGN.iter().any(|part| match *part {
        "<" => file.starts_with('<'),
        part => file.contains(part),
    })
}

/// Reads the lines of a traceback, in any of the styles.
#[derive(Default)]
struct PythonReader {
    told: Told,
    /// Whether the next line is the source of the last frame.
    awaits_text: bool,
    /// The function that pytest names before it says where that is.
    function: Option<String>,
    source: Option<String>,
}

impl PythonReader {
    fn read(&mut self, line: &str) {
        let words = line.trim();
        if let Some(frame) = native_frame(words).or_else(|| short_frame(line)) {
            self.told.frames.push(frame);
            self.awaits_text = true;
            return;
        }
        if std::mem::take(&mut self.awaits_text) && line.starts_with(' ') {
            if let Some(last) = self.told.frames.last_mut() {
                words.clone_into(&mut last.text);
            }
            return;
        }
        if let Some(source) = line.strip_prefix('>').filter(|_| self.source.is_none()) {
            self.source = Some(source.trim().to_owned());
            // The failing line can be that of the definition itself, for a fixture that is missing.
            if self.function.is_none() {
                self.function = defined(source.trim());
            }
        } else if let Some((file, kind)) = place(line) {
            self.end_long(file, kind);
        } else if self.function.is_none() {
            // pytest takes the spaces before its first line away.
            self.function = defined(words);
        }
    }

    /// pytest says where the function is that it has shown, and if it is the last one, what was raised.
    fn end_long(&mut self, file: &str, kind: &str) {
        let (function, source) = (self.function.take(), self.source.take());
        if !kind.is_empty() {
            self.told.kind = Some(kind.to_owned());
        }
        let Some(text) = source else {
            return;
        };
        self.told.frames.push(Frame {
            file: file.to_owned(),
            function: function.unwrap_or_else(|| "<module>".to_owned()),
            text,
        });
    }
}

/// `File "shop/cart.py", line 5, in total`
fn native_frame(words: &str) -> Option<Frame> {
    let (file, rest) = words.strip_prefix("File \"")?.split_once("\", line ")?;
    let function = rest.split_once(" in ").map(|(_, function)| function.trim());
    Some(Frame {
        file: file.to_owned(),
        function: function.unwrap_or("<module>").to_owned(),
        text: String::new(),
    })
}

/// `shop/cart.py:5: in total`
fn short_frame(line: &str) -> Option<Frame> {
    let (start, function) = line.split_once(": in ")?;
    let (file, number) = start.rsplit_once(':')?;
    let is_place = !file.starts_with([' ', 'E', '>']) || file.starts_with("E/");
    let is_place = is_place && is_number(number) && !function.trim().contains(' ');
    is_place.then(|| Frame {
        file: file.to_owned(),
        function: function.trim().to_owned(),
        text: String::new(),
    })
}

/// `shop/cart.py:5: ValueError`, or without a kind: the file, and the kind.
fn place(line: &str) -> Option<(&str, &str)> {
    if line.starts_with([' ', '>']) || line.starts_with("E  ") {
        return None;
    }
    let (start, kind) = line.trim_end().rsplit_once(':')?;
    let (file, number) = start.rsplit_once(':')?;
    let kind = kind.trim();
    let is_kind = kind
        .chars()
        .all(|one| one.is_alphanumeric() || "._".contains(one));
    (is_number(number) && is_kind && !file.is_empty()).then_some((file, kind))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit())
}

/// The function that a line of source defines.
fn defined(source: &str) -> Option<String> {
    let rest = source.strip_prefix("async ").unwrap_or(source);
    let name = rest.strip_prefix("def ")?.split('(').next()?;
    Some(name.trim().to_owned())
}

/// The frames of the project in a stack of Java, the innermost first: those of the exception itself, not of its causes.
fn read_java(text: &str) -> Vec<Frame> {
    let mut found = Vec::new();
    let mut has_frames = false;
    for line in text.lines().map(str::trim) {
        if has_frames && (line.starts_with("Caused by:") || line.starts_with("Suppressed:")) {
            break;
        }
        let Some(frame) = java_frame(line) else {
            continue;
        };
        has_frames = true;
        let is_foreign = |package: &&str| frame.function.starts_with(*package);
        if !FOREIGN_PACKAGES.iter().any(is_foreign) {
            found.push(frame);
        }
    }
    found
}

/// `at app//shop.Cart.total(Cart.java:12)`
fn java_frame(line: &str) -> Option<Frame> {
    let (name, place) = line.strip_prefix("at ")?.split_once('(')?;
    let is_java = !name.contains(char::is_whitespace) && name.contains('.');
    let place = place.strip_suffix(')').filter(|_| is_java)?;
    // A class may come with its loader and its module.
    let name = name.rsplit('/').next().unwrap_or(name);
    Some(Frame {
        file: place.split(':').next().unwrap_or(place).to_owned(),
        function: name.to_owned(),
        text: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "\
cart = <shop.Cart object at 0x7f>

    @pytest.mark.slow
    def test_total(cart):
        cart.add(3)
>       cart.check(
            3)

tests/test_cart.py:12: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 
shop/cart.py:40: in check
    return self._check(total)
           ^^^^^^^^^^^^^^^^^^
/venv/lib/python3.11/site-packages/attr/core.py:7: in call
    return own()
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 

self = <shop.Cart object at 0x7f>

    def _check(self, total):
        def inner():
            pass
>       raise decimal.InvalidOperation(\"bad: 3\")
E       decimal.InvalidOperation: bad: 3

shop/cart.py:44: InvalidOperation";

    const SHORT: &str = "\
tests/test_cart.py:12: in test_total
    cart.check(
shop/cart.py:40: in check
    return self._check(total)
           ^^^^^^^^^^^^^^^^^^
/venv/lib/python3.11/site-packages/attr/core.py:7: in call
    return own()
shop/cart.py:44: in _check
    raise decimal.InvalidOperation(\"bad: 3\")
E   decimal.InvalidOperation: bad: 3";

    const NATIVE: &str = "\
Traceback (most recent call last):
  File \"/src/shop/other.py\", line 1, in other
    raise KeyError(1)
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/src/tests/test_cart.py\", line 12, in test_total
    cart.check(
  File \"/src/shop/cart.py\", line 40, in check
    return self._check(total)
           ^^^^^^^^^^^^^^^^^^
  File \"/usr/lib/python3.11/functools.py\", line 7, in call
    return own()
  File \"/src/shop/cart.py\", line 44, in _check
    raise decimal.InvalidOperation(\"bad: 3\")
decimal.InvalidOperation: bad: 3";

    #[test]
    fn the_styles_of_pytest_and_python_tell_the_same_frames() {
        let expected = [
            ("test_total", "cart.check("),
            ("check", "return self._check(total)"),
            ("_check", "raise decimal.InvalidOperation(\"bad: 3\")"),
        ];
        for text in [LONG, SHORT, NATIVE] {
            let told = read(text);
            let frames: Vec<(&str, &str)> = told
                .frames
                .iter()
                .map(|frame| (frame.function.as_str(), frame.text.as_str()))
                .collect();
            assert_eq!(frames, expected, "{text}");
        }
        assert_eq!(read(LONG).kind.as_deref(), Some("InvalidOperation"));
        assert_eq!(read(SHORT).kind, None);
    }

    #[test]
    fn the_first_function_is_known_although_pytest_takes_the_spaces_before_it_away() {
        let text = "def test_a():\n>       f()\n\ntest_a.py:9: \n_ _ _ _\n\n    async def f():\n\
                    >       g()\nE       KeyError\n\ntest_a.py:12: KeyError";
        let frames = read(text).frames;
        let names: Vec<&str> = frames.iter().map(|one| one.function.as_str()).collect();
        assert_eq!(names, ["test_a", "f"]);
    }

    #[test]
    fn a_java_stack_tells_the_frames_of_the_exception_itself() {
        let text = "java.lang.AssertionError: expected:<1> but was:<2>\n\
            \tat org.junit.Assert.fail(Assert.java:89)\n\
            \tat app//shop.Cart.check(Cart.java:12)\n\
            \tat java.base/java.util.ArrayList.forEach(ArrayList.java:1511)\n\
            \tat shop.CartTest.total(CartTest.java:30)\n\
            Caused by: java.lang.RuntimeException\n\tat shop.Other.call(Other.java:1)\n";
        let frames = read(text).frames;
        let names: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["shop.CartTest.total", "shop.Cart.check"]);
        assert_eq!(frames[1].file, "Cart.java");
    }

    #[test]
    fn other_texts_tell_nothing() {
        for text in [
            "",
            "boom",
            "/src/test_a.py:3: ValueError: x 3",
            "Error: no\n    at foo (file.js:3:4)\n    at file.js:3:4",
            "E       shop/cart.py:44: InvalidOperation",
        ] {
            assert_eq!(read(text).frames, [], "{text}");
        }
        assert_eq!(
            read("test_a.py:3: KeyError").kind.as_deref(),
            Some("KeyError")
        );
    }
}
