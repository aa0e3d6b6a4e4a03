//! What a test was called at the base: git knows moved files, and a body that stayed the same knows its old name.

use std::collections::BTreeMap;
use std::fs;

use camino::Utf8Path;
use unflake_core::test::TestId;
use unflake_core::trial::Account;

use crate::framework::project::{Place, Project};
use crate::git::difference::Difference;
use crate::git::repository::Repository;

/// The old paths of the files that git sees as moved, by their new ones.
pub(crate) fn moved_files(repository: &Repository, commit: &str) -> BTreeMap<String, String> {
    let arguments = [
        "diff",
        "-M",
        "--diff-filter=R",
        "--name-status",
        "-z",
        commit,
    ];
    // Without an answer every test of a moved file is new, and so the change's own.
    let Ok(answer) = repository.run(&arguments) else {
        return BTreeMap::new();
    };
    let text = String::from_utf8_lossy(&answer).into_owned();
    let words: Vec<&str> = text.split('\0').filter(|word| !word.is_empty()).collect();
    let triples = words.chunks_exact(3);
    triples
        .map(|triple| (triple[2].to_owned(), triple[1].to_owned()))
        .collect()
}

/// What tells what a test was called at the base.
pub(crate) struct Renames<'a> {
    pub(crate) project: &'a Project,
    /// The folder that ids begin in.
    pub(crate) tests_root: &'a Utf8Path,
    pub(crate) difference: &'a Difference,
}

impl Renames<'_> {
    /// The names that a test may have had, the likelier first: in the old file, and as the function that is gone and
    /// had its body. `then` reads a file at the base, by its path in the repository.
    pub(crate) fn old_names(
        &self,
        test: &TestId,
        then: impl FnOnce(&str) -> Option<String>,
    ) -> Vec<TestId> {
        let Some((place, inside, old)) = self.old_source(test) else {
            return Vec::new();
        };
        let called = |function: &str| {
            let source = self.difference.root.join(&old);
            let function = function.to_owned();
            self.project
                .id_at(test, self.tests_root, &Place { source, function })
        };
        let mut names: Vec<TestId> = Vec::new();
        if inside != old {
            names.extend(called(&place.function));
        }
        let now = fs::read_to_string(&place.source).ok();
        if let (Some(now), Some(then)) = (now, then(&old)) {
            let functions = |source: &str| self.project.functions(source);
            let old = old_function(&place.function, &functions(&now), &functions(&then));
            names.extend(old.and_then(|old| called(&old)));
        }
        names
    }

    /// The name that a test of a moved file had in the old one.
    pub(crate) fn name_in_old_file(&self, test: &TestId) -> Option<TestId> {
        let (place, inside, old) = self.old_source(test)?;
        if inside == old {
            return None;
        }
        let place = Place {
            source: self.difference.root.join(old),
            ..place
        };
        self.project.id_at(test, self.tests_root, &place)
    }

    /// Where a test stands, and the paths of its source in the repository, now and at the base.
    fn old_source(&self, test: &TestId) -> Option<(Place, String, String)> {
        let place = self.project.place_of(test, self.tests_root)?;
        let root = &self.difference.root;
        let inside = place.source.strip_prefix(root).ok()?.to_string();
        let old = self.difference.moved.get(&inside);
        let old = old.unwrap_or(&inside).clone();
        Some((place, inside, old))
    }
}

/// An account of a test under one name as one of it under another: its own functions are among its frames.
pub(crate) fn under_name(
    mut account: Account,
    project: &Project,
    (old, new): (&TestId, &TestId),
) -> Account {
    if old == new {
        return account;
    }
    for frame in &mut account.frames {
        if let Some(function) = project.in_frames(&frame.function, old, new) {
            frame.function = function;
        }
    }
    account
}

/// The name of the one function that is gone and had the body that this one has now; `None` for one that was there.
fn old_function(
    function: &str,
    now: &[(String, String)],
    then: &[(String, String)],
) -> Option<String> {
    let (_, body) = now.iter().find(|(name, _)| name == function)?;
    if then.iter().any(|(name, _)| name == function) {
        return None;
    }
    let is_gone = |name: &String| now.iter().all(|(one, _)| one != name);
    let mut same = then
        .iter()
        .filter(|(name, text)| text == body && is_gone(name));
    let (old, _) = same.next()?;
    same.next().is_none().then(|| old.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::pytest::names::functions;

    const THEN: &str =
        "def test_a():\n    assert 1\n\n\ndef test_b(x):\n    y = x\n\n    assert y\n";

    fn old(function: &str, now: &str) -> Option<String> {
        old_function(function, &functions(now), &functions(THEN))
    }

    #[test]
    fn a_function_with_another_name_and_the_same_body_is_the_same() {
        let now = "import os\n\ndef test_a():\n    assert 1\n\ndef test_renamed(x):\n    y = x\n    assert y\n";
        assert_eq!(old("test_renamed", now), Some("test_b".to_owned()));
        assert_eq!(old("test_a", now), None, "it is still there");
    }

    #[test]
    fn a_copy_and_another_body_are_new_tests() {
        let copy = format!("{THEN}\ndef test_c(x):\n    y = x\n    assert y\n");
        assert_eq!(old("test_c", &copy), None);
        assert_eq!(old("test_c", "def test_c(x):\n    assert x\n"), None);
    }

    #[test]
    fn a_function_that_was_there_has_no_old_name_although_it_has_the_body_of_another() {
        let now = "def test_a():\n    y = x\n    assert y\n";
        assert_eq!(old("test_a", now), None);
    }
}
