//! The diagnosis of a test that ended in different ways: orders are run until the technique concludes.

use std::time::Instant;

use unflake_core::event::{Event, Stage};
use unflake_core::order::answers::Answers;
use unflake_core::order::trunk::find_trunk;
use unflake_core::order::work::Work;
use unflake_core::order::{Case, Dependence, Diagnosis, Role, Scope, Step, next_step};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::lab::session::{Halt, Session};
use crate::lab::shared_prefix::Until;
use crate::order::search::{Found, Search};

/// The most leads that are followed for one test.
const MOST_LEADS: usize = 3;

impl Session {
    /// Runs what the technique asks for until it concludes, or the time is over.
    pub(crate) fn diagnose(&mut self, search: &mut Search, test: &TestId) -> Result<Found, Halt> {
        let began = Instant::now();
        let others = self.others(test);
        let leads = search.book.leads(test, MOST_LEADS);
        let guesses = search.book.guesses(test, &leads);
        let hints = search.sets().into_iter().filter(|set| !set.contains(test));
        let hints: Vec<Vec<TestId>> = hints.collect();
        let work = search.book.work();
        let fresh = self.fresh_work();
        let price = |order: &[TestId]| -> Work {
            let one = |test: &TestId| work.get(test).copied().unwrap_or(Work(1));
            fresh + order.iter().chain([test]).map(one).sum()
        };
        let mut case = Case {
            others: &others,
            leads: &leads,
            guesses: &guesses,
            hints: &hints,
            width: search.lanes.len(),
            shares: false,
            scope: Scope::First,
            patience: search.patience,
            price: &price,
        };
        let mut shown: Vec<Trial> = Vec::new();
        recall_runs(search, test, &leads);
        let (diagnosis, is_cut) = loop {
            let answers = search.answers.entry(test.clone()).or_default();
            case.shares = !search.unshared.contains(test) && !answers.is_mixed();
            match next_step(&case, answers) {
                Step::Conclude(diagnosis)
                    if case.scope == Scope::All || diagnosis.culprits.is_empty() =>
                {
                    break (diagnosis, false);
                }
                Step::Conclude(diagnosis) => {
                    self.tell_first(test, &diagnosis);
                    case.scope = Scope::All;
                }
                Step::Run(befores) => {
                    if !self.run_asked(search, test, &befores, &mut shown)? {
                        let answers = search.answers.entry(test.clone()).or_default();
                        break (cut_short(&case, answers), true);
                    }
                }
            }
        };
        let dependence = Dependence {
            diagnosis,
            runs: search.answers.get(test).map_or(0, Answers::runs),
            spent: began.elapsed(),
            is_cut,
            by_import: false,
            needs_suite: false,
        };
        let trials = shown;
        Ok(Found { dependence, trials })
    }

    /// Runs a test after each of these, and takes the answers in; false if the time was over before.
    fn run_asked(
        &mut self,
        search: &mut Search,
        test: &TestId,
        befores: &[Vec<TestId>],
        shown: &mut Vec<Trial>,
    ) -> Result<bool, Halt> {
        let stage = Stage::Culprits(test.clone());
        let orders = befores
            .iter()
            .map(|before| [&before[..], std::slice::from_ref(test)].concat());
        let orders: Vec<Vec<TestId>> = orders.collect();
        let answers = search.answers.entry(test.clone()).or_default();
        let shares = !search.unshared.contains(test) && !answers.is_mixed();
        let trunk = find_trunk(&orders).filter(|_| shares);
        let (done, is_whole): (Vec<(usize, Vec<Trial>)>, bool) = match trunk {
            Some(trunk) if !search.is_over() => {
                // Questions that stay unanswered are asked again.
                let done = self.run_shared(search, &orders, &trunk, Until::End)?;
                self.tell(Event::Searching {
                    stage,
                    done: done.len(),
                    total: orders.len(),
                });
                (done, true)
            }
            Some(_) | None => {
                let done = self.run_orders(search, &orders, &stage)?;
                let is_whole = done.len() == orders.len();
                (done.into_iter().enumerate().collect(), is_whole)
            }
        };
        let answers = search.answers.entry(test.clone()).or_default();
        for (order, trials) in done {
            take_in(answers, test, &befores[order], trials, shown);
        }
        Ok(is_whole)
    }

    /// Tells the first set of culprits, long before all is known.
    fn tell_first(&self, test: &TestId, diagnosis: &Diagnosis) {
        if let Some(culprit) = diagnosis.culprits.first() {
            self.tell(Event::CulpritFound {
                test: test.clone(),
                role: diagnosis.role,
                culprit: culprit.clone(),
            });
        }
    }
}

/// Lets the runs that detection made count as answers.
fn recall_runs(search: &mut Search, test: &TestId, leads: &[Vec<TestId>]) {
    let answers = search.answers.entry(test.clone()).or_default();
    if answers.runs() > 0 {
        return;
    }
    for (before, is_pass) in search.book.last_runs(test, leads) {
        let outcome = if is_pass {
            Outcome::Passed
        } else {
            Outcome::Failed
        };
        answers.note(before, &outcome);
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

/// The diagnosis when the time is over: the first set of culprits, if it is known by now.
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
