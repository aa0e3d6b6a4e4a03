//! What a test that ended in different ways is: orders are run until the technique concludes.

use std::time::Instant;

use unflake_core::event::Stage;
use unflake_core::order::answers::Answers;
use unflake_core::order::{Case, Dependence, Diagnosis, Role, Scope, Step, next_step};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::ordering::{Found, Search};
use crate::session::{Halt, Session};

/// So many leads are followed for one test.
const MOST_LEADS: usize = 3;

impl Session {
    /// Runs what the technique asks for until it concludes, or the time is over.
    pub(crate) fn diagnose(&mut self, search: &mut Search, test: &TestId) -> Result<Found, Halt> {
        let began = Instant::now();
        let others = self.others(test);
        let leads = search.book.leads(test, MOST_LEADS);
        let hints = search.sets().into_iter().filter(|set| !set.contains(test));
        let hints: Vec<Vec<TestId>> = hints.collect();
        let seconds = search.book.seconds();
        let fork = search.fork;
        let price = |order: &[TestId]| -> f64 {
            let one = |test: &TestId| seconds.get(test).copied().unwrap_or(0.0);
            fork + order.iter().chain([test]).map(one).sum::<f64>()
        };
        let case = Case {
            others: &others,
            leads: &leads,
            hints: &hints,
            width: search.lanes.len(),
            scope: Scope::All,
            patience: search.patience,
            price: &price,
        };
        let mut shown: Vec<Trial> = Vec::new();
        loop {
            let answers = search.answers.entry(test.clone()).or_default();
            match next_step(&case, answers) {
                Step::Conclude(diagnosis) => {
                    let dependence = Dependence {
                        diagnosis,
                        runs: answers.runs(),
                        spent: began.elapsed(),
                        is_cut: false,
                        by_import: false,
                        needs_suite: false,
                    };
                    let trials = shown;
                    return Ok(Found { dependence, trials });
                }
                Step::Run(befores) => {
                    let orders = befores
                        .iter()
                        .map(|before| [&before[..], std::slice::from_ref(test)].concat());
                    let orders: Vec<Vec<TestId>> = orders.collect();
                    let done = self.run_orders(search, &orders, &Stage::Culprits(test.clone()))?;
                    let answers = search.answers.entry(test.clone()).or_default();
                    let is_whole = done.len() == orders.len();
                    for (before, trials) in befores.iter().zip(done) {
                        take_in(answers, test, before, trials, &mut shown);
                    }
                    if !is_whole {
                        let dependence = Dependence {
                            diagnosis: cut_short(&case, answers),
                            runs: answers.runs(),
                            spent: began.elapsed(),
                            is_cut: true,
                            by_import: false,
                            needs_suite: false,
                        };
                        let trials = shown;
                        return Ok(Found { dependence, trials });
                    }
                }
            }
        }
    }
}

/// Notes how a test ended after others; the first failure and the first pass are kept to be shown.
fn take_in(
    answers: &mut Answers,
    test: &TestId,
    before: &[TestId],
    trials: Vec<Trial>,
    shown: &mut Vec<Trial>,
) {
    // A test that took the VM with it: those after it ran in another.
    let is_whole = trials[..trials.len().saturating_sub(1)]
        .iter()
        .all(|trial| !trial.outcome.ends_vm());
    let last = trials
        .into_iter()
        .next_back()
        .filter(|trial| trial.test == *test);
    match last {
        Some(trial) if is_whole => {
            answers.note(before, &trial.outcome);
            let is_new = !shown
                .iter()
                .any(|one| one.outcome.is_pass() == trial.outcome.is_pass());
            if is_new {
                shown.push(trial);
            }
        }
        Some(_) | None => answers.note(before, &Outcome::NotRun),
    }
}

/// What can be said when the time is over: the first set of culprits, if it is known by now.
fn cut_short(case: &Case<'_>, answers: &Answers) -> Diagnosis {
    let first = Case {
        scope: Scope::First,
        ..*case
    };
    match next_step(&first, answers) {
        Step::Conclude(diagnosis) => diagnosis,
        Step::Run(_) => Diagnosis {
            role: Role::Random,
            alone: answers.after(&[]),
            culprits: Vec::new(),
            cleaners: Vec::new(),
            is_complete: false,
        },
    }
}
