//! Order dependence: whether a test passes or fails by what ran before it, and which tests those are.
//!
//! The words are those of NIO 2022, 1 and 2: a victim passes alone and fails after its polluters, a
//! brittle test fails alone and passes after its setters; a cleaner in between undoes either. Polluters
//! and setters are both called culprits here.

pub mod answers;
mod culprits;
mod difference;
mod groups;
pub mod orders;
pub mod trunk;
pub mod work;

use std::time::Duration;

use crate::test::TestId;
use answers::{Answers, Ends, Hit, Need, Oracle, at_least};
use culprits::minimise;
use difference::{compare, compare_briefly, is_shown};
use groups::{find_cleaners, find_singles, is_sole};
use work::Work;

/// The next step about one test. Call it again after each batch of runs.
///
/// It gets all answers each time and takes the same way again, so that a search can be cut off anywhere and continued
/// by a caller that kept the answers.
pub fn next_step(case: &Case<'_>, answers: &Answers) -> Step {
    match examine(case, answers) {
        Ok(diagnosis) => Step::Conclude(diagnosis),
        Err(need) => Step::Run(need),
    }
}

/// A test that ended in different ways.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// All other tests, in the framework's own order.
    pub others: &'a [TestId],
    /// Tests after which it ended otherwise than alone, the most promising first.
    pub leads: &'a [Vec<TestId>],
    /// Ends of leads before which it ended as alone: they may suffice.
    pub guesses: &'a [Vec<TestId>],
    /// Culprits of other tests, which may be this one's too.
    pub hints: &'a [Vec<TestId>],
    /// The number of orders that can run at once.
    pub width: usize,
    /// Whether orders that begin alike cost little more than one of them.
    pub shares: bool,
    /// The extent of the search.
    pub scope: Scope,
    /// The most work for one round in which each test has a run of its own; a round that would take more asks about
    /// groups of tests.
    pub patience: Work,
    /// The work of running these tests, and then the test in question, in a fresh VM.
    pub price: &'a dyn Fn(&[TestId]) -> Work,
}

/// The extent of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To the first set of culprits.
    First,
    /// To all culprits and cleaners.
    All,
}

/// The next step about one test. Call it again after each batch of runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run it once after each of these, in a fresh VM each; one that is there twice is run twice.
    Run(Vec<Vec<TestId>>),
    /// It is decided.
    Conclude(Diagnosis),
}

/// The role of a test, and the tests that cause it.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// What it is.
    pub role: Role,
    /// How often it passed and failed alone.
    pub alone: Ends,
    /// The sets of tests that make it end otherwise: each suffices, and none has a part that does.
    pub culprits: Vec<Culprit>,
    /// Tests that undo the effect of the first set when they run after it.
    pub cleaners: Vec<TestId>,
    /// Whether all tests were tried as culprits and cleaners.
    pub is_complete: bool,
}

/// What is known about a test that depends on order.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependence {
    /// The role of the test, and the tests that cause it.
    pub diagnosis: Diagnosis,
    /// The number of runs of orders that the search took.
    pub runs: u32,
    /// The time of these runs on the wall clock.
    pub spent: Duration,
    /// Whether the search ended before it was done.
    pub is_cut: bool,
    /// Whether the culprits are files, whose import alone has the effect.
    pub by_import: bool,
    /// Whether it is seen only when the whole suite was collected.
    pub needs_suite: bool,
}

/// Tests that make another end otherwise than alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// The tests, in an order that has the effect.
    pub tests: Vec<TestId>,
    /// Whether they have the effect only in this order.
    pub is_ordered: bool,
    /// How often it passed and failed after them.
    pub ends: Ends,
}

/// The role of a test with regard to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It passes alone and fails after its culprits.
    Victim,
    /// It fails alone and passes after its culprits.
    Brittle,
    /// It both passes and fails, whatever runs before it.
    Random,
    /// It always fails.
    Broken,
    /// It ends alone as it does after others.
    Independent,
}

/// The runs of each question at first.
const AT_FIRST: u32 = 3;
/// The runs that show a set of several culprits: chance can make one culprit look like several.
const IF_JOINT: u32 = 8;
/// The runs that show a set which has its effect only sometimes.
const IF_MIXED: u32 = 10;
/// The most sets of several culprits that are looked for.
const SETS: usize = 4;

fn examine(case: &Case<'_>, answers: &Answers) -> Result<Diagnosis, Need> {
    let alone = at_least(answers, &[], AT_FIRST)?;
    let mut is_random = alone.passed > 0 && alone.failed > 0;
    for guess in case.guesses {
        let Some(oracle) = compare_briefly(answers, guess)? else {
            continue;
        };
        if let Some(diagnosis) = search(case, answers, guess, oracle)? {
            return Ok(diagnosis);
        }
    }
    for lead in case.leads {
        let Some(oracle) = compare(case, answers, lead, &mut is_random)? else {
            continue;
        };
        if let Some(diagnosis) = search(case, answers, lead, oracle)? {
            return Ok(diagnosis);
        }
        is_random = true;
    }
    let alone = answers.after(&[]);
    let role = if is_random {
        Role::Random
    } else if alone.failed > 0 {
        Role::Broken
    } else {
        Role::Independent
    };
    Ok(Diagnosis {
        role,
        alone,
        culprits: Vec::new(),
        cleaners: Vec::new(),
        is_complete: true,
    })
}

/// Looks for the culprits of a test that ends otherwise after a lead; `None` if they cannot be shown.
fn search(
    case: &Case<'_>,
    answers: &Answers,
    lead: &[TestId],
    oracle: Oracle<'_>,
) -> Result<Option<Diagnosis>, Need> {
    let is_steady = !answers.is_mixed();
    let mut sets = vec![first_set(case, lead, &oracle, is_steady)?];
    if !is_shown(case, &oracle, &sets[0])? {
        return Ok(None);
    }
    let is_complete = case.scope == Scope::All && is_steady;
    let mut cleaners = Vec::new();
    let is_sole = is_complete && is_sole(case, &oracle, &sets[0])?;
    if is_complete && !is_sole {
        cleaners = find_cleaners(case, &oracle, &sets)?;
        loop {
            let known = sets.len();
            find_singles(case, &oracle, &cleaners, &mut sets)?;
            if sets.len() == known {
                break;
            }
            // A culprit among the tests that were tried as cleaners did anew what one of them undid.
            cleaners = find_cleaners(case, &oracle, &sets)?;
        }
    }
    if is_complete {
        // The first set stays: the cleaners undo its effect.
        sets[1..].sort_by_key(|set| place(case, set));
        if !is_sole {
            more_sets(case, lead, &oracle, &mut sets)?;
        }
        // But a test that has the effect alone says more than several together.
        if sets.iter().any(|set| set.len() < sets[0].len()) {
            sets.sort_by_key(|set| (set.len(), place(case, set)));
            cleaners = find_cleaners(case, &oracle, &sets)?;
        }
    }
    let culprits = sets.into_iter().map(|set| confirmed(set, &oracle));
    let culprits: Vec<Culprit> = collect_all(culprits)?.into_iter().flatten().collect();
    let role = match oracle.hit {
        Hit::Failure => Role::Victim,
        Hit::Pass => Role::Brittle,
    };
    Ok(Some(Diagnosis {
        role,
        alone: answers.after(&[]),
        culprits,
        cleaners,
        is_complete,
    }))
}

/// The first set of culprits: a hint, one test alone, or a smallest part of the lead.
fn first_set(
    case: &Case<'_>,
    lead: &[TestId],
    oracle: &Oracle<'_>,
    is_steady: bool,
) -> Result<Vec<TestId>, Need> {
    let known = oracle.ask_all(case.hints)?;
    if let Some(hint) = known.iter().position(|is_hit| *is_hit) {
        return minimise(case, oracle, &case.hints[hint]);
    }
    // Each test of the lead alone, or halves of it: what costs less?
    let singles = singles(lead);
    let apart: Work = singles.iter().map(|single| (case.price)(single)).sum();
    let halvings = lead.len().checked_ilog2().unwrap_or(0).max(1) as usize;
    let halves = (case.price)(lead) * halvings;
    if is_steady && apart * 2 <= halves {
        let answers = oracle.ask_all(&singles)?;
        if let Some(last) = answers.iter().rposition(|is_hit| *is_hit) {
            return Ok(singles[last].clone());
        }
    }
    minimise(case, oracle, lead)
}

fn singles(tests: &[TestId]) -> Vec<Vec<TestId>> {
    tests.iter().map(|test| vec![test.clone()]).collect()
}

fn place(case: &Case<'_>, set: &[TestId]) -> Option<usize> {
    let first = set.first()?;
    case.others.iter().position(|test| test == first)
}

/// Adds sets of several culprits: parts of the lead that have the effect without the known culprits.
fn more_sets(
    case: &Case<'_>,
    lead: &[TestId],
    oracle: &Oracle<'_>,
    sets: &mut Vec<Vec<TestId>>,
) -> Result<(), Need> {
    // A guess is the end of a lead, and the rest of that may have more of them.
    let wider = case.leads.iter().filter(|wider| wider.ends_with(lead));
    let lead = wider
        .max_by_key(|wider| wider.len())
        .map_or(lead, |wider| &wider[..]);
    for _ in 0..SETS {
        let rest = lead
            .iter()
            .filter(|test| !sets.iter().flatten().any(|one| one == *test));
        let rest: Vec<TestId> = rest.cloned().collect();
        if rest.len() < 2 || !oracle.ask(&rest)? {
            break;
        }
        sets.push(minimise(case, oracle, &rest)?);
    }
    Ok(())
}

/// A set with the runs that show it; `None` if they do not.
fn confirmed(set: Vec<TestId>, oracle: &Oracle<'_>) -> Result<Option<Culprit>, Need> {
    let runs = match set.len() {
        _ if !oracle.tally(&set).is_steady() => IF_MIXED,
        1 => AT_FIRST,
        _ => IF_JOINT,
    };
    let ends = at_least(oracle.answers, &set, runs)?;
    if oracle.test.answer(oracle.hit.tally(ends)) != Some(true) {
        return Ok(None);
    }
    let is_ordered = set.len() > 1 && {
        let mut turned = set.clone();
        turned.reverse();
        !oracle.ask(&turned)?
    };
    Ok(Some(Culprit {
        tests: set,
        is_ordered,
        ends,
    }))
}

/// All results, or all that must be run for those that are missing.
fn collect_all<T>(results: impl Iterator<Item = Result<T, Need>>) -> Result<Vec<T>, Need> {
    let mut values = Vec::new();
    let mut need = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(more) => need.extend(more),
        }
    }
    if need.is_empty() {
        Ok(values)
    } else {
        Err(need)
    }
}

#[cfg(test)]
mod tests;
