//! State that tests leave changed although no test fails for it yet: latent polluters (NIO 2022, 1).
//!
//! Most of it does no harm, ever. What counts is whether other tests reach it, so that is how it is ranked.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::Piece;
use crate::test::TestId;

/// A piece of state that tests leave changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latent {
    /// The piece, as the first of them leaves it.
    pub piece: Piece,
    /// The tests that leave it changed, in the suite's order.
    pub tests: Vec<TestId>,
    /// Other test files whose text has its name.
    pub readers: Vec<String>,
}

/// A test file with its text.
pub struct Source<'a> {
    /// The file.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Ranks what tests left changed, most reachable first. What no other test reaches is left out.
///
/// Another test reaches a piece if it changes it as well, or if its file has the name at the end of the
/// piece's path: the variable, the attribute, the key or the file.
pub fn rank(left: &[(TestId, String, Vec<Piece>)], sources: &[Source<'_>]) -> Vec<Latent> {
    let mut by_key: BTreeMap<&str, (&Piece, Vec<TestId>, BTreeSet<&str>)> = BTreeMap::new();
    for (test, file, pieces) in left {
        for piece in pieces.iter().filter(|piece| is_worth_telling(piece)) {
            let entry = by_key
                .entry(&piece.key)
                .or_insert_with(|| (piece, Vec::new(), BTreeSet::new()));
            entry.1.push(test.clone());
            entry.2.insert(file);
        }
    }
    let mut latent: Vec<Latent> = Vec::new();
    // What is different after every test is the copy's own, and no test's.
    let is_ours = |tests: &[TestId]| left.len() > 3 && tests.len() == left.len();
    for (piece, tests, own) in by_key.into_values().filter(|(_, tests, _)| !is_ours(tests)) {
        let names = names_of(&piece.path);
        let has_name = |source: &&Source<'_>| names.iter().any(|name| has_word(source.text, name));
        let readers = sources.iter().filter(|source| !own.contains(source.file));
        let readers: Vec<String> = readers
            .filter(has_name)
            .map(|one| one.file.to_owned())
            .collect();
        if tests.len() > 1 || !readers.is_empty() {
            latent.push(Latent {
                piece: piece.clone(),
                tests,
                readers,
            });
        }
    }
    latent.sort_by_key(|one| std::cmp::Reverse(one.tests.len() + one.readers.len()));
    latent
}

/// Modules that were loaded, and random generators that went on, are what tests leave by the way.
fn is_worth_telling(piece: &Piece) -> bool {
    !matches!(
        piece.kind.as_str(),
        "module" | "random" | "cache" | "iterator" | "fixture" | "parameter"
    )
}

/// The names by which a test would reach a path: the key at its end, and the name before it.
fn names_of(path: &str) -> Vec<&str> {
    let (outside, key) = match path
        .strip_suffix("']")
        .and_then(|path| path.rsplit_once("['"))
    {
        Some((outside, key)) => (outside, Some(key)),
        None => (path, None),
    };
    let last = outside.rsplit(['.', '/']).next().unwrap_or(outside);
    let is_telling =
        |name: &&str| name.len() > 2 && !matches!(*name, "environ" | "path" | "modules");
    key.into_iter().chain([last]).filter(is_telling).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(kind: &str, path: &str) -> Piece {
        Piece {
            key: format!("{kind}:{path}"),
            kind: kind.to_owned(),
            path: path.to_owned(),
            before: None,
            after: Some("1".to_owned()),
            owner: None,
            is_mock: false,
            is_restorable: true,
            ends: Vec::new(),
        }
    }

    #[test]
    fn what_other_tests_reach_comes_first_and_the_rest_is_left_out() {
        let cache = piece("item", "shop.cart._CACHE['eur']");
        let lonely = piece("global", "test_b._mine");
        let module = piece("module", "sys.modules['late']");
        let home = piece("environment", "os.environ['SHOP_HOME']");
        let left = [
            (
                TestId::new("test_a.py::one"),
                "test_a.py".to_owned(),
                vec![cache.clone(), module],
            ),
            (
                TestId::new("test_a.py::two"),
                "test_a.py".to_owned(),
                vec![cache.clone()],
            ),
            (
                TestId::new("test_b.py::one"),
                "test_b.py".to_owned(),
                vec![lonely, home.clone()],
            ),
        ];
        let sources = [
            Source {
                file: "test_a.py",
                text: "import shop",
            },
            Source {
                file: "test_b.py",
                text: "_CACHE = shop.cart._CACHE; _mine",
            },
            Source {
                file: "test_c.py",
                text: "os.environ['SHOP_HOME'] MY_SHOP_HOME_X",
            },
        ];
        let ranked = rank(&left, &sources);
        let paths: Vec<&str> = ranked.iter().map(|one| one.piece.path.as_str()).collect();
        assert_eq!(paths, [cache.path.as_str(), home.path.as_str()]);
        assert_eq!(ranked[0].tests.len(), 2);
        assert_eq!(ranked[0].readers, ["test_b.py"]);
        assert_eq!(ranked[1].readers, ["test_c.py"]);
    }
}
