//! What the history keeps of one run of one test.

use std::sync::Arc;

use unflake_core::outcome::Outcome;

use crate::past::Past;

/// What a test is called in the history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TestName {
    /// The framework's own name, or what a report calls it.
    pub name: String,
    /// The place among tests of the same name.
    pub copy: u32,
    /// Whether the framework itself said so. A name from a report is its class and its name, with a dot
    /// between them, and may be the same test under another name.
    pub is_own: bool,
}

/// Where a run comes from. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Provenance {
    /// The revision of the code, ending in `+` if there were changes besides.
    pub revision: String,
    /// The branch.
    pub branch: String,
    /// The release that was tested.
    pub release: String,
    /// The machine or equipment: the papers' STP.
    pub environment: String,
    /// What ran it: a job of a CI system.
    pub job: String,
}

/// How a run ended, as a number that the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ended(u8);

/// The words for how runs end, by number. New ones come at the end: numbers stand in stores.
pub const ENDINGS: [&str; 9] = [
    "passed", "failed", "error", "skipped", "xfailed", "xpassed", "not-run", "timeout", "crashed",
];

impl Ended {
    /// It passed.
    pub const PASSED: Self = Self(0);
    /// It failed.
    pub const FAILED: Self = Self(1);
    /// Its set-up or tear-down failed.
    pub const ERRORED: Self = Self(2);
    /// It was not run.
    pub const SKIPPED: Self = Self(3);

    /// How a trial ended.
    pub fn of(outcome: &Outcome) -> Self {
        Self(match outcome {
            Outcome::Passed => 0,
            Outcome::Failed => 1,
            Outcome::Errored => 2,
            Outcome::Skipped => 3,
            Outcome::ExpectedFailure => 4,
            Outcome::UnexpectedPass => 5,
            Outcome::NotRun => 6,
            Outcome::TimedOut { .. } => 7,
            Outcome::VmDied { .. } => 8,
        })
    }

    /// The number in the store, if it is one that we know.
    pub fn from_number(number: i64) -> Option<Self> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < ENDINGS.len()).then_some(Self(number))
    }

    /// The number in the store.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        ENDINGS[usize::from(self.0)]
    }

    /// Whether it makes a suite red.
    pub fn is_failure(self) -> bool {
        matches!(self.0, 1 | 2 | 7 | 8)
    }

    /// Whether it shows that the test can pass.
    pub fn is_pass(self) -> bool {
        matches!(self.0, 0 | 5)
    }

    /// Whether it is a run at all: a skip says nothing about a test.
    pub fn counts(self) -> bool {
        self.is_failure() || self.is_pass()
    }
}

/// One run of one test, with its test and provenance as places in a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The test's place in the batch.
    pub test: u32,
    /// The provenance's place in the batch.
    pub provenance: u32,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// How it ended.
    pub ended: Ended,
    /// 1 for the run itself, 2 and up for reruns after it, 0 for an experiment that says nothing about how
    /// often the test fails.
    pub attempt: u32,
    /// How long it took, in microseconds.
    pub duration: Option<i64>,
    /// What few runs have.
    pub more: Option<Box<More>>,
}

/// What is known of few runs only, mostly of failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct More {
    /// Why it was run, in the words of a report.
    pub rung: Option<String>,
    /// The number of the VM.
    pub vm: Option<u32>,
    /// What failures of the same kind have in common.
    pub signature: Option<String>,
    /// The failure's own message, cut.
    pub message: String,
    /// The bug that was filed for it.
    pub bug: Option<String>,
    /// The verdict on the failure, in the words of a report.
    pub verdict: Option<String>,
    /// Which failure it is: the text of its fingerprint.
    pub fingerprint: Option<String>,
    /// For a failure, what ran before it in its VM, if that is known.
    pub past: Option<Arc<Past>>,
}

/// What is said about a test or a run later. Labels are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// When it was said, in milliseconds since 1970.
    pub time: i64,
    /// The test.
    pub test: TestName,
    /// The run that it is about, by its number in the store; all of the test's runs without it.
    pub run: Option<i64>,
    /// What it says: `bug`, `quarantined`, `resolved`.
    pub kind: String,
    /// The bug's id, the reason.
    pub value: String,
    /// Who said it.
    pub author: String,
}
