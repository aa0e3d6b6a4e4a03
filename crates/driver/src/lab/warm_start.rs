//! What is done once so that many fresh VMs start sooner, where a VM cannot be copied.

use std::collections::VecDeque;

use unflake_core::nio::Setting;
use unflake_core::test::TestId;

use crate::lab::lane::Manner;
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;

/// Fewer VMs than this do not pay for it.
const MANY: usize = 12;

/// So many tests show which classes are needed.
const SAMPLE: usize = 8;

impl Session {
    /// Has the classes of dependencies read once for all fresh VMs to come, if these tests are many.
    ///
    /// Some of the tests run once for it. How they end is of no interest.
    pub(crate) fn prepare_fresh_vms(&mut self, tests: &[TestId]) -> Result<(), Halt> {
        if tests.len() < MANY || !self.home.project.wants_archive() {
            return Ok(());
        }
        let step = tests.len().div_ceil(SAMPLE);
        let sample: Vec<TestId> = tests.iter().step_by(step).cloned().collect();
        let lane = self.open_unused_lane(None)?;
        let mut lanes = [lane];
        self.home.project.list_classes(true);
        let manner = Manner::once(Setting::Ordered);
        let ran = self.run_groups(&mut lanes, VecDeque::from([sample]), manner);
        self.home.project.list_classes(false);
        ran?;
        // The list is complete when the JVM has ended.
        self.leave_lanes(lanes.into())?;
        let made = self.home.project.make_archive(&self.fleet.folder());
        Ok(made.map_err(StartError::Scratch)?)
    }
}
