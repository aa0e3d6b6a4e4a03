//! The parts of a test that failed: nothing of them is left out of a fingerprint, because what varies tells one from
//! others. An old flake in one parameter says nothing about another one.

use std::borrow::Cow;

use super::flat;
use crate::trial::{Account, Part, Trial};

/// A part in a fingerprint.
pub(super) fn text(part: &Part) -> String {
    format!("|part {} {}", part.number, flat(&part.name))
}

/// Whether the names of all parts of two failures are known: the report of another tool only numbers them.
pub(super) fn have_names(one: &Trial, other: &Trial) -> bool {
    let mut parts = one.account.parts.iter().chain(&other.account.parts);
    parts.all(|part| !part.name.is_empty())
}

/// An account as it is, or without the names of its parts.
pub(super) fn as_known(account: &Account, has_names: bool) -> Cow<'_, Account> {
    if has_names {
        return Cow::Borrowed(account);
    }
    let mut account = account.clone();
    account.parts.iter_mut().for_each(|part| part.name.clear());
    Cow::Owned(account)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Fingerprint, fails_alike, incident};
    use super::*;
    use crate::outcome::Outcome;
    use crate::test::TestId;
    use crate::trial::{Birth, Fixtures, Frame, Rung, VmId};

    fn part(number: &str, name: &str) -> Part {
        Part {
            number: number.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A failure of these parts below the test itself.
    fn failed(parts: &[Part]) -> Trial {
        let frame = |function: &str| Frame {
            file: "Cart.java".to_owned(),
            function: function.to_owned(),
            text: String::new(),
        };
        Trial {
            test: TestId::new("shop.CartTest#total(int)"),
            rung: Rung::Suite,
            vm: VmId(0),
            birth: Birth::Exec,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome: Outcome::Failed,
            duration: Duration::ZERO,
            cost: Duration::ZERO,
            account: Account {
                message: "expected: <100> but was: <99>".to_owned(),
                kind: "shop.Wrong".to_owned(),
                frames: vec![frame("shop.CartTest.total"), frame("shop.Cart.check")],
                parts: parts.to_vec(),
                ..Account::default()
            },
        }
    }

    #[test]
    fn another_part_of_a_test_fails_in_another_way() {
        let coin = failed(&[part("1", "[1] tea")]);
        let print = |trial: &Trial| Fingerprint::of(&trial.outcome, &trial.account);
        assert!(fails_alike(&coin, &coin));
        for other in [
            failed(&[part("2", "[2] tea")]),
            failed(&[part("1", "[1] mug")]),
            failed(&[part("1", "[1] tea"), part("2", "[2] mug")]),
            failed(&[]),
        ] {
            assert!(!fails_alike(&coin, &other), "{other:?}");
            assert_ne!(print(&coin), print(&other));
        }
        let incident = |trial: &Trial| incident(&trial.outcome, &trial.account);
        assert!(incident(&coin).is_some());
        assert_eq!(incident(&coin), incident(&failed(&[])));
    }

    #[test]
    fn a_report_that_numbers_its_parts_is_compared_by_numbers() {
        let reported = failed(&[part("1", "")]);
        assert!(fails_alike(&reported, &failed(&[part("1", "[1] tea")])));
        assert!(!fails_alike(&reported, &failed(&[part("2", "[2] mug")])));
    }
}
