//! The runs that the question takes: a suspect in its order here, and at the base in the base's own.

use std::fs;

use camino::Utf8PathBuf;
use unflake_core::blame::question::{Ended, Heard, Listed, Side as Where};
use unflake_core::change::ChangeKind;
use unflake_core::failure::{Fingerprint, fails_alike};
use unflake_core::intersect::{Intersection, Unknown, intersect};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};
use unflake_core::usage::FileUse;

use super::renames::{Renames, under_name};
use super::side::{self, Made, Side, Written};
use super::sides::Sides;
use crate::git::worktree::BaseTree;
use crate::lab::session::{Halt, Session};

impl Session {
    /// Whether it is known which tests ran before a suspect.
    pub(super) fn has_order(&self, at: usize) -> bool {
        let suspect = &self.suspects[at];
        let vm = suspect.trials.first().map(|first| first.vm);
        vm.is_some_and(|vm| self.suite_orders.contains_key(&vm))
    }

    /// The tests that ran before a suspect when it failed.
    pub(super) fn before_here(&self, at: usize) -> Vec<TestId> {
        let suspect = &self.suspects[at];
        let vm = suspect.trials.first().map(|first| first.vm);
        let order = vm.and_then(|vm| self.suite_orders.get(&vm));
        let before = order.into_iter().flatten();
        let before = before.take_while(|one| **one != suspect.test);
        before.cloned().collect()
    }

    /// The tests that the base runs before a suspect, which is called `test` there, in its own order; `None` if the order
    /// of this run is none that a project has by itself: it was drawn by chance, or is that of somebody's report.
    pub(super) fn own_before(&self, at: usize, side: &Side, test: &TestId) -> Option<Vec<TestId>> {
        if self.jobs > 1 || !self.listed().replay.is_empty() {
            return None;
        }
        let here = self.before_here(at);
        let listed = self.tests.iter().map(|one| &one.id);
        let own: Vec<&TestId> = listed
            .take_while(|one| **one != self.suspects[at].test)
            .collect();
        let missing = own.len().checked_sub(here.len())?;
        if !own[missing..].iter().copied().eq(&here) {
            return None;
        }
        let mut there = side.before(test);
        // A VM that began in the middle of the suite, after a crash or with a class of its own. What the change has
        // removed may have stood at its beginning.
        if missing > 0 {
            let place = |test: &TestId| there.iter().position(|one| one == test);
            let begin = place(own[missing - 1]).map(|last| last + 1);
            let shared = self.shared_before(at, side);
            let begin = begin.or_else(|| place(shared.first()?));
            there.drain(..begin.unwrap_or(there.len()));
        }
        Some(there)
    }

    pub(super) fn list_base(&mut self, at: usize, sides: &mut Sides) -> Result<Heard, Halt> {
        if self.is_new_file(at) {
            return Ok(Heard::Listed(Listed {
                is_listed: false,
                orders_differ: false,
                loses_tests: false,
            }));
        }
        let seat = self.seat(Where::Base);
        if let Err(unready) = self.open_side(seat, sides)? {
            return Ok(unready.heard());
        }
        let side = sides.get(seat).expect("it was just opened");
        let old = self.name_at_base(at, side);
        if let (None, Some(why)) = (&old, side.trouble()) {
            return Ok(Heard::BaseCannotRun { why });
        }
        let is_listed = old.is_some();
        if !is_listed && let Some(why) = self.is_another_in_each(at, sides)? {
            return Ok(Heard::BaseCannotRun {
                why: why.to_owned(),
            });
        }
        let side = sides.get(seat).expect("it was just opened");
        let shared = self.shared_before(at, side);
        let own = old.map(|old| self.own_before(at, side, &old));
        let is_by_chance = own == Some(None);
        Ok(Heard::Listed(Listed {
            is_listed,
            orders_differ: own.flatten().is_some_and(|own| own != shared),
            loses_tests: is_by_chance && side.lists_more_than(&self.places),
        }))
    }

    /// Why a suspect is not even in another VM of the same files, if it is not: its id is drawn anew, or tells the time,
    /// or its parameters are drawn.
    fn is_another_in_each(
        &mut self,
        at: usize,
        sides: &mut Sides,
    ) -> Result<Option<&'static str>, Halt> {
        let seat = self.seat(Where::Here);
        let opened = self.open_side(seat, sides)?;
        let test = &self.suspects[at].test;
        Ok(match sides.get(seat).filter(|_| opened.is_ok()) {
            Some(here) if !here.lists(test) => {
                Some("its id is another in each VM, so that nobody knows it there")
            }
            Some(here) if !self.has_same_params(test, here) => {
                Some("its parameters are others in each VM, so that nobody knows it there")
            }
            Some(_) | None => None,
        })
    }

    /// Whether a side has no other parameters for a test: with others it is another test.
    pub(super) fn has_same_params(&self, test: &TestId, side: &Side) -> bool {
        match (side::params(self, test), side.params(test)) {
            (Some(here), Some(there)) => here == there,
            (Some(_) | None, Some(_) | None) => true,
        }
    }

    /// Whether the file of a suspect came with the change.
    pub(super) fn is_new_file(&self, at: usize) -> bool {
        let Some(difference) = self.known_difference() else {
            return false;
        };
        let root = &difference.root;
        let path = self.path_of(at);
        let mut changes = difference.changes.iter().map(|change| &change.file);
        changes.any(|file| {
            let is_added = file.kind == ChangeKind::Added && root.join(&file.path) == path;
            is_added && !difference.moved.contains_key(&file.path)
        })
    }

    /// What a suspect is called at the base, if it is there.
    pub(super) fn name_at_base(&self, at: usize, side: &Side) -> Option<TestId> {
        let test = &self.suspects[at].test;
        if side.lists(test) {
            return self.has_same_params(test, side).then(|| test.clone());
        }
        let (difference, tree) = (self.known_difference()?, self.base_tree()?);
        let root = Utf8PathBuf::from(&self.listed().root);
        let renames = Renames {
            project: &self.home.project,
            tests_root: &root,
            difference: &difference,
        };
        let then = |path: &str| fs::read_to_string(tree.path().join(path)).ok();
        let names = renames.old_names(test, then);
        let old = names.into_iter().find(|name| side.lists(name));
        old.or_else(|| {
            let old = renames.name_in_old_file(test);
            self.namesake(test, old.as_ref().unwrap_or(test), side)
        })
    }

    /// The one test of a side that is gone here and is the same function with the same parameters, in another class or
    /// with another id for them. `old` is what the test would be called there in its file.
    fn namesake(&self, test: &TestId, old: &TestId, side: &Side) -> Option<TestId> {
        let project = &self.home.project;
        let root = Utf8PathBuf::from(&self.listed().root);
        let place = project.place_of(old, &root)?;
        let own = side::params(self, test);
        let is_same = |one: &&TestId| {
            let there = side.params(one);
            let has_params = match (own, there) {
                (Some(own), Some(there)) => own == there,
                (None, None) => parameters(one) == parameters(old),
                (Some(_), None) | (None, Some(_)) => false,
            };
            let is_gone = !self.places.contains_key(*one);
            is_gone && has_params && project.place_of(one, &root).as_ref() == Some(&place)
        };
        let mut same = side.tests().filter(is_same);
        let found = same.next()?;
        same.next().is_none().then(|| found.clone())
    }

    /// The tests that ran before a suspect, without those that a side lacks.
    pub(super) fn shared_before(&self, at: usize, side: &Side) -> Vec<TestId> {
        let difference = self.known_difference();
        let root = Utf8PathBuf::from(&self.listed().root);
        let before = self.before_here(at).into_iter();
        let before = before.filter_map(|one| {
            if let Some(there) = side.name_of(&one) {
                return Some(there.clone());
            }
            let renames = Renames {
                project: &self.home.project,
                tests_root: &root,
                difference: difference.as_deref()?,
            };
            let old = renames.name_in_old_file(&one)?;
            side.lists(&old).then_some(old)
        });
        before.collect()
    }

    /// Runs a suspect on a side, and holds the run against the failure that is asked about.
    pub(super) fn run_side(
        &mut self,
        at: usize,
        place: Where,
        sides: &mut Sides,
    ) -> Result<Heard, Halt> {
        let seat = self.seat(place);
        // Where watching slows nothing, a watched run is one like all others.
        let place = match place {
            Where::HereWatched if self.seat(Where::Here) == seat => Where::Here,
            Where::BaseWatched if self.seat(Where::Base) == seat => Where::Base,
            Where::Here
            | Where::HereWatched
            | Where::Base
            | Where::BaseWatched
            | Where::BaseInThisOrder => place,
        };
        let made = match self.open_side(seat, sides)? {
            Ok(()) => self.run_in_order(at, place, sides)?,
            Err(unready) => Err(unready.why().to_owned()),
        };
        let Made { trial, written } = match made {
            Ok(made) => made,
            Err(why) => {
                return Ok(Heard::Ran {
                    side: place,
                    ended: Ended::NotRun { why },
                    used: None,
                });
            }
        };
        let names = (&trial.test, &self.suspects[at].test);
        let account = under_name(trial.account.clone(), &self.home.project, names);
        let trial = Trial { account, ..trial };
        let ended = self.ended(at, seat.is_base, &trial);
        let test = self.suspects[at].test.clone();
        let rung = if seat.is_base {
            Rung::Base
        } else {
            Rung::InOrder
        };
        self.suspects[at].trials.push(Trial {
            test,
            rung,
            ..trial
        });
        let used = match (seat.is_base, seat.is_watched) {
            (_, false) => None,
            (false, true) => Some(self.used_here(at, sides, &written)),
            (true, true) => match self.used_at_base(sides, &written) {
                Ok(used) => Some(used),
                Err(why) => return Ok(Heard::BaseCannotRun { why }),
            },
        };
        Ok(Heard::Ran {
            side: place,
            ended,
            used,
        })
    }

    /// What a run at the base used that may be none of the base's own; or why it was no run of the base.
    fn used_at_base(&self, sides: &Sides, written: &Written) -> Result<Intersection, String> {
        let seat = self.seat(Where::BaseWatched);
        let side = sides.get(seat).expect("something has just run there");
        if let Some(why) = self.stray_at_base(side) {
            return Err(why);
        }
        let outside = self.written_meanwhile(side, written);
        Ok(Intersection {
            touches: Vec::new(),
            unknowns: outside.into_iter().map(Unknown::Outside).collect(),
        })
    }

    /// How a run ended, held against the failure that is asked about.
    pub(super) fn ended(&self, at: usize, is_base: bool, trial: &Trial) -> Ended {
        let first = self.suspects[at].trials.first();
        let message = trial.account.message.clone();
        match &trial.outcome {
            Outcome::Passed | Outcome::UnexpectedPass => Ended::Passed,
            // What is left out there, or expected to fail, did not make the base red.
            Outcome::Skipped | Outcome::ExpectedFailure if is_base => Ended::Passed,
            Outcome::Skipped | Outcome::ExpectedFailure | Outcome::NotRun => {
                Ended::NotRun { why: message }
            }
            Outcome::Failed
            | Outcome::Errored
            | Outcome::TimedOut { .. }
            | Outcome::VmDied { .. } => {
                if first.is_some_and(|first| fails_alike(first, trial)) {
                    Ended::Alike
                } else {
                    let print = Fingerprint::of(&trial.outcome, &trial.account);
                    Ended::Otherwise { message, print }
                }
            }
        }
    }

    /// What a run here used of the changes, as far as it was watched.
    pub(super) fn watched_here(&self, at: usize, sides: &Sides, written: &Written) -> Intersection {
        let mut found = Intersection::default();
        let side = sides.get(self.seat(Where::HereWatched));
        let (Some(difference), Some(side)) = (self.known_difference(), side) else {
            return found;
        };
        let Ok(facts) = side.facts(written, &difference.root) else {
            found.unknowns.push(Unknown::NotWatched);
            return found;
        };
        let tree = self.base_tree().map(BaseTree::path);
        let usage = side.to_usage((&facts, written), &difference, &self.path_of(at), tree);
        let usage = self.with_left_behind(usage, &difference, tree);
        // Whoever ran the test has used its file: without it, these are not the facts of that run.
        if !usage.files.values().any(FileUse::has_content) {
            found.unknowns.push(Unknown::NotWatched);
            return found;
        }
        found = intersect(&difference.changes, &usage, &self.rules());
        let base = sides.get(self.seat(Where::BaseWatched));
        let constants = self.copied_constants(&facts, base, &found.touches);
        found.unknowns.extend(constants);
        found
    }

    /// The file that a suspect's name begins with.
    pub(super) fn path_of(&self, at: usize) -> Utf8PathBuf {
        let name = self.suspects[at].test.name();
        let file = name.split("::").next().unwrap_or(name);
        Utf8PathBuf::from(&self.listed().root).join(file)
    }
}

/// What tells the parameters of a test in its id.
fn parameters(test: &TestId) -> Option<&str> {
    let (_, parameters) = test.name().split_once('[')?;
    Some(parameters)
}
