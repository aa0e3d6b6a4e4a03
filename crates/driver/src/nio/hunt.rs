//! The hunt for NIO tests: every test twice, then those that did not pass twice, alone.
//!
//! What a pair of outcomes means is decided in `unflake_core::nio`.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use unflake_core::change::ChangeKind;
use unflake_core::event::{Ending, Event};
use unflake_core::nio::{Pair, Setting, Shape, Step, next_step};
use unflake_core::outcome::Outcome;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Rung, Trial};
use unflake_core::verdict::Verdict;

use crate::cause::find::Family;
use crate::lab::lane::{Lane, Manner};
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::lab::suspect::Suspect;
use crate::protocol::messages::Between;

/// What is hunted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// In which VMs tests are run twice.
    pub mode: Mode,
    /// Whether only tests are run that are new or modified since the base.
    pub only_changed: bool,
}

/// In which VMs tests are run twice (NIO 2022, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All in one.
    Suite,
    /// Each class, or file of functions, in one of its own.
    Class,
    /// Each test in one of its own.
    Method,
    /// All in one; those that are new or modified, and those that did not pass twice, also alone (4.3).
    Auto,
}

impl Session {
    /// Runs every test twice and names those that did not pass twice.
    pub fn hunt(mut self, hunt: Hunt) -> Result<(), RunError> {
        let ending = self.check_against().and_then(|()| self.hunt_nio(hunt));
        self.close(ending)
    }

    fn hunt_nio(&mut self, hunt: Hunt) -> Result<Ending, Halt> {
        self.move_in();
        let first = self.open_lane()?;
        let tests = self.hunted(hunt);
        self.announce(tests.clone());
        if self.listed().blocked || tests.is_empty() {
            self.finish(first.vm)?;
            return Ok(Ending::Completed);
        }
        self.learn_chance()?;
        let began = Instant::now();
        let mut lanes = vec![first];
        let found = self.detect(&mut lanes, &tests, hunt)?;
        self.leave_lanes(lanes)?;
        let mut pairs: HashMap<TestId, Vec<Pair>> = HashMap::new();
        for (once, again) in found {
            self.suspect_pair(once, again, &mut pairs);
        }
        self.tell(Event::SuiteEnded {
            elapsed: began.elapsed().max(Duration::from_millis(1)),
            failures: self.suspects.len(),
            too_many_failures: false,
        });
        self.name_suspects(&mut pairs, &tests)?;
        Ok(Ending::Completed)
    }

    /// The tests that are to be run twice.
    fn hunted(&mut self, hunt: Hunt) -> Vec<Test> {
        let tests = self.tests.clone();
        if !hunt.only_changed {
            return tests;
        }
        tests
            .into_iter()
            .filter(|test| self.is_changed(test))
            .collect()
    }

    /// Whether a test is new or modified since the base.
    fn is_changed(&mut self, test: &Test) -> bool {
        let Some(difference) = self.difference() else {
            return false;
        };
        // The framework names files from its own root, which need not be where it was called.
        let root = Utf8PathBuf::from(self.home_path(&self.listed().root));
        let root = root.canonicalize_utf8().unwrap_or(root);
        let Ok(inside) = root.strip_prefix(&difference.root) else {
            return false;
        };
        let path = inside.join(&test.file);
        let mut changes = difference.changes.iter();
        let Some(change) = changes.find(|change| change.file.path == path) else {
            return false;
        };
        match (&change.source, change.file.kind) {
            (_, ChangeKind::Added) | (None, _) => true,
            (Some(source), _) => source.functions.iter().any(|function| {
                let is_here =
                    function.lines.contains(test.line) || function.starts.contains(&test.line);
                function.is_changed && is_here
            }),
        }
    }

    /// Runs each test twice in the way of the mode.
    fn detect(
        &mut self,
        lanes: &mut Vec<Lane>,
        tests: &[Test],
        hunt: Hunt,
    ) -> Result<Vec<(Trial, Trial)>, Halt> {
        let all: Vec<TestId> = tests.iter().map(|test| test.id.clone()).collect();
        let alone = |tests: Vec<TestId>| tests.into_iter().map(|test| vec![test]).collect();
        match hunt.mode {
            Mode::Suite => self.run_twice(lanes, VecDeque::from([all]), in_suite()),
            Mode::Class => self.detect_apart(lanes, by_class(all), Setting::Class),
            Mode::Method => self.detect_apart(lanes, alone(all), Setting::Method),
            Mode::Auto => {
                let changed = tests.iter().filter(|test| self.is_changed(test));
                let changed: Vec<TestId> = changed.map(|test| test.id.clone()).collect();
                // Before the suite, while the VM has run nothing.
                let mut found = self.detect_apart(lanes, alone(changed), Setting::Method)?;
                let is_found = |test: &TestId, found: &[(Trial, Trial)]| {
                    let mut odd = found.iter().filter(|pair| shape(pair) != Shape::PassPass);
                    odd.any(|(once, _)| once.test == *test)
                };
                let suite = self.run_twice(lanes, VecDeque::from([all]), in_suite())?;
                let known = std::mem::take(&mut found);
                let odd = known
                    .into_iter()
                    .filter(|pair| shape(pair) != Shape::PassPass);
                found.extend(odd);
                let rest = suite
                    .into_iter()
                    .filter(|(once, _)| !is_found(&once.test, &found));
                let rest: Vec<(Trial, Trial)> = rest.collect();
                found.extend(rest);
                Ok(found)
            }
        }
    }

    /// Runs each group in a VM of its own: a copy of a lane's, or a new interpreter.
    fn detect_apart(
        &mut self,
        lanes: &mut Vec<Lane>,
        mut groups: VecDeque<Vec<TestId>>,
        setting: Setting,
    ) -> Result<Vec<(Trial, Trial)>, Halt> {
        let mut found = Vec::new();
        if setting == Setting::Method {
            found = self.screen(lanes, &mut groups)?;
        }
        if groups.is_empty() {
            return Ok(found);
        }
        let firsts: Vec<TestId> = groups
            .iter()
            .filter_map(|group| group.first().cloned())
            .collect();
        self.prepare_fresh_vms(&firsts)?;
        let wanted = self.wish.jobs.unwrap_or(1).min(groups.len());
        while lanes.len() < wanted {
            let worker = self.worker(lanes.len());
            lanes.push(self.open_another_lane(worker)?);
        }
        let manner = Manner {
            setting,
            between: Some(Between::Nothing),
            is_apart: true,
            is_brief: false,
        };
        found.extend(self.run_twice(lanes, groups, manner)?);
        Ok(found)
    }

    /// Keeps a pair that is not simply two passes.
    fn suspect_pair(&mut self, once: Trial, again: Trial, pairs: &mut HashMap<TestId, Vec<Pair>>) {
        let pair = to_pair(&once, &again);
        if matches!(pair.shape(), Shape::PassPass | Shape::Skipped) {
            return;
        }
        let test = once.test.clone();
        pairs.insert(test.clone(), vec![pair]);
        self.suspects.push(Suspect::of(test, vec![once, again]));
    }

    /// Runs suspects alone until each has its name.
    fn name_suspects(
        &mut self,
        pairs: &mut HashMap<TestId, Vec<Pair>>,
        tests: &[Test],
    ) -> Result<(), Halt> {
        // Runs of the whole suite are made once for all that need them.
        let mut suites = [Setting::Replay, Setting::Plain].into_iter();
        if !self.wish.project.can_copy() {
            self.confirm_together(pairs)?;
        }
        loop {
            for at in 0..self.suspects.len() {
                let test = self.suspects[at].test.clone();
                let seen = pairs.entry(test).or_default();
                while !self.suspects[at].is_judged {
                    match next_step(seen) {
                        Step::Conclude(Some(verdict)) => {
                            if let Verdict::Nio(_) = verdict {
                                let test = self.suspects[at].test.clone();
                                let cause = self.find_causes(&Family::of_own(test))?.pop();
                                self.suspects[at].cause = cause.flatten().map(Box::new);
                            }
                            self.judge(at, verdict, None);
                        }
                        Step::Conclude(None) => self.suspects[at].is_judged = true,
                        Step::Run(Setting::Replay | Setting::Plain) => break,
                        Step::Run(setting) => {
                            let pair = self.pair_alone(at, setting)?;
                            seen.push(pair);
                        }
                    }
                }
            }
            let wants = |setting: Setting| {
                let mut open = self.suspects.iter().filter(|suspect| !suspect.is_judged);
                open.any(|one| {
                    pairs.get(&one.test).map(|seen| next_step(seen)) == Some(Step::Run(setting))
                })
            };
            match suites.find(|setting| wants(*setting)) {
                Some(setting) => self.suite_again(setting, pairs, tests)?,
                None => return Ok(()),
            }
        }
    }

    /// Runs the suite once more, for those of whom only that can tell what they are.
    fn suite_again(
        &mut self,
        setting: Setting,
        pairs: &mut HashMap<TestId, Vec<Pair>>,
        tests: &[Test],
    ) -> Result<(), Halt> {
        let mut lanes = [self.open_another_lane(self.worker(0))?];
        let all: Vec<TestId> = tests.iter().map(|test| test.id.clone()).collect();
        let manner = Manner {
            setting,
            between: (setting != Setting::Plain).then_some(Between::Nothing),
            is_apart: false,
            is_brief: false,
        };
        let trials = self.run_groups(&mut lanes, VecDeque::from([all]), manner)?;
        for suspect in self
            .suspects
            .iter_mut()
            .filter(|suspect| !suspect.is_judged)
        {
            let own = trials.iter().filter(|trial| trial.test == suspect.test);
            let own: Vec<Trial> = own.cloned().collect();
            let seen = pairs.entry(suspect.test.clone()).or_default();
            if let Step::Run(wanted) = next_step(seen)
                && wanted == setting
                && let Some(once) = own.first()
            {
                let again = own
                    .get(1)
                    .map_or(Outcome::NotRun, |again| again.outcome.clone());
                let once = once.outcome.clone();
                seen.push(Pair {
                    setting,
                    once,
                    again,
                });
                suspect.trials.extend(own);
            }
        }
        let [lane] = lanes;
        self.leave(Some(lane.vm))
    }
}

fn in_suite() -> Manner {
    Manner {
        setting: Setting::Suite,
        between: Some(Between::Nothing),
        is_apart: false,
        is_brief: false,
    }
}

/// The two runs of a test in one setting.
pub(crate) fn to_pair(once: &Trial, again: &Trial) -> Pair {
    let setting = match once.rung {
        Rung::Once(setting) | Rung::Again(setting) => setting,
        Rung::Suite
        | Rung::OwnRerun
        | Rung::Immediate
        | Rung::End
        | Rung::Fresh
        | Rung::Look
        | Rung::AfterItself
        | Rung::Confirm
        | Rung::Replay
        | Rung::OtherSeed
        | Rung::InOrder
        | Rung::Alone
        | Rung::Base
        | Rung::Report => unreachable!("a pair is made of the two runs of a setting"),
    };
    Pair {
        setting,
        once: once.outcome.clone(),
        again: again.outcome.clone(),
    }
}

/// Trials of one VM after the other, two by two.
pub(crate) fn in_pairs(trials: Vec<Trial>) -> Vec<(Trial, Trial)> {
    let mut firsts: Vec<Trial> = Vec::new();
    let mut pairs = Vec::new();
    for trial in trials {
        let place = firsts.iter().position(|first| first.test == trial.test);
        match place {
            Some(place) => pairs.push((firsts.swap_remove(place), trial)),
            None => firsts.push(trial),
        }
    }
    pairs
}

fn shape((once, again): &(Trial, Trial)) -> Shape {
    to_pair(once, again).shape()
}

/// The class of a test, the outermost one in Java; for a function its file.
pub(crate) fn class_of(test: &TestId) -> &str {
    if let Some((class, _)) = test.class_and_method() {
        return class.split('$').next().unwrap_or(class);
    }
    let plain = test.name().split('[').next().unwrap_or_default();
    plain.rsplit_once("::").map_or(plain, |(class, _)| class)
}

/// Tests of one class together, and functions of one file.
fn by_class(tests: Vec<TestId>) -> VecDeque<Vec<TestId>> {
    let mut groups: VecDeque<(String, Vec<TestId>)> = VecDeque::new();
    for test in tests {
        let class = class_of(&test).to_owned();
        let known = groups.iter_mut().find(|(name, _)| *name == class);
        match known {
            Some((_, group)) => group.push(test),
            None => groups.push_back((class, vec![test])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}
