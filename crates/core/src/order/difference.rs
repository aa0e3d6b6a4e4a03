//! Whether a test ends otherwise after some tests than alone, and whether that can be chance.

use super::answers::{Answers, Ends, Need, Oracle, at_least, rates};
use super::work::Work;
use super::{AT_FIRST, Case, collect_all};
use crate::sequential::{ERROR, chance_of};
use crate::test::TestId;

/// The runs of a question if one run takes more than `LONG`.
const IF_LONG: u32 = 2;
const LONG: Work = Work(200);
/// The runs in which an event with a rate of three in ten is missed only with the error rate of `sequential`.
const TO_EXCLUDE: u32 = 13;
/// The runs of a question when chance has a part in it: each step wants this many in all.
const BY_CHANCE: [u32; 3] = [12, 24, 40];
/// A difference that comes about by chance more often than this is none.
const NO_DIFFERENCE: f64 = 0.2;
/// The runs of a test alone, and after its first culprits, before these are named; and the most often that chance may
/// make such a difference: 8 of 8 against 0 of 8 is 1 in 12,870, 5 of 5 against 0 of 5 is 1 in 252.
const TO_SHOW: [u32; 1] = [8];
const SHOWN: f64 = 1e-4;
const TO_SHOW_LONG: [u32; 1] = [5];
/// The same numbers when chance has a part in it: each step wants this many runs in all.
const TO_SHOW_BY_CHANCE: [u32; 4] = [12, 24, 40, 60];
const SHOWN_BY_CHANCE: f64 = 1e-3;

/// Whether the test ends otherwise after a lead than alone, and with what rates.
pub(super) fn compare<'a>(
    case: &Case<'_>,
    answers: &'a Answers,
    lead: &[TestId],
    is_random: &mut bool,
) -> Result<Option<Oracle<'a>>, Need> {
    let alone = at_least(answers, &[], AT_FIRST)?;
    // Whatever is found in a long one is shown again by itself.
    let is_long = (case.price)(lead) > LONG;
    let runs = if is_long { IF_LONG } else { AT_FIRST };
    let after = at_least(answers, lead, runs)?;
    let is_steady = |ends: Ends| ends.passed == 0 || ends.failed == 0;
    let is_same = is_steady(alone) && is_steady(after) && (alone.passed > 0) == (after.passed > 0);
    if is_same {
        // It was seen to end otherwise here once: a rare event takes longer to come again.
        let after = at_least(answers, lead, TO_EXCLUDE)?;
        if is_steady(after) {
            *is_random = true;
            return Ok(None);
        }
    }
    // An order that ended in two ways shows that chance has a part in it, whatever the first runs say.
    if is_steady(alone) && is_steady(after) && !is_same && !answers.is_mixed() {
        return Ok(Some(Oracle::new(answers, alone, after)));
    }
    for runs in BY_CHANCE {
        let [alone, after] = both_at_least(answers, lead, runs)?;
        let (low, high) = rates(alone, after);
        let chance = chance_of(low, high);
        if chance < ERROR / 2.0 {
            return Ok(Some(Oracle::new(answers, alone, after)));
        }
        // An event that is seen alone too need not be waited for.
        if low.hits > 0 && chance > NO_DIFFERENCE {
            break;
        }
    }
    *is_random = true;
    Ok(None)
}

/// Whether all first runs after a guess differ from all runs alone. If chance has a part in it, leads decide.
pub(super) fn compare_briefly<'a>(
    answers: &'a Answers,
    guess: &[TestId],
) -> Result<Option<Oracle<'a>>, Need> {
    if answers.is_mixed() {
        return Ok(None);
    }
    let alone = at_least(answers, &[], AT_FIRST)?;
    let after = at_least(answers, guess, AT_FIRST)?;
    let is_known = after.passed + after.failed > 0;
    let is_other = (alone.passed > 0) != (after.passed > 0);
    Ok((is_known && is_other).then(|| Oracle::new(answers, alone, after)))
}

/// The ends alone and after a lead, once there are `runs` runs of both; the need for more until then.
fn both_at_least(answers: &Answers, lead: &[TestId], runs: u32) -> Result<[Ends; 2], Need> {
    let both = [&[], lead].map(|before| at_least(answers, before, runs));
    let both = collect_all(both.into_iter())?;
    Ok([both[0], both[1]])
}

/// Whether the difference between the runs after a set and the runs alone is too large for chance.
///
/// The set was chosen because of a few runs, among many that were tried: a coin has its turn sooner or later.
/// Where one of the runs that are made for this ends otherwise, the test turns out to be mixed, and the
/// search begins anew as one in which chance has a part.
pub(super) fn is_shown(case: &Case<'_>, oracle: &Oracle<'_>, set: &[TestId]) -> Result<bool, Need> {
    let (steps, error) = if oracle.answers.is_mixed() {
        (&TO_SHOW_BY_CHANCE[..], SHOWN_BY_CHANCE)
    } else if (case.price)(set) > LONG {
        (&TO_SHOW_LONG[..], ERROR / 2.0)
    } else {
        (&TO_SHOW[..], SHOWN)
    };
    for runs in steps {
        let both = both_at_least(oracle.answers, set, *runs)?;
        let [alone, after] = both.map(|ends| oracle.hit.tally(ends));
        if chance_of(alone, after) < error {
            return Ok(true);
        }
    }
    Ok(false)
}
