//! The smallest sets of tests that bring an event about.

use super::Case;
use super::answers::{Need, Oracle};
use crate::test::TestId;

/// The most copies that leave one run.
const MOST_PROBES: usize = 40;

/// A smallest part of `lead` that still brings the event about; `lead` does, and no test at all does not.
///
/// It looks for the place in the lead where the event sets in: the test there is needed, and so is
/// something before it, unless it suffices. Tests that undo what others did make no difference to this,
/// because the event sets in somewhere all the same.
pub(super) fn minimise(
    case: &Case<'_>,
    oracle: &Oracle<'_>,
    lead: &[TestId],
) -> Result<Vec<TestId>, Need> {
    let mut set = narrow(case, oracle, lead)?;
    // A test that was only needed because of others in the lead is needed no more.
    while let Some(at) = superfluous(oracle, &set)? {
        set.remove(at);
    }
    Ok(set)
}

/// A test of a set without which it still brings the event about.
fn superfluous(oracle: &Oracle<'_>, set: &[TestId]) -> Result<Option<usize>, Need> {
    if set.len() < 2 {
        return Ok(None);
    }
    let without = |at: usize| [&set[..at], &set[at + 1..]].concat();
    let parts: Vec<Vec<TestId>> = (0..set.len()).map(without).collect();
    let answers = oracle.strict().ask_all(&parts)?;
    Ok(answers.iter().position(|is_hit| *is_hit))
}

fn narrow(case: &Case<'_>, oracle: &Oracle<'_>, lead: &[TestId]) -> Result<Vec<TestId>, Need> {
    let mut head = lead;
    let mut needed: Vec<TestId> = Vec::new();
    loop {
        if !needed.is_empty() && oracle.ask(&needed)? {
            return Ok(needed);
        }
        let Some(last) = sets_in(case, oracle, head, &needed)? else {
            // Chance has misled an answer above; what is known to work is given.
            return Ok([head, &needed].concat());
        };
        needed.insert(0, head[last].clone());
        head = &head[..last];
    }
}

/// The number of places of a head that are asked about at a time.
///
/// Where these orders share their beginning, it runs once for all of them. So there are as many of them as together
/// cost what the beginning costs. Chance must not be shared.
fn probes(case: &Case<'_>, oracle: &Oracle<'_>, head: &[TestId], needed: &[TestId]) -> usize {
    if !case.shares || oracle.answers.is_mixed() {
        return case.width;
    }
    let worth = (case.price)(head).holds((case.price)(needed));
    worth.min(MOST_PROBES).max(case.width)
}

/// The place in `head` up to which it takes the event to set in, with `needed` after it.
fn sets_in(
    case: &Case<'_>,
    oracle: &Oracle<'_>,
    head: &[TestId],
    needed: &[TestId],
) -> Result<Option<usize>, Need> {
    if head.is_empty() {
        return Ok(None);
    }
    // The event is absent after the first `without` tests of the head, and there after the first `enough`.
    let (mut without, mut enough) = (0, head.len());
    while enough - without > 1 {
        let gap = enough - without;
        let parts = (probes(case, oracle, &head[..enough], needed) + 1).min(gap);
        let cuts: Vec<usize> = (1..parts)
            .map(|part| without + gap * part / parts)
            .collect();
        let orders: Vec<Vec<TestId>> = cuts
            .iter()
            .map(|cut| [&head[..*cut], needed].concat())
            .collect();
        let answers = oracle.ask_all(&orders)?;
        match answers.iter().position(|is_there| *is_there) {
            Some(first) => {
                enough = cuts[first];
                without = first.checked_sub(1).map_or(without, |before| cuts[before]);
            }
            None => without = cuts[cuts.len() - 1],
        }
    }
    Ok(Some(enough - 1))
}
