//! The state behind an order dependence: what the culprits changed, put back piece by piece.
//!
//! A new interpreter remembers its state, runs the culprits and says what is different. Then copies of
//! it put pieces back and run the test. Which pieces to try is decided in `unflake_core::state`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::{Duration, Instant};

use unflake_core::nio::Setting;
use unflake_core::state::{Cause, Culprits, Piece, Place, Shown, Step, Tried, next_step};
use unflake_core::test::TestId;

use crate::happening::Happening;
use crate::lane::{Lane, Manner};
use crate::protocol::{Command, Name};
use crate::session::{Halt, Session};
use crate::start_error::StartError;
use crate::wire_state::WirePlace;

/// So long the runner may take to remember, to compare, or to run tests line by line.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often a scene is tried with nothing put back until it shows what it is to show.
const CONTROLS: usize = 8;
/// More pieces than this are not tried.
const MOST_PIECES: usize = 2000;
/// So many suspects are named.
const MOST_SUSPECTS: usize = 10;

/// A VM in which the culprits have run, and what they changed.
struct Scene {
    lane: Lane,
    pieces: Vec<Piece>,
    unseen: Vec<String>,
    /// Whether copies of the VM do not show it, so that each try has a VM of its own.
    is_exec: bool,
}

impl Session {
    /// What of the state that `culprits` change makes `test` end otherwise than alone; `None` if it
    /// cannot be looked at.
    pub(crate) fn find_cause(
        &mut self,
        culprits: &[TestId],
        test: &TestId,
        passes_alone: bool,
    ) -> Result<Option<Cause>, Halt> {
        if !self.wish.project.tells_state() {
            return Ok(None);
        }
        let Some(mut scene) = self.open_scene(culprits, test)? else {
            return Ok(None);
        };
        let is_shown = self.check_scene(&mut scene, culprits, test, passes_alone)?;
        let restorable = scene
            .pieces
            .iter()
            .filter(|piece| piece.is_restorable && is_shown);
        let restorable: Vec<Piece> = restorable.take(MOST_PIECES).cloned().collect();
        let mut tried = Tried::new();
        let found = loop {
            match next_step(restorable.len(), &tried) {
                Step::Conclude(found) => break found,
                Step::Try(sets) => {
                    for set in sets {
                        let keys = set.iter().map(|at| restorable[*at].key.clone()).collect();
                        let passed = self.try_piece(&mut scene, culprits, test, keys)?;
                        tried.insert(set, passed == Some(passes_alone));
                    }
                }
            }
        };
        let Scene {
            lane,
            pieces,
            unseen,
            ..
        } = scene;
        self.leave(Some(lane.vm))?;
        let (mut shown, is_joint) = match found {
            Culprits::None => (Vec::new(), false),
            Culprits::Each(set) => (set, false),
            Culprits::Joint(set) => (set, true),
        };
        let changed = pieces.len();
        let named: Vec<Piece> = shown.drain(..).map(|at| restorable[at].clone()).collect();
        let suspects: Vec<Piece> = if named.is_empty() {
            // Those that cannot be put back first: nothing speaks against them.
            let (helpless, other): (Vec<Piece>, Vec<Piece>) =
                pieces.into_iter().partition(|piece| !piece.is_restorable);
            let suspects = helpless.into_iter().chain(other);
            suspects.take(MOST_SUSPECTS).collect()
        } else {
            Vec::new()
        };
        let keys = named.iter().chain(&suspects).map(|piece| piece.key.clone());
        let places = self.find_places(culprits, test, keys.collect())?;
        let with_place = |piece: Piece| {
            let place = places.iter().find(|place| place.key == piece.key);
            let place = place.and_then(Self::to_place);
            Shown { piece, place }
        };
        let mut cause = Cause {
            shown: named.into_iter().map(with_place).collect(),
            is_joint,
            suspects: suspects.into_iter().map(with_place).collect(),
            changed,
            unseen,
            fix: None,
        };
        if passes_alone {
            cause.fix = self.find_fix(culprits, test, &cause)?;
        }
        Ok(Some(cause))
    }

    /// A new interpreter in which the culprits have run.
    fn open_scene(&mut self, culprits: &[TestId], test: &TestId) -> Result<Option<Scene>, Halt> {
        let mut lane = self.open_ready_lane()?;
        lane.next = Some(test.clone());
        let Some(Happening::Marked(_, mut unseen)) = self.tell_state(&lane, &Command::Mark {})?
        else {
            self.leave(Some(lane.vm))?;
            return Ok(None);
        };
        let manner = Manner {
            is_apart: false,
            ..Manner::once(Setting::Ordered)
        };
        let vm = lane.vm;
        let mut lanes = [lane];
        self.run_each(&mut lanes, &[culprits.to_vec()], manner)?;
        let [mut lane] = lanes;
        lane.next = None;
        if lane.vm != vm {
            // A culprit took its VM with it: nothing of what it did there is left.
            self.leave(Some(lane.vm))?;
            return Ok(None);
        }
        let Some(Happening::Changed(_, mut pieces, more)) =
            self.tell_state(&lane, &Command::Compare {})?
        else {
            self.leave(Some(lane.vm))?;
            return Ok(None);
        };
        unseen.extend(more);
        self.tell_as_own(&lane, &mut pieces);
        if let Some(workspace) = &mut lane.workspace {
            workspace.mark().map_err(StartError::Scratch)?;
        }
        Ok(Some(Scene {
            lane,
            pieces,
            unseen,
            is_exec: false,
        }))
    }

    /// Whether the test ends otherwise than alone in a scene with nothing put back.
    ///
    /// Threads and child processes do not live on in a copy, and a port stays taken by the original: then
    /// each try gets a VM of its own. Culprits that do it by chance get several goes.
    fn check_scene(
        &mut self,
        scene: &mut Scene,
        culprits: &[TestId],
        test: &TestId,
        passes_alone: bool,
    ) -> Result<bool, Halt> {
        for attempt in 0..CONTROLS {
            // The first in a copy, the second in the VM itself, the others in copies of new VMs.
            scene.is_exec = attempt == 1;
            scene.lane.is_spent |= attempt > 1;
            let control = self.try_piece(scene, culprits, test, Vec::new())?;
            if control == Some(!passes_alone) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Paths of a copy in what pieces were and are, as the user's own.
    fn tell_as_own(&self, lane: &Lane, pieces: &mut [Piece]) {
        let Some(workspace) = &lane.workspace else {
            return;
        };
        let own = self.place(None);
        let temporary = workspace.temporary();
        for piece in pieces {
            let texts = [piece.before.as_mut(), piece.after.as_mut()];
            for text in texts.into_iter().flatten() {
                *text = text
                    .replace(workspace.files().as_str(), own.as_str())
                    .replace(temporary.as_str(), "$TMPDIR");
            }
        }
    }

    /// Whether the test passes with these pieces put back; `None` if that cannot be told.
    fn try_piece(
        &mut self,
        scene: &mut Scene,
        culprits: &[TestId],
        test: &TestId,
        keys: Vec<String>,
    ) -> Result<Option<bool>, Halt> {
        if scene.lane.is_spent {
            // Its VM could not be copied, or has run the test itself: each try has one of its own.
            let spent = scene.lane.vm;
            let Some(anew) = self.open_scene(culprits, test)? else {
                return Ok(None);
            };
            let is_exec = scene.is_exec;
            *scene = Scene { is_exec, ..anew };
            self.leave(Some(spent))?;
        }
        scene.lane.restore = keys;
        let order = vec![vec![test.clone()]];
        let manner = Manner {
            is_apart: !scene.is_exec,
            ..Manner::once(Setting::Ordered)
        };
        let trials = self.run_each(std::slice::from_mut(&mut scene.lane), &order, manner)?;
        scene.lane.is_spent |= scene.is_exec;
        let own = trials.iter().flatten().next_back();
        Ok(own
            .map(|trial| &trial.outcome)
            .filter(|outcome| outcome.is_pass() || outcome.is_failure())
            .map(unflake_core::outcome::Outcome::is_pass))
    }

    /// Where the culprits write these pieces; what is known from another of their victims is not asked
    /// again.
    fn find_places(
        &mut self,
        culprits: &[TestId],
        test: &TestId,
        keys: Vec<String>,
    ) -> Result<Vec<WirePlace>, Halt> {
        let known = self.written.entry(culprits.to_vec()).or_default();
        let is_known = |key: &String| known.iter().any(|place| place.key == *key);
        if !keys.iter().all(is_known) {
            let places = self.trace_writes(culprits, test, keys)?;
            self.written
                .entry(culprits.to_vec())
                .or_default()
                .extend(places);
        }
        Ok(self.written[culprits].clone())
    }

    fn trace_writes(
        &mut self,
        culprits: &[TestId],
        test: &TestId,
        keys: Vec<String>,
    ) -> Result<Vec<WirePlace>, Halt> {
        let lane = self.open_ready_lane()?;
        let mut places = Vec::new();
        if let Some(Happening::Marked(..)) = self.tell_state(&lane, &Command::Mark {})? {
            let command = Command::Locate {
                keys,
                tests: culprits.iter().map(Name::from).collect(),
                next: Some(Name::from(test)),
            };
            if let Some(Happening::Located(_, found)) = self.tell_state(&lane, &command)? {
                places = found;
            }
        }
        // Paths are told as the user's own while the copy is still there.
        let copy = self.place(lane.workspace.as_ref());
        for place in &mut places {
            let inside = place.file.as_deref().map(camino::Utf8Path::new);
            let inside = inside.and_then(|file| file.strip_prefix(&copy).ok());
            if let Some(inside) = inside {
                place.file = Some(inside.to_string());
            }
        }
        self.leave(Some(lane.vm))?;
        Ok(places)
    }

    fn to_place(wire: &WirePlace) -> Option<Place> {
        Some(Place {
            file: wire.file.clone()?,
            line: wire.line?,
            function: wire.function.clone().unwrap_or_default(),
        })
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
