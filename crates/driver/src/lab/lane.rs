//! One of several places in which groups of tests run: a VM in a workspace of its own.

use std::collections::VecDeque;
use std::time::Instant;

use nix::unistd::Pid;
use unflake_core::nio::Setting;
use unflake_core::state::Piece;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial, VmId};

use crate::files::workspace::Workspace;
use crate::lab::pending::Asked;
use crate::lab::session::Halt;
use crate::lab::start_error::StartError;
use crate::protocol::messages::{Between, Worker};

/// How groups are run.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) setting: Setting,
    /// What is done between the two runs of a test; `None` runs each once only.
    pub(crate) between: Option<Between>,
    /// Whether each group has a copy of the VM to itself.
    pub(crate) is_apart: bool,
    /// Whether failures need no text but their message.
    pub(crate) is_brief: bool,
}

impl Manner {
    /// Each test once, after those of its group before it, in a copy of the VM.
    pub(crate) fn once(setting: Setting) -> Self {
        Self {
            setting,
            between: None,
            is_apart: true,
            // A search makes many runs, and shows what it found in new interpreters.
            is_brief: setting == Setting::Ordered,
        }
    }

    /// Whether a group is to find the files as they were before any other.
    pub(crate) fn is_alone(self) -> bool {
        self.is_apart || self.setting == Setting::Reloaded
    }
}

/// Tests that run in one VM, one after the other, and how.
pub(crate) struct Group {
    pub(crate) number: usize,
    pub(crate) tests: Vec<TestId>,
    pub(crate) manner: Manner,
}

/// What a lane has to tell of the group with this number.
pub(crate) enum News {
    /// A test of it is about to run.
    Started(TestId, VmId, Rung),
    /// A test of it has run.
    Ran(usize, Box<Trial>),
    /// It is over, and left these files changed; where it was not to be alone, that is not looked at.
    Ended(usize, Vec<String>),
}

/// A VM in a workspace of its own.
pub(crate) struct Lane {
    pub(crate) vm: VmId,
    /// `None` if it works in the user's own files.
    pub(crate) workspace: Option<Workspace>,
    /// Which of several lanes it is, if there are several.
    pub(crate) worker: Option<Worker>,
    /// What is put back before its group runs.
    pub(crate) restore: Vec<String>,
    /// What follows its group in the VM, so that fixtures which they share stay alive.
    pub(crate) next: Option<TestId>,
    /// Whether each group ends with a comparison of the state.
    pub(crate) compares: bool,
    /// What the last comparison showed.
    pub(crate) changed: Vec<Piece>,
    /// Where a copy writes down what it uses, if it does.
    pub(crate) facts: Option<String>,
    /// The number of its group, until it is told that it is over, and how it is run.
    pub(crate) group: Option<usize>,
    pub(crate) manner: Manner,
    /// The runs that are still to be reported.
    pub(crate) expected: VecDeque<(TestId, Rung)>,
    /// The copy that runs them.
    pub(crate) copy: Option<Pid>,
    pub(crate) asked: Option<Asked>,
    /// The VM for its next group, which waits to be told.
    pub(crate) ahead: Option<VmId>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) state: State,
    /// Whether the VM can take no other group: it is gone, or has run tests itself.
    pub(crate) is_spent: bool,
    /// Whether a group has run since its files were put back.
    pub(crate) is_used: bool,
}

/// What the VM of a lane is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is new and has not listed its tests yet.
    Starting,
    Idle,
    /// It has been told something and has not ended it.
    Busy,
}

impl Lane {
    pub(crate) fn new(vm: VmId, workspace: Option<Workspace>, worker: Option<Worker>) -> Self {
        Self {
            vm,
            workspace,
            worker,
            restore: Vec::new(),
            next: None,
            compares: false,
            changed: Vec::new(),
            facts: None,
            group: None,
            manner: Manner::once(Setting::Ordered),
            expected: VecDeque::new(),
            copy: None,
            asked: None,
            ahead: None,
            deadline: None,
            state: State::Idle,
            is_spent: false,
            is_used: false,
        }
    }

    /// One whose VM has just been started, in a new workspace.
    pub(crate) fn starting(vm: VmId, workspace: Option<Workspace>, worker: Option<Worker>) -> Self {
        Self {
            state: State::Starting,
            ..Self::new(vm, workspace, worker)
        }
    }

    /// Whether this VM is its own and has not listed its tests yet.
    pub(crate) fn is_started_by(&self, vm: VmId) -> bool {
        self.state == State::Starting && self.vm == vm
    }

    /// Whether it has nothing to do.
    pub(crate) fn is_done(&self) -> bool {
        self.state != State::Busy && self.expected.is_empty()
    }

    /// Makes what listing the tests has left the state that its files go back to.
    pub(crate) fn mark_once(&mut self) -> Result<(), Halt> {
        match &mut self.workspace {
            Some(workspace) if !workspace.is_marked() => {
                Ok(workspace.mark().map_err(StartError::Scratch)?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Has its group begin again, in a new VM.
    pub(crate) fn start_over(&mut self) {
        (self.state, self.is_spent, self.deadline) = (State::Idle, true, None);
    }

    /// The tests of its group that have still to run.
    pub(crate) fn rest(&self) -> Vec<TestId> {
        let mut rest: Vec<TestId> = self.expected.iter().map(|(test, _)| test.clone()).collect();
        rest.dedup();
        rest
    }
}
