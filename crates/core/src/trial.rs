//! One run of one test: where, when and why it was made, and how it ended.

use std::fmt;
use std::time::Duration;

use crate::nio::Setting;
use crate::outcome::Outcome;
use crate::test::TestId;

/// One run of one test in one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The test that ran.
    pub test: TestId,
    /// Why it was run.
    pub rung: Rung,
    /// Where it ran.
    pub vm: VmId,
    /// How that VM came to be.
    pub birth: Birth,
    /// The number of trials in that VM before this one.
    pub before: usize,
    /// Whether it found shared fixtures as a plain run would.
    pub fixtures: Fixtures,
    /// Whether its use of files and code was watched, which can change how a test behaves.
    pub is_watched: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The test's own time, as its framework measured it.
    pub duration: Duration,
    /// The time of the trial on the wall clock. The start of its VM is included if it had a new one.
    pub cost: Duration,
    /// The framework's own words about it.
    pub account: Account,
}

/// A framework's own words about a run: empty for a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What was wrong, in a line; for a skip, its reason.
    pub message: String,
    /// The framework's own failure text.
    pub text: String,
    /// What the test wrote, as the framework captured it.
    pub output: String,
    /// The kind of what was raised, as the language names it; empty if it is not known.
    pub kind: String,
    /// The frames of the project that it went through, the outermost first.
    pub frames: Vec<Frame>,
    /// The parts that failed of a test that has several, one for each of its parameters for example.
    pub parts: Vec<Part>,
}

/// A part of a test that makes its parts while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its number, with those of the parts around it: `2` or `1.3`.
    pub number: String,
    /// The framework's name for it; empty if that is not known.
    pub name: String,
}

/// One call on the way to a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The file, as the language names it.
    pub file: String,
    /// The function, as the language names it.
    pub function: String,
    /// The line of source that ran; empty if it is not known.
    pub text: String,
}

/// Why a trial was made: the steps of the ladder of Eloussi 2015, Fig. 3.1, and the checks on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// The suite's own run of the test.
    Suite,
    /// In the same VM, by a rerun plugin that the project itself uses.
    OwnRerun,
    /// In the same VM, right after the failure (RERUN, `C_IMM`).
    Immediate,
    /// In the same VM, after the whole suite (POSTPONE, `C_END`).
    End,
    /// In a VM of its own (FORK, `C_NEW`).
    Fresh,
    /// In a VM of its own, to see whether a pass in the same VM came only from what the failed run had done.
    Look,
    /// Once more in the VM of a failed look, to show that the test passes after itself.
    AfterItself,
    /// In a new interpreter, because until now only a forked VM saw it pass.
    Confirm,
    /// In a fresh VM after the tests of its file that ran before it, with nothing rerun between.
    Replay,
    /// Alone in a new interpreter with another hash seed.
    OtherSeed,
    /// In the order of this run, in a copy of the work tree.
    InOrder,
    /// By itself, in a copy of the work tree.
    Alone,
    /// In a checkout of the base, in the base's own order.
    Base,
    /// By another command, as its report says.
    Report,
    /// The first of two runs in a row.
    Once(Setting),
    /// The second of two runs in a row.
    Again(Setting),
}

impl Rung {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::OwnRerun => "own-rerun",
            Self::Immediate => "immediate",
            Self::End => "end",
            Self::Fresh => "fresh",
            Self::Look => "look",
            Self::AfterItself => "after-itself",
            Self::Confirm => "confirm",
            Self::Replay => "replay",
            Self::OtherSeed => "other-seed",
            Self::InOrder => "in-order",
            Self::Alone => "alone",
            Self::Base => "base",
            Self::Report => "report",
            Self::Once(setting) => setting.label(),
            Self::Again(_) => "again",
        }
    }

    /// Whether it was made to find out whose the failure is; there may be hundreds of such trials.
    pub fn is_for_blame(self) -> bool {
        matches!(self, Self::InOrder | Self::Alone | Self::Base)
    }

    /// Whether it runs in a VM that had run something before.
    pub fn is_same_vm(self) -> bool {
        match self {
            Self::Suite
            | Self::OwnRerun
            | Self::Immediate
            | Self::End
            | Self::AfterItself
            | Self::Report
            | Self::Again(_) => true,
            Self::Once(setting) => setting.is_after_others(),
            Self::Fresh
            | Self::Look
            | Self::Confirm
            | Self::Replay
            | Self::OtherSeed
            | Self::InOrder
            | Self::Alone
            | Self::Base => false,
        }
    }
}

/// Whether a trial found the fixtures that tests share (of class, module or session) as a plain run
/// would have left them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixtures {
    /// As a plain run would.
    AsInPlainRun,
    /// A rerun had torn them down and set them up anew: this one, or for a trial of the suite, one
    /// before it in the same VM and file.
    Rebuilt,
    /// The test was the last to need them, and their tear-down after it failed. The failure is booked
    /// on this test, but it may not even use them: a run of it alone says nothing about it.
    EndedBadly,
}

/// A VM's number in one run of unflake, in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VmId(pub u32);

impl fmt::Display for VmId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "vm{}", self.0)
    }
}

/// The way in which a VM was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// A new interpreter that imported and collected by itself.
    Exec,
    /// A copy of a VM as it was after collection, before any test ran.
    Fork,
    /// By another command: only its report is known.
    Elsewhere,
}

impl Birth {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Fork => "fork",
            Self::Elsewhere => "elsewhere",
        }
    }
}
