//! The board's data, finished: pages and the API show the same.

pub(crate) mod aliases;
pub(crate) mod builds;
pub(crate) mod labels;
pub(crate) mod next;
pub(crate) mod one_test;
pub(crate) mod quarantine;
pub(crate) mod sayings;
pub(crate) mod score;
pub(crate) mod snapshot;
pub(crate) mod stable;
pub(crate) mod suite;
pub(crate) mod suspicion;
pub(crate) mod tests_list;
pub(crate) mod triage;

use std::sync::Arc;

use unflake_core::owners::Owners;
use unflake_core::quarantine::Release;
use unflake_history::periods::PeriodWish;
use unflake_history::run::TestName;
use unflake_history::store::Store;

use self::next::Next;
use self::one_test::OneTest;
use self::quarantine::Quarantine;
use self::score::Score;
use self::snapshot::{Known, Snapshot};
use self::suite::{Suite, Suites};
use self::tests_list::{Row, TestsList};
use self::triage::Triage;
use crate::http::problem::Problem;

/// The board at one moment: each question about it has its answer here, whoever shows it.
pub(crate) struct Board<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) snapshot: &'a Snapshot,
    /// What was last read of releases.
    pub(crate) suites: &'a Suites,
    /// Which days are held against which.
    pub(crate) periods: &'a PeriodWish,
    /// Who looks after which files.
    pub(crate) owners: &'a Owners,
    /// When tests leave quarantine.
    pub(crate) release: Release,
}

impl Board<'_> {
    /// The failures of a day, or since the last stable run.
    pub(crate) fn triage(&self, wanted: &triage::Wanted) -> Result<Triage, Problem> {
        let (store, snapshot) = (self.store, self.snapshot);
        Ok(Triage::read(store, snapshot, self.owners, wanted)?)
    }

    /// A page of the list of tests.
    pub(crate) fn tests(&self, wanted: &tests_list::Wanted) -> TestsList {
        TestsList::read(self.snapshot, self.owners, wanted)
    }

    /// Visits all tests that match, in their order.
    pub(crate) fn visit_tests(&self, wanted: &tests_list::Wanted, each: impl FnMut(&Row)) {
        tests_list::visit(self.snapshot, self.owners, wanted, each);
    }

    /// One test.
    pub(crate) fn test(&self, number: u32) -> Result<OneTest, Problem> {
        let found = OneTest::read(self.store, self.snapshot, self.owners, number)?;
        let missing = "there is no such test, or it has not run lately";
        found.ok_or_else(|| Problem::NotFound(missing.to_owned()))
    }

    /// The suite of the last days, or of a release.
    pub(crate) fn suite(&self, release: Option<&str>) -> Result<Arc<Suite>, Problem> {
        let found = self
            .suites
            .read(self.store, self.snapshot, self.periods, release)?;
        found.ok_or_else(|| Problem::NotFound("there is no such release".to_owned()))
    }

    /// What to run next.
    pub(crate) fn next(&self) -> Next {
        Next::read(self.snapshot)
    }

    /// The tests that are in quarantine at a time, in milliseconds since 1970, and those that have left it.
    pub(crate) fn quarantine(&self, now: i64) -> Result<Quarantine, Problem> {
        let (store, snapshot) = (self.store, self.snapshot);
        Ok(Quarantine::read(store, snapshot, self.release, now)?)
    }

    /// How well the board ranks.
    pub(crate) fn score(&self) -> Score {
        Score::of(&self.snapshot.said)
    }

    /// How many tests flake now, of how many; nothing if there are no runs.
    pub(crate) fn flaky(&self) -> Option<(usize, usize)> {
        let current = self.known()?.entries.iter().filter(|one| one.is_current());
        let flaky = current.clone().filter(|one| one.flaked().failures() > 0);
        Some((flaky.count(), current.count()))
    }

    /// What runs say; nothing if there are none.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.snapshot.known.as_ref().as_ref()
    }

    /// What the test with a number is called.
    fn name(&self, number: u32) -> Result<TestName, Problem> {
        let found = self.store.test_by_number(number)?;
        found.ok_or_else(|| Problem::NotFound("there is no such test".to_owned()))
    }
}
