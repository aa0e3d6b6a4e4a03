//! What a store keeps, as it is read.

use crate::run::Provenance;

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

/// How far a store has grown: the numbers of its last run and its last label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The last run.
    pub run: i64,
    /// The last label.
    pub label: i64,
}

/// A failure with all that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFailure {
    /// The test's number.
    pub test: u32,
    /// The stream's number.
    pub stream: u32,
    /// The number of its provenance: failures of one report share it.
    pub provenance: u32,
    /// The run.
    pub run: KeptRun,
    /// Why it was run, if that is known.
    pub rung: Option<String>,
}

/// A label with the number of its test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLabel {
    /// When it was said, in milliseconds since 1970.
    pub time: i64,
    /// The test's number.
    pub test: u32,
    /// The run that it is about, if it is about one.
    pub run: Option<i64>,
    /// What it says.
    pub kind: String,
    /// More about it.
    pub value: String,
    /// Who said it.
    pub author: String,
}

/// One row of the scan that builds are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The number of the run's provenance.
    pub provenance: u32,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Whether it made a suite red.
    pub is_failure: bool,
    /// Whether it is the run itself, and not a rerun.
    pub is_first: bool,
}
