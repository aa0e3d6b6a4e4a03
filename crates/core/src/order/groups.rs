//! All tests that are culprits by themselves, and all cleaners: one by one, or by groups.

use super::answers::{Need, Oracle, at_least};
use super::work::Work;
use super::{Case, collect_all};
use crate::test::TestId;

/// The most tests that are tried one by one whatever that costs.
const SMALL: usize = 3;

/// Whether few runs show that no other test matters: all others together neither have the effect nor undo it.
///
/// A test that has the effect could be hidden by one that undoes it, and the other way round, but not both at once:
/// the last of them in the order would show in one of the runs. That holds if all of them do the same to the same
/// state, which several tests together hardly do.
pub(super) fn is_sole(case: &Case<'_>, oracle: &Oracle<'_>, set: &[TestId]) -> Result<bool, Need> {
    let others = case.others.iter().filter(|test| !set.contains(test));
    let others: Vec<TestId> = others.cloned().collect();
    if set.len() > 1 || is_quick(case, &others, &|tests| tests.to_vec()) {
        return Ok(false); // Each of them is asked about.
    }
    let place = case.others.iter().position(|test| set.contains(test));
    let place = place.unwrap_or(0);
    // Those after it in the suite's own order undid nothing there, if that is known.
    let hits = if oracle.known(case.others) == Some(true) {
        [set, &others[..place]].concat()
    } else {
        [set, &others].concat()
    };
    let answers = oracle.ask_all(&[hits, others])?;
    Ok(answers == [true, false])
}

/// Whether it costs little to make a run for each of the tests.
fn is_quick(case: &Case<'_>, tests: &[TestId], order: &dyn Fn(&[TestId]) -> Vec<TestId>) -> bool {
    let apart = tests.iter().map(|test| order(std::slice::from_ref(test)));
    let apart: Work = apart.map(|order| (case.price)(&order)).sum();
    tests.len() <= SMALL || apart <= case.patience
}

/// Adds the tests that have the effect alone and are not known yet. Cleaners would hide others, so each runs by
/// itself.
pub(super) fn find_singles(
    case: &Case<'_>,
    oracle: &Oracle<'_>,
    cleaners: &[TestId],
    sets: &mut Vec<Vec<TestId>>,
) -> Result<(), Need> {
    let known = sets.iter().filter(|set| set.len() == 1).flatten();
    let known: Vec<&TestId> = known.collect();
    let open = case.others.iter().filter(|test| !known.contains(test));
    let (apart, open): (Vec<TestId>, Vec<TestId>) =
        open.cloned().partition(|test| cleaners.contains(test));
    let in_order = |tests: &[TestId]| tests.to_vec();
    let found = positives(case, oracle, &open, &in_order, true);
    let apart = all_singly(oracle, &apart, &in_order, true);
    let found = collect_all([found, apart].into_iter())?;
    sets.extend(found.into_iter().flatten().map(|test| vec![test]));
    Ok(())
}

/// Tests that undo the effect of the first set when they run after it.
pub(super) fn find_cleaners(
    case: &Case<'_>,
    oracle: &Oracle<'_>,
    sets: &[Vec<TestId>],
) -> Result<Vec<TestId>, Need> {
    let set = &sets[0];
    let others = case.others.iter().filter(|test| !set.contains(test));
    // A culprit that runs later has its effect anew, whatever was undone before.
    let is_culprit = |test: &&TestId| sets.iter().any(|set| set.len() == 1 && set[0] == **test);
    let (apart, others): (Vec<&TestId>, Vec<&TestId>) = others.partition(is_culprit);
    let [apart, others] = [apart, others].map(|tests| tests.into_iter().cloned().collect());
    let (apart, others): (Vec<TestId>, Vec<TestId>) = (apart, others);
    let after_set = |tests: &[TestId]| [&set[..], tests].concat();
    let found = positives(case, oracle, &others, &after_set, false);
    let apart = all_singly(oracle, &apart, &after_set, false);
    let found: Vec<TestId> = collect_all([found, apart].into_iter())?.concat();
    let mut cleaners = Vec::new();
    let mut need = Vec::new();
    for test in found {
        // Once more: a name is not given on a single run.
        match at_least(oracle.answers, &after_set(std::slice::from_ref(&test)), 2) {
            Ok(ends) if oracle.hit.tally(ends).hits == 0 && ends.passed + ends.failed > 0 => {
                cleaners.push(test);
            }
            Ok(_) => {}
            Err(more) => need.extend(more),
        }
    }
    cleaners.sort_by_key(|test| case.others.iter().position(|other| other == test));
    if need.is_empty() {
        Ok(cleaners)
    } else {
        Err(need)
    }
}

/// The tests for which the event is there (or is not), each by itself in the place that `order` gives it.
///
/// If one run for each would take long, groups are asked about, once in their order and once in the reverse. A group
/// is halved if one of the two runs is not as it would be with no such test in the group.
fn positives(
    case: &Case<'_>,
    oracle: &Oracle<'_>,
    tests: &[TestId],
    order: &dyn Fn(&[TestId]) -> Vec<TestId>,
    wanted: bool,
) -> Result<Vec<TestId>, Need> {
    if is_quick(case, tests, order) {
        return all_singly(oracle, tests, order, wanted);
    }
    let reversed: Vec<TestId> = tests.iter().rev().cloned().collect();
    let answers = oracle.ask_all(&[order(tests), order(&reversed)])?;
    if answers.iter().all(|answer| *answer != wanted) {
        return Ok(Vec::new());
    }
    let (first, second) = tests.split_at(tests.len() / 2);
    let halves = [first, second].map(|half| positives(case, oracle, half, order, wanted));
    Ok(collect_all(halves.into_iter())?.concat())
}

/// The tests that [`positives`] looks for, found by a run for each.
fn all_singly(
    oracle: &Oracle<'_>,
    tests: &[TestId],
    order: &dyn Fn(&[TestId]) -> Vec<TestId>,
    wanted: bool,
) -> Result<Vec<TestId>, Need> {
    let orders = tests.iter().map(|test| order(std::slice::from_ref(test)));
    let orders: Vec<Vec<TestId>> = orders.collect();
    let answers = oracle.ask_all(&orders)?;
    let found = tests
        .iter()
        .zip(answers)
        .filter(|(_, answer)| *answer == wanted);
    Ok(found.map(|(test, _)| test.clone()).collect())
}
