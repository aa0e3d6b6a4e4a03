//! Experiments: tests that run in one VM, one after the other, in known conditions.
//!
//! An experiment is data. A technique asks for it, and a lab makes it: `driver` in VMs, the tests on paper.

use crate::nio::Setting;
use crate::test::TestId;

/// Tests that run in one VM, one after the other.
///
/// A lab whose VM is lost under a test goes on with the tests after it in a new one of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// The VM in which they run.
    pub vm: VmSpec,
    /// The tests, in the order in which they run. There is at least one.
    pub order: Vec<TestId>,
    /// How often each of them runs before the next one does.
    pub times: Times,
    /// The word for its trials in reports. It decides nothing about how they run.
    pub setting: Setting,
    /// Which of its trials the readers of events hear of.
    pub told: TrialsTold,
}

/// The VM of an experiment: what it has done before, and in which files it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmSpec {
    /// A VM that has collected the whole suite and has run no test.
    Suite,
    /// A copy of such a VM, or a new one where VMs cannot be copied. The files are as they were at the start.
    Copied,
    /// A VM that other experiments use too. The project's classes are loaded anew for this one, and the files are as
    /// they were at the start.
    Reloaded,
    /// A new process that collects only these tests where it can. The files are as they were at the start.
    New,
}

/// How often each test of an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// One time.
    Once,
    /// Two times in a row, with this between them.
    Twice(Between),
}

/// What is done between two runs of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: shared fixtures stay alive, as between two tests of a suite.
    Nothing,
    /// All fixtures are torn down.
    TearDown,
    /// The garbage is collected.
    Collect,
}

/// Which trials of an experiment the readers of events hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialsTold {
    /// All of them.
    All,
    /// Both trials of each test that passed or was skipped both times. The others say nothing.
    Content,
}

/// What a lab can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether a VM can be copied, so that a fresh one is cheap.
    pub copies: bool,
    /// Whether the project's classes can be loaded anew within a VM.
    pub reloads: bool,
    /// How many VMs work at the same time; at least one.
    pub lanes: usize,
}
