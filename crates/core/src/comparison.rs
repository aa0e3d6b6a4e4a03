//! A failing test held against a revision at which it may have passed: what INTERSECT rests on.

use crate::intersect::Intersection;
use crate::verdict::{Blame, Flakiness, Verdict};

/// How a failing test stands to what changed since the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The base.
    pub base: Base,
    /// How many files differ from it.
    pub changed_files: usize,
    /// What of them the failing run went through.
    pub intersection: Intersection,
    /// How the test fares there.
    pub at_base: AtBase,
}

/// The revision that the work tree is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its full name.
    pub commit: String,
    /// What it is, in words: "the merge base with origin/main".
    pub what: String,
}

/// How a test fares at the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtBase {
    /// It passes.
    Passed,
    /// The history has a pass of it at exactly this revision, without other changes.
    PassedBefore {
        /// When, in milliseconds since 1970.
        time: i64,
    },
    /// It fails in the same way.
    FailsAlike,
    /// It fails in another way, which may be the fault of the bare checkout.
    FailsOtherwise {
        /// What was wrong there.
        message: String,
    },
    /// It could not be run there.
    NotRun {
        /// Why.
        why: String,
    },
    /// Nobody has looked.
    NotChecked {
        /// Why not.
        why: String,
    },
}

impl AtBase {
    /// Whether it was seen to pass there.
    pub fn is_pass(&self) -> bool {
        match self {
            Self::Passed | Self::PassedBefore { .. } => true,
            Self::FailsAlike
            | Self::FailsOtherwise { .. }
            | Self::NotRun { .. }
            | Self::NotChecked { .. } => false,
        }
    }
}

impl Comparison {
    /// What a test is that failed each time it was run.
    ///
    /// It is flaky only if nothing that it used has changed and it passed at the base: the thesis
    /// leaves the second condition to the reader, but without it the failure may simply be older.
    pub fn conclude(&self) -> Verdict {
        if self.at_base == AtBase::FailsAlike {
            Verdict::PreExisting
        } else if !self.intersection.touches.is_empty() {
            Verdict::Broken(Blame::TouchesChange)
        } else if self.intersection.is_disjoint() && self.at_base.is_pass() {
            Verdict::Flaky(Flakiness::Untouched)
        } else {
            Verdict::Broken(Blame::CannotTell)
        }
    }
}

/// Whether two failure messages tell of the same failure: the same text but for numbers, addresses and
/// the folder, which differ from run to run and from tree to tree.
pub fn is_same_failure(one: &str, other: &str) -> bool {
    normal_form(one) == normal_form(other)
}

fn normal_form(message: &str) -> String {
    let mut form = String::new();
    for word in message.split_whitespace() {
        form.push(' ');
        let word = word.rsplit('/').next().unwrap_or(word);
        let is_number = |part: &str| part.starts_with(|one: char| one.is_ascii_digit());
        for part in word.split_inclusive(|one: char| !one.is_alphanumeric()) {
            form.push_str(if is_number(part) { "#" } else { part });
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ChangeKind;
    use crate::intersect::{How, Touch, Unknown};

    fn comparison(at_base: AtBase) -> Comparison {
        Comparison {
            base: Base {
                commit: "a".repeat(40),
                what: "HEAD".to_owned(),
            },
            changed_files: 1,
            intersection: Intersection::default(),
            at_base,
        }
    }

    #[test]
    fn only_a_pass_at_the_base_and_no_touch_make_it_flaky() {
        let flaky = Verdict::Flaky(Flakiness::Untouched);
        let mut passed = comparison(AtBase::Passed);
        assert_eq!(passed.conclude(), flaky);
        let before = comparison(AtBase::PassedBefore { time: 0 });
        assert_eq!(before.conclude(), flaky);
        let unknown = Unknown::Process("make".to_owned());
        passed.intersection.unknowns.push(unknown);
        assert_eq!(passed.conclude(), Verdict::Broken(Blame::CannotTell));
        passed.intersection.touches.push(Touch {
            path: "cart.py".to_owned(),
            kind: ChangeKind::Modified,
            function: None,
            lines: Vec::new(),
            how: How::Read,
        });
        assert_eq!(passed.conclude(), Verdict::Broken(Blame::TouchesChange));
        let why = String::new();
        for other in [
            AtBase::NotChecked { why: why.clone() },
            AtBase::NotRun { why: why.clone() },
            AtBase::FailsOtherwise { message: why },
        ] {
            let verdict = comparison(other).conclude();
            assert_eq!(verdict, Verdict::Broken(Blame::CannotTell));
        }
    }

    #[test]
    fn the_same_failure_at_the_base_is_older_than_the_change_whatever_it_touches() {
        let verdict = comparison(AtBase::FailsAlike).conclude();
        assert_eq!(verdict, Verdict::PreExisting);
    }

    #[test]
    fn numbers_addresses_and_folders_do_not_make_another_failure() {
        assert!(is_same_failure(
            "assert 3 == 4 in <Cart at 0x7f01>",
            "assert 5 == 4 in <Cart at 0x7fff>"
        ));
        assert!(is_same_failure(
            "FileNotFoundError: '/data/a/x.json'",
            "FileNotFoundError: '/tmp/b/x.json'"
        ));
        assert!(!is_same_failure(
            "AssertionError: total",
            "ImportError: no module _speed"
        ));
    }
}
