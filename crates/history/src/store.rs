//! What a history must be able to do, wherever it is kept.

use std::path::PathBuf;

use crate::batch::Batch;
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Label, Provenance, TestName};

/// A history of runs. Runs and labels are only ever added.
pub trait Store {
    /// Adds all runs of one source, or none of them.
    ///
    /// A source whose digest is there already is not added again. The digest is asked for when the batches
    /// have come to their end.
    fn append(&mut self, source: &mut dyn Source) -> Result<Appended, StoreError>;

    /// Adds labels.
    fn append_labels(&mut self, labels: &[Label]) -> Result<(), StoreError>;

    /// All tests by number.
    fn tests(&self) -> Result<Vec<(u32, TestName)>, StoreError>;

    /// All streams by number.
    fn streams(&self) -> Result<Vec<Stream>, StoreError>;

    /// Visits all counts. Those of a test come in any order of days, and a day may come in parts.
    fn visit_daily(
        &self,
        rule: FlakyRule,
        visit: &mut dyn FnMut(DailyCount),
    ) -> Result<(), StoreError>;

    /// One test's runs in a range of times, in the order of time: all that the page of a test shows.
    fn runs_of(&self, tests: &[u32], from: i64, to: i64) -> Result<Vec<KeptRun>, StoreError>;

    /// Visits the runs that count, of some streams in a range of times: time, test, and whether it failed.
    fn visit_runs(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError>;

    /// All labels in the order in which they were added.
    fn labels(&self) -> Result<Vec<Label>, StoreError>;

    /// Which revisions ran in a range of times, with their first time, in the order of these.
    fn revisions(
        &self,
        stream: &[u32],
        from: i64,
        to: i64,
    ) -> Result<Vec<(String, i64)>, StoreError>;

    /// The mean duration of each test's runs, in seconds, over its last runs.
    fn durations(&self) -> Result<Vec<(u32, f64)>, StoreError>;
}

/// What tells bytes from all others.
pub fn digest_of(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// Runs that want to be added.
pub trait Source {
    /// The next runs; `None` when there are no more.
    fn next_batch(&mut self) -> Option<Batch>;

    /// What tells this source from all others. `Err` if it turned out that it must not be added.
    fn digest(&mut self) -> Result<[u8; 32], Refused>;

    /// What it is called.
    fn name(&self) -> String;

    /// The digest of what was installed when its tests ran, if that is known.
    fn installed(&self) -> Option<[u8; 32]> {
        None
    }

    /// Of what and how its tests were run, if unflake itself ran them.
    fn conditions(&self) -> Option<Conditions> {
        None
    }
}

/// Of what and how unflake ran tests. Failures of such runs have fingerprints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The name of the repository, for people: revisions tell projects apart by themselves.
    pub project: String,
    /// In how many VMs the suite ran.
    pub jobs: u32,
    /// The seed of Python's hashes, if the user fixed it.
    pub hash_seed: Option<String>,
}

/// The source could not be read to its end, so nothing of it is added. It knows why itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// What came of adding a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// All its runs are there now.
    Added {
        /// How many.
        runs: u64,
    },
    /// They had been there before.
    Known,
    /// The source could not be read to its end: nothing was added.
    Refused,
}

/// A branch and a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its number in the store.
    pub number: u32,
    /// May be empty.
    pub branch: String,
    /// May be empty.
    pub release: String,
}

/// A run as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRun {
    /// Its number.
    pub number: i64,
    /// Milliseconds since 1970.
    pub time: i64,
    /// The word for how it ended.
    pub outcome: String,
    /// See [`crate::run::Row::attempt`].
    pub attempt: u32,
    /// Microseconds.
    pub duration: Option<i64>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What its failure has in common with others.
    pub signature: Option<String>,
    /// An example of such a failure.
    pub example: Option<String>,
    /// The bug that was filed.
    pub bug: Option<String>,
    /// The verdict on it.
    pub verdict: Option<String>,
    /// Which failure it is, if it was kept since there are fingerprints.
    pub fingerprint: Option<String>,
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
