//! Everything that happens in a run, as one stream.
//!
//! The driver writes it; the console, the reports and history read it. None of them calls another.

use std::time::Duration;

use crate::latent::Latent;
use crate::order::{Culprit, Role};
use crate::test::{Test, TestId};
use crate::trial::{Birth, Rung, Trial, VmId};
use crate::verdict::Finding;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A VM answered for the first time.
    VmStarted {
        /// Its number.
        vm: VmId,
        /// How it came to be.
        birth: Birth,
    },
    /// The framework has listed its tests.
    Listed(Listing),
    /// A file could not be collected.
    CollectionFailed(CollectionError),
    /// A failure in a report could not be matched with a test.
    Unmatched {
        /// The report's name for it.
        case: String,
        /// Why not.
        why: String,
    },
    /// Something that the user should know once.
    Noted(Note),
    /// A test is about to run.
    TrialStarted {
        /// The test.
        test: TestId,
        /// Where.
        vm: VmId,
        /// Why.
        rung: Rung,
    },
    /// A test has run only to make the state that a trial of another is to find.
    Prepared {
        /// The test.
        test: TestId,
        /// Where.
        vm: VmId,
    },
    /// A test has run.
    TrialEnded(Trial),
    /// The last test of the suite has run; reruns follow.
    SuiteEnded {
        /// The time of the suite on the wall clock, immediate reruns included.
        elapsed: Duration,
        /// The number of tests that failed at first.
        failures: usize,
        /// Whether these are too many to run again.
        too_many_failures: bool,
    },
    /// The search for whose failures these are goes on.
    Blaming {
        /// The test.
        test: TestId,
        /// The number of failures that are answered.
        done: usize,
        /// The number of failures in all.
        total: usize,
    },
    /// A search goes on.
    Searching {
        /// The part of the search that goes on.
        stage: Stage,
        /// The number of orders that have run.
        done: usize,
        /// The number of orders that are to run.
        total: usize,
    },
    /// A search knows which tests ended in different ways; it looks into them now.
    Detected {
        /// How many.
        suspects: usize,
        /// The number of orders in which the suite ran, or the tests that were asked about.
        orders: usize,
        /// The time that this took on the wall clock.
        elapsed: Duration,
    },
    /// A search knows tests that make one end otherwise than alone; it goes on for all of them, and for
    /// the state behind it.
    CulpritFound {
        /// The one.
        test: TestId,
        /// What it is.
        role: Role,
        /// The tests.
        culprit: Culprit,
    },
    /// Tests leave a piece of state changed, although no test fails for it.
    Latent(Latent),
    /// The framework's own session failed for a reason that is no test's.
    SessionFailed {
        /// Where.
        vm: VmId,
        /// What was wrong, and the end of the framework's output.
        reason: String,
    },
    /// A failed test has its verdict.
    Judged(Finding),
    /// Nothing more will happen.
    Ended(Ending),
}

/// What a search for order dependence is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Running each test alone.
    Alone,
    /// Running the suite in several orders.
    Orders,
    /// Running each test before one that has never passed.
    Setters(TestId),
    /// Looking for the culprits of a test.
    Culprits(TestId),
    /// Trying culprits on all other tests.
    Others(Vec<TestId>),
    /// Looking at what each test leaves changed.
    Leftovers,
    /// Showing a finding in new interpreters.
    Showing(TestId),
}

/// What the framework found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The framework's name and version: "pytest 8.3.2".
    pub framework: String,
    /// The language's version: "Python 3.11.7".
    pub language: String,
    /// The folder that test files are relative to.
    pub root: String,
    /// The tests in the framework's own order.
    pub tests: Vec<Test>,
    /// The number of tests that the framework left out because of its own options.
    pub deselected: usize,
    /// The number of VMs in which the suite runs.
    pub jobs: usize,
    /// The framework arguments that make another run the same, a seed for example.
    pub replay: Vec<String>,
    /// The user's framework arguments without the paths and ids among them.
    pub options: Vec<String>,
    /// The language, the framework and what else is installed beside the project, each with its version; `None`
    /// if nobody can say.
    pub installed: Option<Vec<String>>,
    /// The seed of the language's hashes in all VMs, if one was drawn for the run.
    pub hash_seed: Option<u32>,
}

/// A file or folder that the framework could not collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionError {
    /// The place of the error, as the framework names it.
    pub place: String,
    /// The framework's own text.
    pub text: String,
}

/// Something that the user should know once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The project's own options switch pytest-xdist on.
    WorkersReplaced {
        /// The number of VMs that take the place of its workers.
        jobs: usize,
    },
    /// The framework's own report is not written, because there are several VMs.
    OwnReportLeftOut {
        /// The file that it would have written, or whose report it is.
        report: String,
    },
    /// The project's own settings run tests in several VMs or at the same time; here they run one after
    /// the other in one VM.
    OneVm {
        /// The settings that are left aside.
        settings: Vec<String>,
        /// Whether they give each test class its own VM: then one class affects another only once they share a VM.
        is_by_class: bool,
    },
    /// Nobody can see which lines write the state behind findings.
    WritesUnseen {
        /// Why not.
        why: String,
    },
    /// The state behind some NIO tests was not looked for, because there are many.
    Unexplained {
        /// Those tests, in the order in which they were found.
        tests: Vec<TestId>,
        /// The number of other tests for which it was looked for.
        explained: usize,
    },
    /// The runner cannot look at the state of its VMs.
    StateUnseen,
    /// Many tests needed no VM of their own, although each was to have one: they passed twice on classes that were
    /// loaded for them alone.
    Screened {
        /// The number of tests that passed in this way, or were skipped.
        passed: usize,
        /// The number of tests that ran in VMs of their own.
        alone: usize,
    },
    /// Fresh VMs cannot be forked.
    ForkUnavailable {
        /// Why not.
        why: String,
    },
    /// A forked VM did not come to an end or died, and its trial was made again in a new interpreter.
    ForkGivenUp {
        /// The test that ran in it.
        test: TestId,
        /// What happened to the copied process.
        why: String,
    },
    /// Test cases of a report failed at first and passed when the other command ran them again.
    PassedInReport {
        /// How many.
        cases: usize,
    },
    /// The latest changes cannot be compared with what failing tests use.
    NoBase {
        /// Why.
        why: String,
        /// The command that would help, if there is one.
        fetch: Option<String>,
    },
    /// Experiments run in the user's own files, and what tests leave there is not undone.
    InPlace {
        /// Why.
        why: String,
    },
    /// A search that was cut off was taken up.
    Resumed {
        /// The number of its orders that did not have to run again.
        orders: usize,
    },
    /// The time that a search may take is over, and it was not done.
    BudgetSpent,
    /// The list of tests in quarantine cannot be had, so that it excuses nobody.
    QuarantineUnread {
        /// Where it should be.
        place: String,
        /// Why it cannot be read.
        why: String,
    },
    /// Tests were in quarantine, and their time is over.
    QuarantineOver {
        /// Which.
        tests: Vec<String>,
    },
    /// A VM did not end after it was told to, and was killed.
    VmLingered {
        /// The VM.
        vm: VmId,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All that was to be done was done.
    Completed,
    /// The framework stopped the suite by its own rules, `-x` for example.
    Stopped {
        /// The framework's reason.
        reason: String,
    },
    /// A VM that was to go on with the suite could not start, so tests have not run.
    CutShort {
        /// What was wrong with it.
        reason: String,
    },
    /// A test ended the whole session on purpose, with `pytest.exit` for example.
    Quit {
        /// The test.
        test: TestId,
        /// Its reason.
        reason: String,
    },
    /// The time that it may take was over before every test had run.
    OutOfTime,
    /// The user interrupted it.
    Interrupted,
}
