//! VMs that are started before they are needed, where a VM cannot be copied and each group takes a new one.
//!
//! Such a VM says hello and waits. It has loaded the framework and no test, so it holds no port, file or lock
//! that a test in another VM could miss.

use std::process::Command as Process;

use unflake_core::test::TestId;
use unflake_core::trial::VmId;

use crate::files::workspace::Workspace;
use crate::lab::lane::{Lane, State};
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages::Command;

impl Session {
    /// While a lane is busy with a group, starts the VM for the next one.
    pub(crate) fn start_ahead(
        &mut self,
        lane: &mut Lane,
        next: Option<&Vec<TestId>>,
    ) -> Result<(), Halt> {
        let is_wanted = lane.manner.is_apart
            && lane.state == State::Busy
            && lane.ahead.is_none()
            && self.home.project.starts_ahead();
        if let Some(tests) = next.filter(|_| is_wanted) {
            let (process, _) = self.process_in(lane.workspace.as_ref(), tests)?;
            lane.ahead = Some(self.fleet.spawn(process, None)?);
        }
        Ok(())
    }

    /// A VM for tests of a lane: the one that was started ahead, or a new one.
    pub(crate) fn take_vm(&mut self, lane: &mut Lane, tests: &[TestId]) -> Result<VmId, Halt> {
        let (process, start) = self.process_in(lane.workspace.as_ref(), tests)?;
        let ahead = lane.ahead.take();
        if let Some(vm) = ahead.filter(|vm| self.fleet.vm(*vm).is_some()) {
            self.fleet.launch(vm, start);
            return Ok(vm);
        }
        Ok(self.fleet.spawn(process, Some(start))?)
    }

    /// Ends what was started ahead and is not needed, or stands in a folder that is gone.
    pub(crate) fn drop_ahead(&mut self, lane: &mut Lane) {
        if let Some(vm) = lane.ahead.take() {
            self.fleet.kill(vm);
        }
    }

    /// The process of a VM in a workspace, and what it is told first.
    pub(crate) fn process_in(
        &self,
        workspace: Option<&Workspace>,
        tests: &[TestId],
    ) -> Result<(Process, Command), Halt> {
        let project = self.project_in(workspace);
        let start = self.watched(project.start_for(tests, &self.listed().replay));
        let process = project.process(&self.fleet.folder(), &start);
        Ok((process.map_err(StartError::Scratch)?, start))
    }
}
