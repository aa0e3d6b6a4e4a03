//! The tests that ended in different ways, one after the other, and those that the same culprits may
//! reach.

use unflake_core::event::Stage;
use unflake_core::order::Role;
use unflake_core::order::orders::{after_each, after_once};
use unflake_core::order::work::Work;
use unflake_core::test::TestId;

use crate::lab::session::{Halt, Session};
use crate::order::search::{Found, Ordering, Search};

/// The work that may be spent on runs of one test after each other one, for all suspects together.
const QUICK: Work = Work(30_000);
/// Lower and upper bound of the work spent on one suspect.
const LEAST_PATIENCE: Work = Work(200);
pub(crate) const MOST_PATIENCE: Work = Work(3_000);

impl Session {
    /// Looks into every test that ended in different ways, and then into those that the culprits of one
    /// may have as well, until there are no more.
    pub(crate) fn look_into(
        &mut self,
        search: &mut Search,
        named: &[TestId],
        wish: &Ordering,
    ) -> Result<(), Halt> {
        let mut tried: Vec<Vec<TestId>> = Vec::new();
        loop {
            let is_wanted = |test: &TestId| named.is_empty() || named.contains(test);
            let suspects = search.book.suspects(&self.tests).into_iter();
            let suspects = suspects.chain(search.book.never_passed(&self.tests));
            let open = suspects.filter(|test| is_wanted(test) && !search.found.contains_key(test));
            let open: Vec<TestId> = open.collect();
            let share = Work(QUICK.0 / open.len().max(1) as u64);
            search.patience = share.clamp(LEAST_PATIENCE, MOST_PATIENCE);
            for test in open {
                if search.is_over() {
                    return Ok(());
                }
                let mut found = self.diagnose(search, &test)?;
                if found.is_elusive() && search.along.remove(&test) {
                    // Copies may have changed things outside of their VM, and so have misled the runs after them.
                    search.unshared.insert(test.clone());
                    search.book.forget(&test);
                    self.detect_plainly(search, &test, wish)?;
                    let again = self.diagnose(search, &test)?;
                    if !again.is_elusive() {
                        found = again;
                    }
                }
                if found.dependence.diagnosis.role == Role::Broken
                    && let Some((dependence, trials)) = self.find_imports(&test, false)?
                {
                    found = Found { dependence, trials };
                }
                search.found.insert(test, found);
            }
            let sets = search.sets();
            let Some(set) = sets.into_iter().find(|set| !tried.contains(set)) else {
                return Ok(());
            };
            if !named.is_empty() {
                return Ok(());
            }
            self.try_on_others(search, &set)?;
            tried.push(set);
        }
    }

    /// Runs all tests that nothing is known about after a set of culprits.
    fn try_on_others(&mut self, search: &mut Search, set: &[TestId]) -> Result<(), Halt> {
        let others = self.tests.iter().map(|test| test.id.clone());
        let others = others.filter(|test| !set.contains(test) && !search.found.contains_key(test));
        let others: Vec<TestId> = others.collect();
        let cleaners = search
            .found
            .values()
            .map(|found| &found.dependence.diagnosis);
        let cleaners = cleaners.flat_map(|diagnosis| &diagnosis.cleaners);
        let cleaners: Vec<TestId> = cleaners.cloned().collect();
        let orders = if self.fresh_work() * others.len() <= MOST_PATIENCE {
            after_each(set, &others)
        } else {
            after_once(set, &others, &cleaners)
        };
        self.run_orders(search, &orders, &Stage::Others(set.to_vec()))?;
        Ok(())
    }
}

impl Found {
    /// Whether it is not known what the test depends on, although it ended in different ways.
    fn is_elusive(&self) -> bool {
        let role = self.dependence.diagnosis.role;
        !self.dependence.is_cut && !matches!(role, Role::Victim | Role::Brittle)
    }
}
