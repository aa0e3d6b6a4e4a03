//! The outcomes of all tests in all orders so far, kept small: an order once, and for each test its places.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use unflake_core::order::work::Work;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::Trial;

/// The runs of a suite in several orders.
#[derive(Default)]
pub(crate) struct Book {
    orders: Vec<Vec<TestId>>,
    runs: HashMap<TestId, Vec<Run>>,
    fastest: HashMap<TestId, Duration>,
}

/// One run of a test.
#[derive(Clone, Copy)]
struct Run {
    /// The order that it was in.
    order: usize,
    /// The place from which on the tests before it ran in the same VM.
    from: usize,
    /// Its own place.
    at: usize,
    is_pass: bool,
}

impl Book {
    /// Takes in one order, as far as its tests ran.
    pub(crate) fn note(&mut self, trials: &[Trial]) {
        let order = self.orders.len();
        let tests = trials.iter().map(|trial| trial.test.clone());
        self.orders.push(tests.collect());
        let mut from = 0;
        for (at, trial) in trials.iter().enumerate() {
            let is_pass = trial.outcome.is_pass();
            if is_pass || trial.outcome.is_failure() {
                let run = Run {
                    order,
                    from,
                    at,
                    is_pass,
                };
                self.runs.entry(trial.test.clone()).or_default().push(run);
                let fastest = self.fastest.entry(trial.test.clone());
                let fastest = fastest.or_insert(trial.duration);
                *fastest = trial.duration.min(*fastest);
            }
            if trial.outcome.ends_vm() {
                from = at + 1;
            }
        }
    }

    /// The tests that passed and failed.
    pub(crate) fn suspects(&self, tests: &[Test]) -> Vec<TestId> {
        let is_suspect = |test: &&Test| {
            let runs = self.runs.get(&test.id).map_or(&[][..], Vec::as_slice);
            runs.iter().any(|run| run.is_pass) && runs.iter().any(|run| !run.is_pass)
        };
        tests
            .iter()
            .filter(is_suspect)
            .map(|test| test.id.clone())
            .collect()
    }

    /// The tests that failed in every order.
    pub(crate) fn never_passed(&self, tests: &[Test]) -> Vec<TestId> {
        let never = |test: &&Test| {
            let runs = self.runs.get(&test.id).map_or(&[][..], Vec::as_slice);
            !runs.is_empty() && runs.iter().all(|run| !run.is_pass)
        };
        tests
            .iter()
            .filter(never)
            .map(|test| test.id.clone())
            .collect()
    }

    /// Tests after which a test ended otherwise than alone, the fewest first.
    pub(crate) fn leads(&self, test: &TestId, most: usize) -> Vec<Vec<TestId>> {
        let runs = self.runs.get(test).map_or(&[][..], Vec::as_slice);
        let passes_alone = self.passes_alone(test);
        let mut odd: Vec<&Run> = runs
            .iter()
            .filter(|run| run.is_pass != passes_alone && run.at > run.from)
            .collect();
        odd.sort_by_key(|run| run.at - run.from);
        let befores = odd
            .iter()
            .map(|run| self.orders[run.order][run.from..run.at].to_vec());
        befores.take(most).collect()
    }

    /// The ends of leads before which a test ended as it does alone.
    pub(crate) fn guesses(&self, test: &TestId, leads: &[Vec<TestId>]) -> Vec<Vec<TestId>> {
        let runs = self.runs.get(test).map_or(&[][..], Vec::as_slice);
        let passes_alone = self.passes_alone(test);
        let plain = runs.iter().filter(|run| run.is_pass == passes_alone);
        let plain = plain.map(|run| &self.orders[run.order][run.from..run.at]);
        let plain: Vec<&[TestId]> = plain.filter(|before| !before.is_empty()).collect();
        let mut guesses: Vec<Vec<TestId>> = Vec::new();
        for lead in leads {
            let beginnings = plain.iter().filter(|before| lead.starts_with(before));
            let longest = beginnings.map(|before| before.len()).max();
            let guess = longest.map(|length| lead[length..].to_vec());
            guesses.extend(guess.filter(|guess| !guess.is_empty() && !guesses.contains(guess)));
        }
        guesses
    }

    /// All runs of a test that stood last in its order, but those of leads, which are picked for how they
    /// ended: what it ran after, and whether it passed.
    pub(crate) fn last_runs(&self, test: &TestId, leads: &[Vec<TestId>]) -> Vec<(&[TestId], bool)> {
        let runs = self.runs.get(test).map_or(&[][..], Vec::as_slice);
        let last = runs
            .iter()
            .filter(|run| run.from == 0 && run.at + 1 == self.orders[run.order].len());
        let last = last.map(|run| (&self.orders[run.order][..run.at], run.is_pass));
        last.filter(|(before, _)| !leads.iter().any(|lead| lead == before))
            .collect()
    }

    /// Forgets how a test ended after others.
    pub(crate) fn forget(&mut self, test: &TestId) {
        if let Some(runs) = self.runs.get_mut(test) {
            runs.retain(|run| run.at == run.from);
        }
    }

    /// Whether a test passes alone; `true` as long as that is not known.
    pub(crate) fn passes_alone(&self, test: &TestId) -> bool {
        let runs = self.runs.get(test).map_or(&[][..], Vec::as_slice);
        let mut alone = runs.iter().filter(|run| run.at == run.from);
        alone.next().is_none_or(|run| run.is_pass)
    }

    /// Whether every test stands in an order that was run.
    pub(crate) fn has_all(&self, tests: &[Test]) -> bool {
        let run: HashSet<&TestId> = self.orders.iter().flatten().collect();
        tests.iter().all(|test| run.contains(&test.id))
    }

    /// The work of a run, for each test that has run.
    pub(crate) fn work(&self) -> HashMap<TestId, Work> {
        let all = self.fastest.iter();
        all.map(|(test, fastest)| (test.clone(), Work::of_test(*fastest)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use unflake_core::outcome::Outcome;
    use unflake_core::trial::{Account, Birth, Fixtures, Rung, VmId};

    use super::*;

    fn trial(name: &str, millis: u64) -> Trial {
        let duration = Duration::from_millis(millis);
        Trial {
            test: TestId::new(name),
            rung: Rung::Suite,
            vm: VmId(0),
            birth: Birth::Fork,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome: Outcome::Passed,
            duration,
            cost: duration,
            account: Account::default(),
        }
    }

    #[test]
    fn runs_that_a_busy_machine_made_slow_do_not_make_a_test_count_for_more() {
        let mut book = Book::default();
        book.note(&[trial("a", 900), trial("b", 70)]);
        book.note(&[trial("b", 300), trial("a", 1)]);
        let work = book.work();
        assert_eq!(work[&TestId::new("a")], Work(1));
        assert_eq!(work[&TestId::new("b")], Work(128));
    }
}
