//! A VM in which culprits have run: it says what they changed, and lets tests try what matters of it.
//!
//! A new interpreter remembers its state, runs the culprits and says what is different. Then copies of
//! it put pieces back and run a test.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::{Duration, Instant};

use unflake_core::nio::Setting;
use unflake_core::state::Piece;
use unflake_core::test::TestId;

use crate::cause::find::Family;
use crate::lab::lane::{Lane, Manner};
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages::Command;
use crate::vm::event::Happening;

/// The longest time that the runner may take to remember, to compare, or to run tests line by line.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most tries of a scene with nothing put back, until the test ends there as it does after its culprits.
const CONTROLS: usize = 8;

/// A VM in which the culprits have run, and what they changed.
pub(crate) struct Scene {
    lane: Lane,
    /// The class or file of the test that was to follow: fixtures that it shares are still alive.
    surroundings: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) unseen: Vec<String>,
    /// Whether each try has a VM of its own, because copies of the VM do not show the effect.
    is_exec: bool,
}

impl Scene {
    /// Whether the scene is as it would be if this test came next.
    pub(crate) fn is_for(&self, test: &TestId) -> bool {
        self.surroundings == surroundings(test)
    }

    /// The key of a piece in this very VM: a port that is chosen at random has another one in each.
    fn own_key(&self, key: String) -> String {
        let kind = key.split(':').next().unwrap_or_default();
        let mut alike = self.pieces.iter().filter(|piece| piece.kind == kind);
        match (alike.next(), alike.next()) {
            (Some(only), None) => only.key.clone(),
            _ => key,
        }
    }

    /// Lets each try from now on have a VM of its own; false if that is how it is already.
    pub(crate) fn leave_copies(&mut self) -> bool {
        self.lane.is_spent |= !self.is_exec;
        !std::mem::replace(&mut self.is_exec, true)
    }
}

/// The class or file of a test.
fn surroundings(test: &TestId) -> &str {
    let (around, _) = test.name().rsplit_once("::").unwrap_or_default();
    around
}

impl Session {
    /// A new interpreter in which the culprits have run.
    pub(crate) fn open_scene(
        &mut self,
        family: &Family,
        test: &TestId,
    ) -> Result<Option<Scene>, Halt> {
        // All that will use it.
        let around = surroundings(test);
        let near = family
            .tests
            .iter()
            .filter(|one| surroundings(one) == around);
        let near: Vec<TestId> = near.cloned().collect();
        let mut lane = self.open_lane_for(&family.with(&near), family.reach)?;
        lane.next = Some(test.clone());
        let Some(Happening::Marked(_, mut unseen)) = self.tell_state(&lane, &Command::Mark {})?
        else {
            self.leave_lane(lane)?;
            return Ok(None);
        };
        let manner = Manner {
            is_apart: false,
            ..Manner::once(Setting::Ordered)
        };
        let vm = lane.vm;
        let mut lanes = [lane];
        if !family.by_import {
            self.run_each(&mut lanes, std::slice::from_ref(&family.culprits), manner)?;
        }
        let [mut lane] = lanes;
        lane.next = None;
        if lane.vm != vm {
            // A culprit took its VM with it: nothing of what it did there is left.
            self.leave_lane(lane)?;
            return Ok(None);
        }
        let import = family.imported();
        let compare = Command::Compare { import };
        let Some(Happening::Changed(_, mut pieces, more)) = self.tell_state(&lane, &compare)?
        else {
            self.leave_lane(lane)?;
            return Ok(None);
        };
        let new: Vec<String> = more
            .into_iter()
            .filter(|one| !unseen.contains(one))
            .collect();
        unseen.extend(new);
        self.tell_as_own(&lane, &mut pieces);
        if let Some(workspace) = &mut lane.workspace {
            workspace.mark().map_err(StartError::Scratch)?;
        }
        Ok(Some(Scene {
            lane,
            surroundings: surroundings(test).to_owned(),
            pieces,
            unseen,
            is_exec: false,
        }))
    }

    /// Whether the test ends otherwise than alone in a scene with nothing put back.
    ///
    /// Threads and child processes do not live on in a copy, and a port stays taken by the original: then each try
    /// gets a VM of its own. Culprits that have their effect only by chance get several tries.
    pub(crate) fn check_scene(
        &mut self,
        scene: &mut Scene,
        family: &Family,
        test: &TestId,
    ) -> Result<bool, Halt> {
        for attempt in 0..CONTROLS {
            // The first in a copy, the second in the VM itself, the others in copies of new VMs.
            scene.is_exec = attempt == 1;
            scene.lane.is_spent |= attempt > 1;
            let control = self.try_pieces(scene, family, test, Vec::new())?;
            if control == Some(!family.passes_alone) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Paths of a copy in what pieces were and are, as the user's own. Where there is no copy, files are left.
    fn tell_as_own(&self, lane: &Lane, pieces: &mut [Piece]) {
        let Some(workspace) = &lane.workspace else {
            return leave_files(pieces);
        };
        let own = self.place(None);
        let temporary = workspace.temporary();
        for piece in pieces {
            let texts = [piece.before.as_mut(), piece.after.as_mut()];
            for text in texts.into_iter().flatten() {
                *text = workspace
                    .tell(text, &own)
                    .replace(temporary.as_str(), "$TMPDIR");
            }
        }
    }

    /// Whether the test passes with these pieces put back; `None` if that cannot be told.
    pub(crate) fn try_pieces(
        &mut self,
        scene: &mut Scene,
        family: &Family,
        test: &TestId,
        keys: Vec<String>,
    ) -> Result<Option<bool>, Halt> {
        if scene.lane.is_spent {
            // Its VM could not be copied, or has run the test itself: each try has one of its own.
            let gone = Lane::new(scene.lane.vm, None, None);
            self.leave_lane(std::mem::replace(&mut scene.lane, gone))?;
            scene.lane.is_spent = true;
            let Some(anew) = self.open_scene(family, test)? else {
                return Ok(None);
            };
            let is_exec = scene.is_exec;
            *scene = Scene { is_exec, ..anew };
        }
        let keys = keys.into_iter().map(|key| scene.own_key(key));
        scene.lane.restore = keys.collect();
        let order = vec![vec![test.clone()]];
        let manner = Manner {
            is_apart: !scene.is_exec,
            ..Manner::once(Setting::Ordered)
        };
        let trials = self.run_each(std::slice::from_mut(&mut scene.lane), &order, manner)?;
        scene.lane.is_spent |= scene.is_exec;
        let own = trials.iter().flatten().next_back();
        Ok(own.and_then(|trial| trial.outcome.passed()))
    }

    pub(crate) fn leave_scene(&mut self, scene: Option<Scene>) -> Result<(), Halt> {
        scene.map_or(Ok(()), |scene| self.leave_lane(scene.lane))
    }

    /// Tells a VM something about its state, and waits for the answer; `None` if the VM is gone.
    pub(crate) fn tell_state(
        &mut self,
        lane: &Lane,
        command: &Command,
    ) -> Result<Option<Happening>, Halt> {
        self.fleet.tell(lane.vm, command);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(Some(deadline))? {
                answer @ (Happening::Marked(vm, ..)
                | Happening::Changed(vm, ..)
                | Happening::Located(vm, ..))
                    if vm == lane.vm =>
                {
                    return Ok(Some(answer));
                }
                Happening::Ended(vm, _) if vm == lane.vm => return Ok(None),
                Happening::Deadline => {
                    self.fleet.kill(lane.vm);
                    return Ok(None);
                }
                _ => {}
            }
        }
    }
}

/// Marks changed files so that they are reported and never undone: without a copy of the work tree they are the user's
/// own.
fn leave_files(pieces: &mut [Piece]) {
    for piece in pieces.iter_mut().filter(|piece| piece.kind == "file") {
        piece.is_restorable = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_files_are_never_put_back() {
        let mut pieces = ["file", "global"].map(|kind| Piece {
            key: kind.to_owned(),
            kind: kind.to_owned(),
            path: "shop".to_owned(),
            before: None,
            after: None,
            owner: None,
            is_mock: false,
            is_restorable: true,
            ends: Vec::new(),
        });
        leave_files(&mut pieces);
        assert_eq!(pieces.map(|piece| piece.is_restorable), [false, true]);
    }
}
