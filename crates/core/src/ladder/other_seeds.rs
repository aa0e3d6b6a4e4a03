//! Whether it is the hash seed: a test that failed everywhere is run in new interpreters with other seeds.

use super::{EXCLUDED, Place, Rungs, Seen, Step};
use crate::sequential::{Tally, chance_of};
use crate::trial::{Rung, Trial};
use crate::verdict::{Flakiness, Verdict};

/// With so many seeds a test is tried that fails everywhere through nobody's change. Of those that take the first of a
/// set of four, 94 % have passed with one of them by then.
pub(super) const SOUGHT: u32 = 10;
/// So often a test must pass with one seed, and never fail with it, before its own seed is called the cause.
const PASSES_WITH_ONE: usize = 3;

/// A test that failed everywhere gets the chance to pass with other hash seeds, and what passes with one is run again
/// with that one. `None` if it failed with all, or could not be run.
pub(super) fn next(rungs: Rungs, seen: Seen<'_>) -> Option<Step> {
    let others: Vec<&Trial> = seen.of(Rung::OtherSeed).collect();
    let again = Step::Rerun(Rung::OtherSeed, Place::OtherSeed);
    let Some(passed) = others.iter().position(|trial| trial.outcome.is_pass()) else {
        let may_pass = others.iter().all(|trial| trial.outcome.is_failure());
        return (may_pass && seen.count(Rung::OtherSeed) < rungs.other_seeds).then_some(again);
    };
    let with_it = &others[passed..];
    let is_steady = with_it.iter().all(|trial| trial.outcome.is_pass());
    if is_steady && with_it.len() < PASSES_WITH_ONE {
        return Some(again);
    }
    let with_it = Tally::of_failures(with_it.iter().map(|trial| &trial.outcome));
    let same = seen.trials[1..].iter();
    let same = same.filter(|trial| trial.rung != Rung::OtherSeed);
    let same = Tally::of_failures(same.map(|trial| &trial.outcome));
    let is_seed = is_steady && chance_of(with_it, same) <= EXCLUDED;
    // Something else may have ended while the others were tried, an outage for example.
    if is_seed && seen.last().rung == Rung::OtherSeed {
        return Some(Step::Rerun(Rung::Fresh, Place::NewInterpreter));
    }
    Some(Step::Conclude(Verdict::Flaky(if is_seed {
        Flakiness::HashSeed
    } else {
        Flakiness::Unplaced
    })))
}
