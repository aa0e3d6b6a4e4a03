//! Which earlier tests make a test fail: halves of the tests before it are left out while it still fails.
//!
//! This is delta debugging (A. Zeller, R. Hildebrandt, 2002) with one run for each question, for a report that is to name
//! the polluter at once; `unflake order` asks more often, and finds all sets.

use crate::test::TestId;

/// A search for a smallest set of tests after which a test fails.
#[derive(Clone, Debug)]
pub struct Search {
    /// The test fails after these.
    failing: Vec<TestId>,
    /// What other tests were seen to need, to be tried first.
    guesses: Vec<Vec<TestId>>,
    /// Into how many parts they are split.
    parts: usize,
    /// Which part is left out next.
    at: usize,
    runs: usize,
}

/// How many runs a search may take.
const MOST_RUNS: usize = 60;

impl Search {
    /// A search among the tests after which it is known to fail. What makes others fail is tried first.
    pub fn among(failing: Vec<TestId>, known: &[Vec<TestId>]) -> Self {
        let may_be = |set: &&Vec<TestId>| {
            set.len() < failing.len() && set.iter().all(|one| failing.contains(one))
        };
        Self {
            guesses: known.iter().filter(may_be).cloned().collect(),
            failing,
            parts: 2,
            at: 0,
            runs: 0,
        }
    }

    /// The tests after which to run it next; `None` if nothing is left to try.
    pub fn next(&self) -> Option<Vec<TestId>> {
        if let Some(guess) = self.guesses.last() {
            return Some(guess.clone());
        }
        let is_open = self.failing.len() > 1 && self.at < self.parts && self.runs < MOST_RUNS;
        is_open.then(|| self.without(self.at))
    }

    /// Takes in whether it failed after them.
    pub fn hear(&mut self, has_failed: bool) {
        self.runs += 1;
        if let Some(guess) = self.guesses.pop() {
            if has_failed {
                self.failing = guess;
                self.guesses.clear();
            }
            return;
        }
        if has_failed {
            self.failing = self.without(self.at);
            self.parts = (self.parts - 1).clamp(2, self.failing.len().max(2));
            self.at = 0;
            return;
        }
        self.at += 1;
        if self.at == self.parts && self.parts < self.failing.len() {
            self.parts = (2 * self.parts).min(self.failing.len());
            self.at = 0;
        }
    }

    /// The tests that are left, if none of them can be left out.
    pub fn found(&self) -> Option<&[TestId]> {
        let is_done = self.failing.len() == 1 || self.at == self.parts;
        is_done.then_some(&self.failing[..])
    }

    fn without(&self, part: usize) -> Vec<TestId> {
        let count = self.failing.len();
        let (first, last) = (part * count / self.parts, (part + 1) * count / self.parts);
        let kept = self.failing[..first].iter().chain(&self.failing[last..]);
        kept.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tests(count: usize) -> Vec<TestId> {
        (0..count).map(|at| TestId::new(&at.to_string())).collect()
    }

    fn search(
        count: usize,
        fails_after: impl Fn(&[TestId]) -> bool,
    ) -> (Option<Vec<TestId>>, usize) {
        let mut search = Search::among(tests(count), &[]);
        while let Some(order) = search.next() {
            search.hear(fails_after(&order));
        }
        (search.found().map(<[TestId]>::to_vec), search.runs)
    }

    #[test]
    fn one_polluter_among_a_thousand_takes_few_runs() {
        let polluter = TestId::new("612");
        let (found, runs) = search(1000, |order| order.contains(&polluter));
        assert_eq!(found, Some(vec![polluter]));
        assert!(runs <= 25, "{runs}");
    }

    #[test]
    fn what_makes_another_test_fail_is_tried_first() {
        let [own, other] = ["612", "7"].map(|name| vec![TestId::new(name)]);
        let mut search = Search::among(tests(1000), &[own.clone(), other]);
        while let Some(order) = search.next() {
            search.hear(order.contains(&own[0]));
        }
        assert_eq!((search.found(), search.runs), (Some(&own[..]), 2));
        let mut search = Search::among(tests(10), std::slice::from_ref(&own));
        let first = search.next().unwrap();
        assert_ne!(first, own, "it does not run before the test");
        search.hear(false);
    }

    #[test]
    fn a_search_without_an_end_names_nobody() {
        // It fails after the whole order only by chance: nothing can be left out, and there are too many to try.
        let (found, runs) = search(1000, |_| false);
        assert_eq!((found, runs), (None, MOST_RUNS));
    }

    proptest! {
        #[test]
        fn a_pair_that_is_needed_together_is_found(count in 2usize..40, one in 0usize..40, other in 0usize..40) {
            let all = tests(count);
            let wanted = [all[one % count].clone(), all[other % count].clone()];
            let (found, runs) = search(count, |order| wanted.iter().all(|test| order.contains(test)));
            if runs < MOST_RUNS {
                let found = found.expect("it has ended");
                prop_assert!(wanted.iter().all(|test| found.contains(test)));
                prop_assert!(found.iter().all(|test| wanted.contains(test)));
            }
        }
    }
}
