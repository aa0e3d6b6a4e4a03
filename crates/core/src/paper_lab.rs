//! The paper lab: a project that exists in memory, with state, chance, crashes and time.
//!
//! What tests do is planted, so the truth is known. It makes the experiments of any technique as `driver` would: several
//! at a time, each in VMs whose state is that which their kind says. Chance comes from a seed, so a wrong verdict can be
//! had again.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::drive::{Lab, Stop};
use crate::event::Event;
use crate::experiment::{Between, Capabilities, Experiment, Times, VmSpec};
use crate::outcome::Outcome;
use crate::state::Cause;
use crate::technique::{Heard, Technique, Ticket};
use crate::test::TestId;
use crate::trial::{Account, Birth, Fixtures, Rung, Trial, VmId};
use crate::verdict::{Finding, Verdict};

/// What becomes of a piece of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// It lives as long as its fixture, which ends with its VM, or when all fixtures are torn down.
    Fixture,
    /// It lives until the garbage is collected, or its VM ends.
    Garbage,
    /// It lives in the project's classes: as long as they do, and at most as long as its VM.
    Memory,
    /// It lives in a library, which is loaded once for each VM.
    Library,
    /// It lies in a file, and is there until the files are put back.
    File,
}

/// What a test finds and leaves when it runs.
pub(crate) struct World {
    state: BTreeMap<(Layer, usize), u32>,
    draw: u64,
}

impl World {
    /// How often a piece of state was written.
    pub(crate) fn count(&self, layer: Layer, piece: usize) -> u32 {
        self.state.get(&(layer, piece)).copied().unwrap_or(0)
    }

    /// Writes a piece of state, and says how often it was written before.
    pub(crate) fn write(&mut self, layer: Layer, piece: usize) -> u32 {
        let count = self.state.entry((layer, piece)).or_insert(0);
        *count += 1;
        *count - 1
    }

    /// True in so many of a thousand cases.
    pub(crate) fn is_drawn(&mut self, thousandths: u64) -> bool {
        next_number(&mut self.draw) % 1000 < thousandths
    }

    fn forget(&mut self, layers: &[Layer]) {
        self.state.retain(|(layer, _), _| !layers.contains(layer));
    }
}

/// What a test does.
pub(crate) type Body = Rc<dyn Fn(&mut World) -> Outcome>;

/// A project, and what has happened in it.
pub(crate) struct PaperLab {
    can: Capabilities,
    bodies: BTreeMap<TestId, Body>,
    draw: u64,
    waiting: VecDeque<(Ticket, Experiment)>,
    /// What the experiments that run at the same time will have to say.
    lanes: Vec<VecDeque<Heard>>,
    explained: VecDeque<Ticket>,
    /// The state of the VM that several experiments share.
    shared: BTreeMap<(Layer, usize), u32>,
    /// How many VMs there were.
    pub(crate) vms: u32,
    /// How many runs of tests there were.
    pub(crate) trials: usize,
    clock: Duration,
    /// After how many answers it is interrupted.
    pub(crate) interrupted_after: Option<usize>,
    /// What it said.
    pub(crate) said: Vec<Heard>,
}

/// The time of a run.
const RUN: Duration = Duration::from_millis(10);
/// The time of the start of a VM.
const START: Duration = Duration::from_secs(1);

impl PaperLab {
    pub(crate) fn new(can: Capabilities, bodies: Vec<(TestId, Body)>, seed: u64) -> Self {
        Self {
            can,
            bodies: bodies.into_iter().collect(),
            draw: seed,
            waiting: VecDeque::new(),
            lanes: Vec::new(),
            explained: VecDeque::new(),
            shared: BTreeMap::new(),
            vms: 0,
            trials: 0,
            clock: Duration::ZERO,
            interrupted_after: None,
            said: Vec::new(),
        }
    }

    /// Makes an experiment; what it has to say.
    fn make(&mut self, ticket: Ticket, experiment: &Experiment) -> VecDeque<Heard> {
        let is_shared = experiment.vm == VmSpec::Reloaded;
        let mut world = World {
            state: BTreeMap::new(),
            draw: next_number(&mut self.draw),
        };
        if is_shared {
            world.state = std::mem::take(&mut self.shared);
            world.forget(&[Layer::Memory, Layer::Fixture, Layer::Garbage, Layer::File]);
        }
        let mut said = VecDeque::new();
        let mut vm = self.start_vm();
        for test in &experiment.order {
            let between = match experiment.times {
                Times::Once => None,
                Times::Twice(between) => Some(between),
            };
            let rung = Rung::Once(experiment.setting);
            let once = self.run(test, rung, vm, &mut world, &mut said);
            let is_lost = once.outcome.ends_vm();
            said.push_back(trial(ticket, once.clone()));
            let again = between.map(|between| {
                let rung = Rung::Again(experiment.setting);
                if is_lost {
                    let outcome = Outcome::NotRun;
                    return Trial {
                        rung,
                        outcome,
                        ..once
                    };
                }
                match between {
                    Between::Nothing => {}
                    Between::TearDown => world.forget(&[Layer::Fixture]),
                    Between::Collect => world.forget(&[Layer::Garbage]),
                }
                self.run(test, rung, vm, &mut world, &mut said)
            });
            let is_lost = is_lost || again.iter().any(|again| again.outcome.ends_vm());
            said.extend(again.map(|again| trial(ticket, again)));
            if is_lost {
                world.state.retain(|(layer, _), _| *layer == Layer::File);
                vm = self.start_vm();
            }
        }
        let mut left_behind = Vec::new();
        if world.state.keys().any(|(layer, _)| *layer == Layer::File) {
            left_behind.push("left.txt".to_owned());
        }
        if is_shared {
            self.shared = world.state;
        }
        said.push_back(Heard::Ended {
            ticket,
            left_behind,
            at: self.clock,
        });
        said
    }

    fn start_vm(&mut self) -> VmId {
        self.vms += 1;
        self.clock += START;
        VmId(self.vms)
    }

    fn run(
        &mut self,
        test: &TestId,
        rung: Rung,
        vm: VmId,
        world: &mut World,
        said: &mut VecDeque<Heard>,
    ) -> Trial {
        self.trials += 1;
        self.clock += RUN;
        let test = test.clone();
        let outcome = (self.bodies[&test])(world);
        said.push_back(Heard::Started {
            test: test.clone(),
            vm,
            rung,
        });
        Trial {
            test,
            rung,
            vm,
            birth: Birth::Exec,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome,
            duration: RUN,
            cost: RUN,
            account: Account::default(),
        }
    }

    /// The next thing that happens: one of the experiments at work says something.
    fn next(&mut self) -> Heard {
        if let Some(ticket) = self.explained.pop_front() {
            let cause = Some(Box::new(Cause::default()));
            return Heard::Explained { ticket, cause };
        }
        while self.lanes.len() < self.can.lanes
            && let Some((ticket, experiment)) = self.waiting.pop_front()
        {
            let said = self.make(ticket, &experiment);
            self.lanes.push(said);
        }
        let lanes = self.lanes.len() as u64;
        assert!(lanes > 0, "a lab is asked only while a ticket is open");
        let lane = usize::try_from(next_number(&mut self.draw) % lanes).unwrap();
        let heard = self.lanes[lane].pop_front().unwrap();
        self.lanes.retain(|said| !said.is_empty());
        heard
    }
}

impl Lab for PaperLab {
    type Trouble = String;

    fn can(&self) -> Capabilities {
        self.can
    }

    fn submit(&mut self, ticket: Ticket, experiment: Experiment) {
        assert!(!experiment.order.is_empty(), "an experiment has tests");
        self.waiting.push_back((ticket, experiment));
    }

    fn explain(&mut self, ticket: Ticket, _test: TestId) {
        self.explained.push_back(ticket);
    }

    fn hear(&mut self) -> Result<Heard, Stop<String>> {
        if self.interrupted_after == Some(self.said.len()) {
            return Err(Stop::Interrupted);
        }
        let heard = self.next();
        self.said.push(heard.clone());
        Ok(heard)
    }
}

/// A lab that says again what another has said.
pub(crate) struct Echo {
    pub(crate) can: Capabilities,
    pub(crate) said: VecDeque<Heard>,
}

impl Lab for Echo {
    type Trouble = String;

    fn can(&self) -> Capabilities {
        self.can
    }

    fn submit(&mut self, _ticket: Ticket, _experiment: Experiment) {}

    fn explain(&mut self, _ticket: Ticket, _test: TestId) {}

    fn hear(&mut self) -> Result<Heard, Stop<String>> {
        self.said.pop_front().ok_or(Stop::Interrupted)
    }
}

/// Lets a technique work in a lab until both are done; all that was told.
pub(crate) fn work<L: Lab<Trouble = String>>(
    technique: &mut dyn Technique,
    lab: &mut L,
) -> Vec<Event> {
    let mut told = Vec::new();
    let ending = crate::drive::drive(technique, lab, &mut |event| told.push(event));
    told.push(Event::Ended(ending.unwrap()));
    told
}

/// The findings among what was told.
pub(crate) fn findings(told: &[Event]) -> Vec<&Finding> {
    let mut found = Vec::new();
    for event in told {
        if let Event::Judged(finding) = event {
            found.push(finding);
        }
    }
    found
}

/// The verdicts among what was told, by the names of the tests.
pub(crate) fn verdicts(told: &[Event]) -> BTreeMap<&str, Verdict> {
    let all = findings(told).into_iter();
    all.map(|one| (one.test.name(), one.verdict)).collect()
}

fn trial(ticket: Ticket, trial: Trial) -> Heard {
    let trial = Box::new(trial);
    Heard::Trial { ticket, trial }
}

/// The next number of a generator that is the same everywhere (`SplitMix64`).
fn next_number(draw: &mut u64) -> u64 {
    *draw = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *draw;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
