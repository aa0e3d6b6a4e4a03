//! Projects on paper for the hunt: tests with a planted truth.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use crate::event::Event;
use crate::experiment::Capabilities;
use crate::nio::Nio;
use crate::nio::hunt::{Hunt, HuntPlan, Mode};
use crate::outcome::Outcome;
use crate::paper_lab::{Body, Layer, PaperLab, verdicts, work};
use crate::test::TestId;
use crate::verdict::Verdict;

/// What copies VMs, as an interpreter does.
pub(super) const COPIES: Capabilities = Capabilities {
    copies: true,
    reloads: false,
    lanes: 1,
};
/// What cannot, as a JVM.
pub(super) const RELOADS: Capabilities = Capabilities {
    copies: false,
    reloads: true,
    lanes: 2,
};
pub(super) const MODES: [Mode; 4] = [Mode::Suite, Mode::Class, Mode::Method, Mode::Auto];

/// What is planted in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// It passes.
    Fine,
    /// It is skipped.
    Skipped,
    /// It fails once it has run in its VM.
    SelfPolluter(Layer),
    /// The second run ends its VM.
    Crash,
    /// The second run takes too long.
    Hang,
    /// Each run ends its VM.
    DeadOnArrival,
    /// It always fails.
    Broken,
    /// It leaves this piece of state.
    Polluter(usize),
    /// It leaves this piece of state from its second run on.
    LatePolluter(usize),
    /// It fails after that.
    Victim(usize),
    /// It fails after that when it is run again.
    VictimOfItself(usize),
    /// It passes only after its own failed run.
    Brittle,
    /// It passes only after a polluter has run once, and not twice.
    Needy(usize),
    /// It fails in so many of a thousand runs.
    Coin(u64),
}

fn fails_if(fails: bool) -> Outcome {
    if fails {
        Outcome::Failed
    } else {
        Outcome::Passed
    }
}

fn body(plant: Plant, own: usize) -> Body {
    // Pieces below 100 are shared, and those above are a test's own.
    let own = 100 + own;
    let died = || Outcome::VmDied {
        how: "killed by signal 9".into(),
    };
    let hung = || Outcome::TimedOut {
        after: Duration::from_secs(60),
    };
    match plant {
        Plant::Fine => Rc::new(|_| Outcome::Passed),
        Plant::Skipped => Rc::new(|_| Outcome::Skipped),
        Plant::SelfPolluter(layer) => Rc::new(move |world| fails_if(world.write(layer, own) > 0)),
        Plant::Crash => Rc::new(move |world| match world.write(Layer::Memory, own) {
            0 => Outcome::Passed,
            _ => died(),
        }),
        Plant::Hang => Rc::new(move |world| match world.write(Layer::Memory, own) {
            0 => Outcome::Passed,
            _ => hung(),
        }),
        Plant::DeadOnArrival => Rc::new(move |_| died()),
        Plant::Broken => Rc::new(|_| Outcome::Failed),
        Plant::Polluter(piece) => Rc::new(move |world| {
            world.write(Layer::Memory, piece);
            Outcome::Passed
        }),
        Plant::LatePolluter(piece) => Rc::new(move |world| {
            if world.write(Layer::Memory, own) > 0 {
                world.write(Layer::Memory, piece);
            }
            Outcome::Passed
        }),
        Plant::Victim(piece) => {
            Rc::new(move |world| fails_if(world.count(Layer::Memory, piece) > 0))
        }
        Plant::VictimOfItself(piece) => Rc::new(move |world| {
            let is_again = world.write(Layer::Memory, own) > 0;
            fails_if(is_again && world.count(Layer::Memory, piece) > 0)
        }),
        Plant::Brittle => Rc::new(move |world| fails_if(world.write(Layer::Memory, own) == 0)),
        Plant::Needy(piece) => {
            Rc::new(move |world| fails_if(world.count(Layer::Memory, piece) != 1))
        }
        Plant::Coin(thousandths) => Rc::new(move |world| fails_if(world.is_drawn(thousandths))),
    }
}

/// Tests, two to a class, with what is planted in them.
#[derive(Clone)]
pub(super) struct Suite(pub(super) Vec<Plant>);

impl Suite {
    pub(super) fn tests(&self) -> Vec<TestId> {
        let name = |at: usize| TestId::new(&format!("shop.C{}Test#t{at}", at / 2));
        (0..self.0.len()).map(name).collect()
    }

    pub(super) fn lab(&self, can: Capabilities, seed: u64) -> PaperLab {
        let plants = self.0.iter().enumerate();
        let bodies = plants.map(|(at, plant)| body(*plant, at));
        PaperLab::new(can, self.tests().into_iter().zip(bodies).collect(), seed)
    }

    pub(super) fn hunt(&self, mode: Mode, can: Capabilities) -> Hunt {
        let plan = HuntPlan {
            mode,
            tests: self.tests(),
            changed: BTreeSet::new(),
            classes: None,
        };
        Hunt::new(plan, can)
    }

    pub(super) fn told(&self, mode: Mode, can: Capabilities) -> Vec<Event> {
        let mut lab = self.lab(can, 7);
        work(&mut self.hunt(mode, can), &mut lab)
    }

    /// The verdict of the test at a place.
    pub(super) fn verdict(&self, at: usize, mode: Mode, can: Capabilities) -> Option<Verdict> {
        let told = self.told(mode, can);
        verdicts(&told).get(self.tests()[at].name()).copied()
    }
}

pub(super) fn nio(needs_shared_fixtures: bool, depends_on_collector: bool) -> Verdict {
    Verdict::Nio(Nio {
        needs_shared_fixtures,
        depends_on_collector,
    })
}
