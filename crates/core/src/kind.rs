//! Of which kind a flaky test is, told only where chance is excluded.
//!
//! The ladder sees a pass here and a failure there, which tells no kind. Runs in the order of the suite and runs alone,
//! both in clean copies of the files, do.

use crate::ladder::EXCLUDED;
use crate::sequential::{Tally, chance_of};
use crate::trial::{Fixtures, Rung, Trial};
use crate::verdict::Flakiness;

/// How often a test failed (hits) and passed (misses) in copies of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// In the order of the suite.
    pub in_order: Tally,
    /// By itself.
    pub alone: Tally,
}

/// Which run would tell more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One in the order of the suite.
    InOrder,
    /// One by itself.
    Alone,
}

/// How many runs on either side are made at the most to tell the kind: three failures and three passes exclude chance.
const MOST: u32 = 3;

/// The kind, if the runs exclude chance at 5 %; else what the ladder said. `first` is the failure in the suite.
pub fn settle(first: Option<&Trial>, runs: Runs, said: Flakiness) -> Flakiness {
    let has_others = first.is_some_and(|first| first.before > 0 || first.rung == Rung::Report);
    let was_rebuilt = first.is_some_and(|first| first.fixtures == Fixtures::Rebuilt);
    let Runs { in_order, alone } = runs;
    if matches!(said, Flakiness::HashSeed | Flakiness::Untouched) {
        said
    } else if in_order.hits > 0 && in_order.misses > 0 || alone.hits > 0 && alone.misses > 0 {
        Flakiness::Chance
    } else if has_others && in_order.hits > 0 && chance_of(alone, in_order) <= EXCLUDED {
        Flakiness::StateDependent
    } else if was_rebuilt && alone.hits > 0 && chance_of(in_order, alone) <= EXCLUDED {
        Flakiness::Disturbed
    } else {
        said
    }
}

/// Which run would tell more about the kind; `None` if it is told, or a few more runs would not tell it.
pub fn wanted(first: Option<&Trial>, runs: Runs, said: Flakiness) -> Option<Wanted> {
    let is_open = matches!(said, Flakiness::Unplaced | Flakiness::NonBursty);
    let is_steady = runs.in_order.is_steady() && runs.alone.is_steady();
    if !is_open || !is_steady || settle(first, runs, said) != said {
        return None;
    }
    if runs.in_order.runs() < MOST {
        return Some(Wanted::InOrder);
    }
    // What passes in order and passed alone before has nothing to do with either.
    let was_rebuilt = first.is_some_and(|first| first.fixtures == Fixtures::Rebuilt);
    let is_telling = runs.in_order.misses == 0 || was_rebuilt;
    (is_telling && runs.alone.runs() < MOST).then_some(Wanted::Alone)
}

/// How often a test is run by itself at the most to see whether it passes there at all.
const MOST_LOOKS: usize = 24;

/// What runs of a test by itself show, where the ladder did not call it flaky and its failure is not the change's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// One more run would tell more.
    Again,
    /// It passes now and then, so it is flaky, and of this kind.
    Flaky(Flakiness),
    /// It never passes by itself.
    Steady,
}

/// What these runs show; each is `true` if it failed, in the order in which they were made, and `has_time` tells whether
/// there may be more. What passes once and fails again after that is chance; what only passes from some run on may have
/// failed through something outside that is over.
pub fn look(failed: &[bool], has_time: bool) -> Look {
    let first_pass = failed.iter().position(|failed| !failed);
    let is_over = failed.len() >= MOST_LOOKS || !has_time;
    match first_pass {
        Some(pass) if failed[pass..].contains(&true) => Look::Flaky(Flakiness::Chance),
        Some(_) if is_over => Look::Flaky(Flakiness::Unplaced),
        None if is_over => Look::Steady,
        Some(_) | None => Look::Again,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome::Outcome;
    use crate::test::TestId;
    use crate::trial::{Account, Birth, VmId};

    fn first(before: usize, fixtures: Fixtures) -> Trial {
        Trial {
            test: TestId::new("t"),
            rung: Rung::Suite,
            vm: VmId(0),
            birth: Birth::Exec,
            before,
            is_watched: false,
            fixtures,
            outcome: Outcome::Failed,
            duration: Duration::ZERO,
            cost: Duration::ZERO,
            account: Account::default(),
        }
    }

    fn runs(in_order: (u32, u32), alone: (u32, u32)) -> Runs {
        let tally = |(hits, misses)| Tally { hits, misses };
        Runs {
            in_order: tally(in_order),
            alone: tally(alone),
        }
    }

    #[test]
    fn a_kind_is_told_only_where_chance_is_excluded() {
        let first = first(3, Fixtures::AsInPlainRun);
        let kind = |runs| settle(Some(&first), runs, Flakiness::Unplaced);
        // By hand: 1 of 20 ways to put three failures into six runs, 1 of 10 to put two or three into five.
        assert_eq!(kind(runs((3, 0), (0, 3))), Flakiness::StateDependent);
        assert_eq!(kind(runs((2, 0), (0, 3))), Flakiness::Unplaced);
        assert_eq!(kind(runs((3, 0), (0, 2))), Flakiness::Unplaced);
        assert_eq!(kind(runs((3, 1), (0, 3))), Flakiness::Chance);
        assert_eq!(kind(runs((0, 9), (0, 9))), Flakiness::Unplaced);
    }

    #[test]
    fn nothing_ran_before_a_first_test() {
        let first = first(0, Fixtures::AsInPlainRun);
        let kind = settle(Some(&first), runs((3, 0), (0, 3)), Flakiness::Unplaced);
        assert_eq!(kind, Flakiness::Unplaced);
    }

    #[test]
    fn a_test_that_passes_in_its_own_order_was_disturbed_by_our_rerun() {
        let first = first(3, Fixtures::Rebuilt);
        let kind = |runs| settle(Some(&first), runs, Flakiness::Unplaced);
        assert_eq!(kind(runs((0, 3), (3, 0))), Flakiness::Disturbed);
        assert_eq!(kind(runs((0, 2), (3, 0))), Flakiness::Unplaced);
    }

    #[test]
    fn few_runs_are_made_and_none_that_cannot_tell() {
        let first = first(3, Fixtures::AsInPlainRun);
        let next = |runs| wanted(Some(&first), runs, Flakiness::Unplaced);
        assert_eq!(next(runs((0, 0), (0, 0))), Some(Wanted::InOrder));
        assert_eq!(next(runs((3, 0), (0, 0))), Some(Wanted::Alone));
        assert_eq!(next(runs((3, 0), (0, 3))), None);
        assert_eq!(next(runs((0, 3), (0, 0))), None, "it does not fail there");
        assert_eq!(next(runs((1, 1), (0, 0))), None);
        assert_eq!(
            wanted(Some(&first), Runs::default(), Flakiness::HashSeed),
            None
        );
    }

    #[test]
    fn what_passes_and_fails_again_by_itself_is_chance() {
        assert_eq!(
            look(&[true, true, false, true], true),
            Look::Flaky(Flakiness::Chance)
        );
        assert_eq!(look(&[true, true, false], true), Look::Again);
        assert_eq!(
            look(&[true, true, false], false),
            Look::Flaky(Flakiness::Unplaced)
        );
    }

    #[test]
    fn what_passes_from_some_run_on_may_have_failed_through_something_that_is_over() {
        let mut failed = vec![true; 3];
        failed.resize(MOST_LOOKS, false);
        assert_eq!(look(&failed, true), Look::Flaky(Flakiness::Unplaced));
    }

    #[test]
    fn what_never_passes_by_itself_is_looked_at_for_so_long_and_no_longer() {
        assert_eq!(look(&[], true), Look::Again);
        assert_eq!(look(&[true; MOST_LOOKS - 1], true), Look::Again);
        assert_eq!(look(&[true; MOST_LOOKS], true), Look::Steady);
        assert_eq!(look(&[true], false), Look::Steady);
    }
}
