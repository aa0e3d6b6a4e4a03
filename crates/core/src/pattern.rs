//! Patterns that name tests and files in `unflake.toml`.

/// A pattern over test ids or paths: `*` stands for any characters, also none; all others for themselves.
///
/// Brackets and question marks mean themselves, because parametrised ids are full of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern; every text is one.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `id` is of this form.
    pub fn matches(&self, id: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == id;
        };
        let Some(mut left) = id.strip_prefix(head) else {
            return false;
        };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        // The leftmost place for each middle piece leaves the most room for those after it.
        for piece in middle.split('*') {
            let Some(at) = left.find(piece) else {
                return false;
            };
            left = &left[at + piece.len()..];
        }
        left.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_all_else_for_itself() {
        let matches = |pattern: &str, id: &str| Pattern::new(pattern).matches(id);
        assert!(matches("a.py::t[1]", "a.py::t[1]"));
        assert!(!matches("a.py::t[1]", "a.py::t1"));
        assert!(matches("a.py::*", "a.py::T::t"));
        assert!(!matches("a.py::*", "b/a.py::t"));
        assert!(matches("*net*slow*", "tests/test_net.py::test_slow"));
        assert!(!matches("*slow*net*", "tests/test_net.py::test_slow"));
        assert!(matches("*", ""));
        assert!(matches("a**b", "ab"));
        assert!(!matches("ab*ba", "aba"), "head and tail may not overlap");
        assert!(matches("*ab", "abab"));
    }
}
