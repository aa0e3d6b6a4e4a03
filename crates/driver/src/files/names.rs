//! The names of tests in a copy of the files: where a parameter holds a path of the work tree, the copy's is in its place.

use camino::Utf8Path;
use unflake_core::test::TestId;

/// A copy, and the folder that it is of.
pub(crate) struct Names {
    copy: String,
    home: String,
}

impl Names {
    pub(crate) fn new(copy: &Utf8Path, home: &Utf8Path) -> Self {
        Self {
            copy: copy.to_string(),
            home: home.to_string(),
        }
    }

    /// The name at home of a test of the copy.
    pub(crate) fn at_home(&self, test: &TestId) -> TestId {
        renamed(test, &self.copy, &self.home)
    }

    /// The name of a test in the copy.
    pub(crate) fn in_copy(&self, test: &TestId) -> TestId {
        renamed(test, &self.home, &self.copy)
    }
}

/// A test with another path in its parameters: the file and the function before them are relative to the root.
fn renamed(test: &TestId, from: &str, to: &str) -> TestId {
    let name = test.name();
    let Some((function, parameters)) = name.split_once('[') else {
        return test.clone();
    };
    let mut moved = format!("{function}[");
    let mut rest = parameters;
    while let Some((before, after)) = rest.split_once(from) {
        let is_whole = after.chars().next().is_none_or(|next| !is_of_name(next));
        moved.push_str(before);
        moved.push_str(if is_whole { to } else { from });
        rest = after;
    }
    moved.push_str(rest);
    TestId::copy_of(&moved, test.copy())
}

/// Whether a letter goes on with the name of a folder.
fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_copy_is_told_as_one_at_home_and_back() {
        let names = Names::new(Utf8Path::new("/tmp/c/shop"), Utf8Path::new("/home/me/shop"));
        let at_home = TestId::copy_of("test_a.py::test_a[/home/me/shop/data/1.csv-2]", 1);
        let in_copy = TestId::copy_of("test_a.py::test_a[/tmp/c/shop/data/1.csv-2]", 1);
        assert_eq!(names.in_copy(&at_home), in_copy);
        assert_eq!(names.at_home(&in_copy), at_home);
        for other in [
            "test_a.py::test_a",
            "test_a.py::test_a[x]",
            "test_a.py::test_a[/home/me/shopping]",
            "/home/me/shop/test_a.py::test_a",
        ] {
            let other = TestId::new(other);
            assert_eq!(names.in_copy(&other), other);
        }
    }
}
