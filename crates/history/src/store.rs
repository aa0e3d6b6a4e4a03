//! What a history must be able to do, wherever it is kept.

pub mod evidence;
pub mod folder;
pub mod kept;
pub mod source;

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::PathBuf;

use self::evidence::{Evidence, Question};
use self::folder::{Left, PassedRun};
use self::kept::{Extent, KeptFailure, KeptLabel, KeptRun, Scanned, Stream};
use self::source::{Appended, Source};
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Label, Provenance, TestName};

/// A history of runs. Runs and labels are only ever added.
///
/// Tests, streams, provenances, runs and labels have numbers, which an engine gives them and which only grow. Times are
/// milliseconds since 1970, and both ends of a range belong to it. A source is seen as a whole or not at all, and so are the
/// labels of one call; nothing is promised across calls, so that an engine without transactions can do it.
pub trait Store: Debug + Send {
    /// Where it is: for people, and to open it again.
    fn place(&self) -> String;

    /// How many bytes it takes.
    fn bytes(&self) -> Result<u64, StoreError>;

    /// Makes the questions of a server quick, where an engine has to be told so. Stores that are only filled and counted
    /// need not pay for it.
    fn prepare_to_serve(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Adds all runs of one source, or none of them.
    ///
    /// A source whose digest is there already is not added again. The digest is asked for when the batches
    /// have come to their end.
    fn append(&mut self, source: &mut dyn Source) -> Result<Appended, StoreError>;

    /// Adds sources whose digests are known before their batches are read, each as a whole or not at all. An engine may
    /// do it faster than one by one; after an error it is not known which of them are there.
    fn append_all(&mut self, sources: &mut [&mut dyn Source]) -> Result<Vec<Appended>, StoreError> {
        let sources = sources.iter_mut();
        sources.map(|source| self.append(*source)).collect()
    }

    /// Whether a source with this digest was added.
    fn has_import(&self, digest: &[u8; 32]) -> Result<bool, StoreError>;

    /// Adds labels.
    fn append_labels(&mut self, labels: &[Label]) -> Result<(), StoreError>;

    /// All labels in the order in which they were added.
    fn labels(&self) -> Result<Vec<KeptLabel>, StoreError>;

    /// How far the store has grown.
    fn extent(&self) -> Result<Extent, StoreError>;

    /// All tests by number.
    fn tests(&self) -> Result<Vec<(u32, TestName)>, StoreError>;

    /// The test with a number.
    fn test_by_number(&self, number: u32) -> Result<Option<TestName>, StoreError>;

    /// The number of the last test that was added; 0 if there is none.
    fn last_test(&self) -> Result<u32, StoreError>;

    /// All streams by number.
    fn streams(&self) -> Result<Vec<Stream>, StoreError>;

    /// All provenances by number, with the numbers of their streams.
    fn provenances(&self) -> Result<HashMap<u32, (u32, Provenance)>, StoreError>;

    /// Visits all counts. Those of a test come in any order of days, and a day may come in parts.
    fn visit_daily(
        &self,
        rule: FlakyRule,
        visit: &mut dyn FnMut(DailyCount),
    ) -> Result<(), StoreError>;

    /// Visits the runs that count, of some streams in a range of times: time, test, and whether it failed.
    fn visit_runs(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError>;

    /// Visits the runs that count, of some tests in a range of times: time, stream, and whether it failed. The counts of
    /// days long past are made of them.
    fn visit_days_of(
        &self,
        tests: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError>;

    /// Visits all runs after a number that count, in the order of their numbers.
    fn scan_after(&self, number: i64, visit: &mut dyn FnMut(Scanned)) -> Result<(), StoreError>;

    /// The runs of a test, which may have several numbers, in a range of times and in the order of time.
    fn runs_of(&self, tests: &[u32], from: i64, to: i64) -> Result<Vec<KeptRun>, StoreError>;

    /// The last runs of a test, the newest first.
    fn last_runs_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError>;

    /// The last failures of a test, the newest first.
    fn failures_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError>;

    /// The failures in a range of times, first runs only, in the order of time.
    fn failures_between(&self, from: i64, to: i64) -> Result<Vec<KeptFailure>, StoreError>;

    /// Which tests failed in which provenances, of first runs in a range of times.
    fn failure_places(&self, from: i64, to: i64) -> Result<Vec<(u32, u32)>, StoreError>;

    /// How many reruns of each test passed in a range of times.
    fn passed_reruns(&self, from: i64, to: i64) -> Result<HashMap<u32, u32>, StoreError>;

    /// Which revisions ran in a range of times, with their first time, in the order of these.
    fn revisions(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
    ) -> Result<Vec<(String, i64)>, StoreError>;

    /// The mean duration of each test's runs, in seconds, over its last runs.
    fn durations(&self) -> Result<Vec<(u32, f64)>, StoreError>;

    /// How a test fared in the suite's own runs at the revisions that `is_wanted`, without other changes, in the same
    /// folder, with the same installed. `None` if there is no such run.
    fn evidence(
        &self,
        question: &Question<'_>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Evidence>, StoreError>;

    /// When a suite was first run at a revision, without other changes, in the same folder and before a time.
    fn first_tested(
        &self,
        source: &str,
        revision: &str,
        before: i64,
    ) -> Result<Option<i64>, StoreError>;

    /// The tests that had run before a failure in its VM, in their order, reruns included. `None` if it is not known.
    fn past_of(&self, run: i64) -> Result<Option<Vec<TestName>>, StoreError>;

    /// Keeps what a run left behind in a folder of a machine. What many later runs left takes its place.
    fn add_leftovers(&mut self, place: &str, leftovers: &[Left]) -> Result<(), StoreError>;

    /// What runs left behind in a folder of a machine.
    fn leftovers(&self, place: &str) -> Result<Vec<Left>, StoreError>;

    /// Keeps the last run that passed in a folder of a project, in the place of the one before.
    fn keep_passed(
        &mut self,
        project: &str,
        source: &str,
        run: &PassedRun,
    ) -> Result<(), StoreError>;

    /// The last run that passed in a folder of a project.
    fn passed(&self, project: &str, source: &str) -> Result<Option<PassedRun>, StoreError>;
}

/// What tells bytes from all others.
pub fn digest_of(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// Why a store does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none.
    #[error("there is no history at {}", .path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be opened or made.
    #[error("cannot open the history {}", .path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It was made by a newer unflake.
    #[error("the history {} has format {theirs}, and this unflake knows formats up to {ours}", .path.display())]
    Newer {
        /// Where.
        path: PathBuf,
        /// Its format.
        theirs: i64,
        /// The newest that we know.
        ours: i64,
    },
    /// It is no history of ours, or its pages are damaged.
    #[error("{} is damaged, or no history of unflake", .path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What the database says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process writes and does not come to an end.
    #[error("another process has been writing to {} for too long", .path.display())]
    Busy {
        /// Where.
        path: PathBuf,
    },
    /// The disk is full or cannot be written to.
    #[error("cannot write to the history {}: nothing was added", .path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
