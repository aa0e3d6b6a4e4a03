//! What a test was called at the base: git knows moved files, and a body that stayed the same knows its old name.

use std::collections::BTreeMap;
use std::fs;

use camino::Utf8Path;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use super::side::Side;
use crate::git::difference::Difference;
use crate::git::repository::Repository;
use crate::git::worktree::BaseTree;

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

/// A test's name at the base, if it is not the one that it has now.
pub(crate) fn old_name(
    test: &TestId,
    tests_root: &Utf8Path,
    difference: &Difference,
    side: &Side,
    tree: &BaseTree,
) -> Option<TestId> {
    let root = difference.repository.root();
    let (file, rest) = test.name().split_once("::")?;
    let inside = tests_root.join(file);
    let inside = inside.strip_prefix(root).ok()?.as_str();
    let old_inside = difference.moved.get(inside).map_or(inside, String::as_str);
    let prefix = tests_root.strip_prefix(root).ok()?;
    let old_file = Utf8Path::new(old_inside).strip_prefix(prefix).ok()?;
    let same = TestId::copy_of(&format!("{old_file}::{rest}"), test.copy());
    if side.lists(&same) {
        return Some(same);
    }
    // The function itself has another name there, and the same body.
    let now = fs::read_to_string(root.join(inside)).ok()?;
    let then = fs::read_to_string(tree.path().join(old_inside)).ok()?;
    let (plain, parameters) = rest.find('[').map_or((rest, ""), |at| rest.split_at(at));
    let (class, function) = plain.rsplit_once("::").map_or(("", plain), |pair| pair);
    let old = old_function(function, &now, &then)?;
    let class = if class.is_empty() {
        String::new()
    } else {
        format!("{class}::")
    };
    let old = TestId::copy_of(
        &format!("{old_file}::{class}{old}{parameters}"),
        test.copy(),
    );
    side.lists(&old).then_some(old)
}

/// The name that a test of a moved file had in the old one.
pub(crate) fn name_in_old_file(
    test: &TestId,
    tests_root: &Utf8Path,
    difference: &Difference,
) -> Option<TestId> {
    let root = difference.repository.root();
    let (file, rest) = test.name().split_once("::")?;
    let inside = tests_root.join(file);
    let old = difference
        .moved
        .get(inside.strip_prefix(root).ok()?.as_str())?;
    let old = root.join(old);
    let old = old.strip_prefix(tests_root).ok()?;
    Some(TestId::copy_of(&format!("{old}::{rest}"), test.copy()))
}

/// A trial at the base as one of the test under the name that it has now: its own function is among its frames.
pub(crate) fn under_new_name(mut trial: Trial, test: &TestId) -> Trial {
    let function = |test: &TestId| {
        let name = test.name().rsplit("::").next().unwrap_or_default();
        let name = name.split('[').next().unwrap_or(name);
        name.to_owned()
    };
    let (old, new) = (function(&trial.test), function(test));
    for frame in &mut trial.account.frames {
        if frame.function == old {
            frame.function.clone_from(&new);
        }
    }
    trial
}

/// The name of the one function that is gone and had the body that this one has now.
fn old_function(function: &str, now: &str, then: &str) -> Option<String> {
    let (now, then) = (functions(now), functions(then));
    let body = now.iter().find(|(name, _)| name == function)?.1.clone();
    let is_gone = |name: &String| now.iter().all(|(one, _)| one != name);
    let mut same = then
        .iter()
        .filter(|(name, text)| *text == body && is_gone(name));
    let (old, _) = same.next()?;
    same.next().is_none().then(|| old.clone())
}

/// The functions of a Python source, each with its text without its own name.
fn functions(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let head = trimmed
            .strip_prefix("def ")
            .or_else(|| trimmed.strip_prefix("async def "));
        let Some((name, rest)) = head.and_then(|head| head.split_once('(')) else {
            continue;
        };
        let depth = indent(line);
        let more = lines[at + 1..].iter();
        let inner = more.take_while(|next| next.trim().is_empty() || indent(next) > depth);
        let inner: Vec<&str> = inner
            .map(|next| next.trim_end())
            .filter(|next| !next.is_empty())
            .collect();
        found.push((
            name.trim().to_owned(),
            format!("({rest}\n{}", inner.join("\n")),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str =
        "def test_a():\n    assert 1\n\n\ndef test_b(x):\n    y = x\n\n    assert y\n";

    #[test]
    fn a_function_with_another_name_and_the_same_body_is_the_same() {
        let now = "import os\n\ndef test_a():\n    assert 1\n\ndef test_renamed(x):\n    y = x\n    assert y\n";
        assert_eq!(
            old_function("test_renamed", now, THEN),
            Some("test_b".to_owned())
        );
        assert_eq!(old_function("test_a", now, THEN), None, "it is still there");
    }

    #[test]
    fn a_copy_and_another_body_are_new_tests() {
        let copy = format!("{THEN}\ndef test_c(x):\n    y = x\n    assert y\n");
        assert_eq!(old_function("test_c", &copy, THEN), None);
        let other = "def test_c(x):\n    assert x\n";
        assert_eq!(old_function("test_c", other, THEN), None);
    }
}
