//! A test run twice alone: in a new interpreter, with all files as they were at the start.

use std::collections::VecDeque;
use std::time::Instant;

use unflake_core::event::Event;
use unflake_core::nio::{Pair, Setting};
use unflake_core::trial::{Rung, Trial, VmId};

use crate::lab::lane::{Lane, Manner};
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::nio::hunt::to_pair;
use crate::protocol::messages::Between;

impl Session {
    /// Runs a suspect twice in a new interpreter, with all files as they were at the start.
    pub(crate) fn pair_alone(&mut self, at: usize, setting: Setting) -> Result<Pair, Halt> {
        let since = Instant::now();
        let test = self.suspects[at].test.clone();
        let (once, again) = match self.open_alone(at)? {
            Err((vm, said)) => {
                let asked = self.ask(test, Rung::Once(setting), vm, since);
                let trial = asked.not_collected(&said);
                self.tell(Event::TrialEnded(trial.clone()));
                let rung = Rung::Again(setting);
                (trial.clone(), Trial { rung, ..trial })
            }
            Ok(lane) => self.twice_alone(at, lane, setting)?,
        };
        let pair = to_pair(&once, &again);
        self.suspects[at].trials.extend([once, again]);
        Ok(pair)
    }

    /// A new interpreter that lists a suspect: it alone, or if need be with the whole suite. What the
    /// last one said if none does.
    fn open_alone(&mut self, at: usize) -> Result<Result<Lane, (VmId, String)>, Halt> {
        let test = self.suspects[at].test.clone();
        let setup = self.wish.project.setup(self.listed());
        let mut trouble = None;
        for is_alone in [true, false] {
            let mut workspace = self.new_workspace()?;
            let project = self.project_in(workspace.as_ref());
            let setup = setup.moved(self.listing_place(), &self.place(workspace.as_ref()));
            let start = if is_alone {
                project.start_alone(&setup, &test)
            } else {
                Some(project.start(true, &setup.replay))
            };
            let Some(start) = start else { continue };
            let process = project.process(&self.fleet.folder(), &start);
            let process = process.map_err(StartError::Scratch)?;
            let vm = self.fleet.spawn(process, Some(start))?;
            let Some(said) = self.await_test(at, vm)? else {
                if let Some(workspace) = &mut workspace {
                    workspace.mark().map_err(StartError::Scratch)?;
                }
                return Ok(Ok(Lane::new(vm, workspace, None)));
            };
            self.leave(Some(vm))?;
            trouble = Some((vm, said));
        }
        Ok(Err(trouble.expect("the whole suite is always tried")))
    }

    fn twice_alone(
        &mut self,
        at: usize,
        lane: Lane,
        setting: Setting,
    ) -> Result<(Trial, Trial), Halt> {
        let between = match setting {
            Setting::TornDown => Between::TearDown,
            Setting::Collected => Between::Collect,
            Setting::Suite
            | Setting::Class
            | Setting::Method
            | Setting::Reloaded
            | Setting::Confirm
            | Setting::Together
            | Setting::Replay
            | Setting::Plain
            | Setting::Alone
            | Setting::Ordered => Between::Nothing,
        };
        let manner = Manner {
            setting,
            between: Some(between),
            is_apart: false,
            is_brief: false,
        };
        let group = vec![self.suspects[at].test.clone()];
        let mut lanes = [lane];
        let pairs = self.run_twice(&mut lanes, VecDeque::from([group]), manner)?;
        let [mut lane] = lanes;
        if let Some(workspace) = &mut lane.workspace {
            let restored = workspace.restore().map_err(StartError::Scratch)?;
            self.suspects[at].left_behind = restored.changed;
        }
        // Its folder goes after it: on its way out it may write there.
        self.leave(Some(lane.vm))?;
        let pair = pairs.into_iter().next();
        Ok(pair.expect("a test that is run twice has two trials"))
    }
}
