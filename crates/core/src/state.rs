//! The state behind an order dependence: what one test changed, and which of it the other needs.
//!
//! A cause is shown, not guessed: with this piece put back, the test ends as it does alone.

use std::collections::HashMap;

use crate::fix::Fix;

/// One thing that is not as it was before a test ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name for the runner, the same in every VM that ran the same tests.
    pub key: String,
    /// What sort of thing it is: `global`, `environment`, `file` and so on.
    pub kind: String,
    /// How it is reached: `shop.cart._CACHE['eur']`, `os.environ['HOME']`.
    pub path: String,
    /// Its value before, shortened; `None` if it was not there.
    pub before: Option<String>,
    /// Its value now, shortened; `None` if it is not there any more.
    pub after: Option<String>,
    /// Its owner, if it is not the project's own.
    pub owner: Option<String>,
    /// Whether a mock stands there now.
    pub is_mock: bool,
    /// Whether it can be put back.
    pub is_restorable: bool,
    /// The keys of those that go with it when it is put back.
    pub ends: Vec<String>,
}

/// A line of the project that wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, from the work tree's root where it is in there.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function that it is in.
    pub function: String,
}

/// The known facts about the state by which one test changes how another ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The pieces that were shown: each by itself, or all together.
    pub shown: Vec<Shown>,
    /// Whether it takes all of them.
    pub is_joint: bool,
    /// Other pieces that changed and cannot be put back, if no others explain it.
    pub suspects: Vec<Shown>,
    /// The number of pieces that changed in all.
    pub changed: usize,
    /// What could not be looked into.
    pub unseen: Vec<String>,
    /// A change that was seen to help.
    pub fix: Option<Fix>,
}

/// A piece, and where it was written if that could be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The piece.
    pub piece: Piece,
    /// The first write.
    pub place: Option<Place>,
}

/// The next thing to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put back the pieces of each of these, and run the test.
    Try(Vec<Vec<usize>>),
    /// These pieces make the difference; none, if no change that can be put back does.
    Conclude(Culprits),
}

/// The pieces that make the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Culprits {
    /// None of those that can be put back.
    None,
    /// Each of these by itself.
    Each(Vec<usize>),
    /// These together.
    Joint(Vec<usize>),
}

/// The results so far: whether the test ends as it does alone when these pieces are put back.
pub type Tried = HashMap<Vec<usize>, bool>;

/// The most pieces that are tried one by one; more are halved first.
const ONE_BY_ONE: usize = 40;

/// The next thing to try with this number of pieces. Call it again with the results.
pub fn next_step(pieces: usize, tried: &Tried) -> Step {
    match examine(pieces, tried) {
        Ok(culprits) => Step::Conclude(culprits),
        Err(need) => Step::Try(need),
    }
}

/// Pieces that help each by itself, without those that only help because another one goes with them.
pub fn without_means(pieces: Vec<Piece>) -> Vec<Piece> {
    let keys: Vec<String> = pieces.iter().map(|piece| piece.key.clone()).collect();
    let is_end = |piece: &Piece| !piece.ends.iter().any(|key| keys.contains(key));
    pieces.into_iter().filter(is_end).collect()
}

type Need = Vec<Vec<usize>>;

fn examine(pieces: usize, tried: &Tried) -> Result<Culprits, Need> {
    let all: Vec<usize> = (0..pieces).collect();
    if all.is_empty() || !ask(tried, &all)? {
        return Ok(Culprits::None);
    }
    if pieces <= ONE_BY_ONE {
        let singles: Vec<Vec<usize>> = all.iter().map(|piece| vec![*piece]).collect();
        let each = ask_all(tried, &singles)?;
        let each = singles.iter().zip(each).filter(|(_, helps)| *helps);
        let each: Vec<usize> = each.map(|(single, _)| single[0]).collect();
        if !each.is_empty() {
            return Ok(Culprits::Each(each));
        }
    }
    let set = narrow(all, tried)?;
    Ok(match set.len() {
        1 => Culprits::Each(set),
        _ => Culprits::Joint(set),
    })
}

/// A smallest part of a set that helps: parts are left out as long as the rest helps.
fn narrow(mut set: Vec<usize>, tried: &Tried) -> Result<Vec<usize>, Need> {
    let mut size = set.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < set.len() {
            let end = (at + size).min(set.len());
            let rest = [&set[..at], &set[end..]].concat();
            if !rest.is_empty() && ask(tried, &rest)? {
                set = rest;
            } else {
                at = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    Ok(set)
}

fn ask(tried: &Tried, set: &[usize]) -> Result<bool, Need> {
    tried.get(set).copied().ok_or_else(|| vec![set.to_vec()])
}

fn ask_all(tried: &Tried, sets: &[Vec<usize>]) -> Result<Vec<bool>, Need> {
    let need: Need = sets
        .iter()
        .filter(|set| !tried.contains_key(*set))
        .cloned()
        .collect();
    if need.is_empty() {
        Ok(sets.iter().map(|set| tried[set]).collect())
    } else {
        Err(need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pieces: usize, helps: impl Fn(&[usize]) -> bool) -> (Culprits, usize) {
        let mut tried = Tried::new();
        loop {
            match next_step(pieces, &tried) {
                Step::Conclude(culprits) => return (culprits, tried.len()),
                Step::Try(sets) => {
                    for set in sets {
                        let answer = helps(&set);
                        tried.insert(set, answer);
                    }
                }
            }
        }
    }

    #[test]
    fn the_piece_that_makes_the_difference_is_found() {
        let (culprits, _) = find(12, |set| set.contains(&7));
        assert_eq!(culprits, Culprits::Each(vec![7]));
        let (culprits, tries) = find(1000, |set| set.contains(&777));
        assert_eq!(culprits, Culprits::Each(vec![777]));
        assert!(tries < 40, "{tries} tries");
    }

    #[test]
    fn pieces_that_help_each_by_itself_are_all_named() {
        let (culprits, _) = find(5, |set| set.contains(&1) || set.contains(&3));
        assert_eq!(culprits, Culprits::Each(vec![1, 3]));
    }

    #[test]
    fn pieces_that_must_all_be_put_back_are_found_together() {
        let both = |set: &[usize]| set.contains(&2) && set.contains(&9);
        assert_eq!(find(12, both).0, Culprits::Joint(vec![2, 9]));
        assert_eq!(find(400, both).0, Culprits::Joint(vec![2, 9]));
    }

    #[test]
    fn a_fixture_that_another_one_needs_is_not_named_beside_it() {
        let piece = |key: &str, ends: &[&str]| Piece {
            key: key.to_owned(),
            kind: "fixture".to_owned(),
            path: key.to_owned(),
            before: None,
            after: None,
            owner: None,
            is_mock: false,
            is_restorable: true,
            ends: ends.iter().map(ToString::to_string).collect(),
        };
        let all = vec![piece("data", &["file"]), piece("file", &["other"])];
        let named = without_means(all);
        assert_eq!(named, [piece("file", &["other"])]);
    }

    #[test]
    fn nothing_is_named_if_nothing_helps() {
        assert_eq!(find(4, |_| false).0, Culprits::None);
        assert_eq!(find(0, |_| true).0, Culprits::None);
    }
}
