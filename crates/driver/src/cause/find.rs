//! The state behind an order dependence: what the culprits changed, put back piece by piece.
//!
//! Which pieces to try is decided in `unflake_core::state`; `scene` is where they are tried.

use unflake_core::event::Note;
use unflake_core::state::{
    Cause, Culprits, Piece, Place, Shown, Step, Tried, next_step, without_means,
};
use unflake_core::test::TestId;

use crate::cause::scene::Scene;
use crate::framework::maven::debugger::Looking;
use crate::lab::session::{Halt, Session, if_listed};
use crate::protocol::messages::{Command, Name};
use crate::protocol::state::WirePlace;
use crate::vm::event::Happening;

/// The most pieces that are tried.
const MOST_PIECES: usize = 2000;
/// The kinds of pieces that a copy of a VM shares with its original: closed in one of them, they stay open in the
/// other.
const SHARED: [&str; 2] = ["port", "descriptor"];
/// The most suspects that are named.
const MOST_SUSPECTS: usize = 10;

/// The tests that a VM collects before it runs any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Just these tests.
    Tests,
    /// The whole suite.
    Suite,
}

/// Tests that the same culprits make end otherwise than alone.
#[derive(Clone)]
pub(crate) struct Family {
    pub(crate) culprits: Vec<TestId>,
    pub(crate) tests: Vec<TestId>,
    pub(crate) passes_alone: bool,
    /// Whether the culprits are files, whose import alone has the effect.
    pub(crate) by_import: bool,
    /// The collection in which it is seen.
    pub(crate) reach: Reach,
}

impl Family {
    /// The family of a test that fails after itself.
    pub(crate) fn of_own(test: TestId) -> Self {
        Self {
            culprits: vec![test.clone()],
            tests: vec![test],
            passes_alone: true,
            by_import: false,
            reach: Reach::Tests,
        }
    }

    /// A family with the same culprits and no tests yet.
    pub(crate) fn without_tests(&self, reach: Reach) -> Self {
        Self {
            tests: Vec::new(),
            reach,
            ..self.clone()
        }
    }

    /// A VM's tests: the culprits, if they are tests, and those that follow.
    pub(crate) fn with(&self, tests: &[TestId]) -> Vec<TestId> {
        let new = tests.iter().filter(|test| !self.culprits.contains(test));
        self.polluting().iter().chain(new).cloned().collect()
    }

    /// The culprits that are tests.
    pub(crate) fn polluting(&self) -> &[TestId] {
        if self.by_import { &[] } else { &self.culprits }
    }

    /// The culprits that are files.
    pub(crate) fn imported(&self) -> Vec<String> {
        let files = self.culprits.iter().filter(|_| self.by_import);
        files.map(|file| file.name().to_owned()).collect()
    }

    /// Whether another family could be part of this one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.culprits == other.culprits && self.passes_alone == other.passes_alone
    }
}

impl Session {
    /// The causes of the tests, one for each: the part of the state changed by the culprits that makes the test end
    /// otherwise than alone, and how that could be mended. `None` if the state cannot be examined.
    pub(crate) fn find_causes(&mut self, family: &Family) -> Result<Vec<Option<Cause>>, Halt> {
        let mut causes = self.find_state(family)?;
        if family.passes_alone && !family.by_import {
            if_listed(self.add_fixes(family, &mut causes))?;
        }
        Ok(causes)
    }

    /// The causes of the tests without a way to mend them.
    pub(crate) fn find_state(&mut self, family: &Family) -> Result<Vec<Option<Cause>>, Halt> {
        if !self.wish.project.tells_state() {
            return Ok(vec![None; family.tests.len()]);
        }
        self.home.project.look_for(Looking::State);
        let causes = self.find_all_pieces(family);
        self.home.project.look_for(Looking::Nothing);
        let mut causes = causes?;
        self.home.project.look_for(Looking::Writes);
        let added = if_listed(self.add_places(family, &mut causes));
        self.home.project.look_for(Looking::Nothing);
        added?;
        Ok(causes)
    }

    /// The pieces that matter to each of the tests, without places.
    fn find_all_pieces(&mut self, family: &Family) -> Result<Vec<Option<Cause>>, Halt> {
        let mut causes = Vec::new();
        let mut scene: Option<Scene> = None;
        for test in &family.tests {
            if scene.is_none() && self.wish.project.learns_state() {
                let learned = if_listed(self.open_scene(family, test))?.flatten();
                self.leave_scene(learned)?;
            }
            if scene.as_ref().is_some_and(|scene| !scene.is_for(test)) {
                self.leave_scene(scene.take())?;
            }
            if scene.is_none() {
                scene = if_listed(self.open_scene(family, test))?.flatten();
            }
            let Some(open) = &mut scene else {
                causes.push(None);
                continue;
            };
            let cause = if_listed(self.find_pieces(open, family, test))?;
            if cause.is_none() {
                self.leave_scene(scene.take())?;
            }
            causes.push(cause);
        }
        self.leave_scene(scene)?;
        Ok(causes)
    }

    /// Puts back what was changed until it is known what of it matters to a test.
    fn find_pieces(
        &mut self,
        scene: &mut Scene,
        family: &Family,
        test: &TestId,
    ) -> Result<Cause, Halt> {
        let is_shown = self.check_scene(scene, family, test)?;
        let restorable = scene
            .pieces
            .iter()
            .filter(|piece| piece.is_restorable && is_shown);
        let mut restorable: Vec<Piece> = restorable.take(MOST_PIECES).cloned().collect();
        let (mut shown, mut is_joint) = self.put_back_some(scene, family, test, &restorable)?;
        restorable.retain(|piece| SHARED.contains(&piece.kind.as_str()));
        if shown.is_empty() && !restorable.is_empty() && scene.leave_copies() {
            (shown, is_joint) = self.put_back_some(scene, family, test, &restorable)?;
        }
        if !is_joint {
            shown = without_means(shown);
        }
        let suspects: Vec<Piece> = if shown.is_empty() {
            // The pieces that cannot be put back come first: nothing speaks against them.
            let pieces = scene.pieces.iter().cloned();
            let (helpless, other): (Vec<Piece>, Vec<Piece>) =
                pieces.partition(|piece| !piece.is_restorable);
            let suspects = helpless.into_iter().chain(other);
            suspects.take(MOST_SUSPECTS).collect()
        } else {
            Vec::new()
        };
        let without_place = |piece| Shown { piece, place: None };
        Ok(Cause {
            shown: shown.into_iter().map(without_place).collect(),
            is_joint,
            suspects: suspects.into_iter().map(without_place).collect(),
            changed: scene.pieces.len(),
            unseen: scene.unseen.clone(),
            fix: None,
        })
    }

    /// The pieces that make the test end as it does alone when they are put back, and whether it takes all of them.
    fn put_back_some(
        &mut self,
        scene: &mut Scene,
        family: &Family,
        test: &TestId,
        pieces: &[Piece],
    ) -> Result<(Vec<Piece>, bool), Halt> {
        let mut tried = Tried::new();
        let found = loop {
            match next_step(pieces.len(), &tried) {
                Step::Conclude(found) => break found,
                Step::Try(sets) => {
                    for set in sets {
                        let keys = set.iter().map(|at| pieces[*at].key.clone()).collect();
                        let passed = self.try_pieces(scene, family, test, keys)?;
                        tried.insert(set, passed == Some(family.passes_alone));
                    }
                }
            }
        };
        let (set, is_joint) = match found {
            Culprits::None => (Vec::new(), false),
            Culprits::Each(set) => (set, false),
            Culprits::Joint(set) => (set, true),
        };
        let shown = set.iter().map(|at| pieces[*at].clone()).collect();
        Ok((shown, is_joint))
    }

    /// Adds where the culprits write the pieces, as one run of them line by line shows it.
    fn add_places(&mut self, family: &Family, causes: &mut [Option<Cause>]) -> Result<(), Halt> {
        let mut named: Vec<&mut Shown> = causes
            .iter_mut()
            .flatten()
            .flat_map(|cause| cause.shown.iter_mut().chain(&mut cause.suspects))
            .collect();
        let mut keys: Vec<String> = named.iter().map(|shown| shown.piece.key.clone()).collect();
        keys.sort();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        if let Some(why) = self.wish.project.why_no_places() {
            self.miss_writes(why);
            return Ok(());
        }
        let places = self.trace_writes(family, keys)?;
        for shown in &mut named {
            let place = places.iter().find(|place| place.key == shown.piece.key);
            shown.place = place.and_then(to_place);
        }
        Ok(())
    }

    fn trace_writes(&mut self, family: &Family, keys: Vec<String>) -> Result<Vec<WirePlace>, Halt> {
        let next = &family.tests[0];
        let tests = if self.wish.project.learns_state() {
            // The facts about a VM also hold for one with the same tests.
            family.with(&family.tests)
        } else {
            family.with(std::slice::from_ref(next))
        };
        let lane = self.open_lane_for(&tests, family.reach)?;
        let mut places = Vec::new();
        if let Some(Happening::Marked(..)) = self.tell_state(&lane, &Command::Mark {})? {
            let command = Command::Locate {
                keys,
                tests: family.polluting().iter().map(Name::from).collect(),
                import: family.imported(),
                next: Some(Name::from(next)),
            };
            match self.tell_state(&lane, &command)? {
                Some(Happening::Located(_, found, None)) => places = found,
                Some(Happening::Located(_, _, Some(why))) => self.miss_writes(&why),
                Some(_) | None => {}
            }
        }
        // Paths are turned into the user's own while the copy is still there.
        let copy = self.place(lane.workspace.as_ref());
        for place in &mut places {
            let inside = place.file.as_deref().map(camino::Utf8Path::new);
            let inside = inside.and_then(|file| file.strip_prefix(&copy).ok());
            if let Some(inside) = inside {
                place.file = Some(inside.to_string());
            }
        }
        self.leave_lane(lane)?;
        Ok(places)
    }

    /// Notes once that no lines are seen.
    fn miss_writes(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_blind_to_writes, true) {
            let why = why.to_owned();
            self.note(Note::WritesUnseen { why });
        }
    }
}

fn to_place(wire: &WirePlace) -> Option<Place> {
    Some(Place {
        file: wire.file.clone()?,
        line: wire.line?,
        function: wire.function.clone().unwrap_or_default(),
    })
}
