//! Techniques: who asks for experiments, hears what came of them, and says what that means.
//!
//! A technique starts nothing and waits for nothing. `drive` stands between it and a lab.

use crate::blame::{Blame, Open};
use crate::event::Event;
use crate::experiment::Experiment;
use crate::state::Cause;
use crate::test::TestId;
use crate::trial::{Rung, Trial, VmId};
use crate::verdict::{Finding, Reason, Verdict};

use std::time::Duration;

/// A way of finding something out by experiments.
///
/// The same answers in the same order lead to the same moves, so a technique that hears old answers again stands where
/// it stood.
pub trait Technique {
    /// Takes note of something that happened in the lab.
    fn hear(&mut self, heard: &Heard);

    /// What it wants now, and has to say. It is done if it then waits for no ticket.
    fn moves(&mut self) -> Vec<Move>;

    /// The tests of which it has not said all, in the order of the suite, whenever it is asked.
    fn open(&self) -> Vec<Unsettled>;
}

/// The number of something that a technique asked for. The technique numbers its wishes itself, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub usize);

/// Something that a technique wants, or says.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// It wants an experiment.
    Submit(Ticket, Experiment),
    /// It wants to know the state by which a test makes itself fail when it is run again.
    Explain(Ticket, TestId),
    /// It says something to the readers of events: a finding, a note, a stage that is over.
    Tell(Box<Event>),
}

/// Something that happened in the lab.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A test is about to run.
    Started {
        /// The test.
        test: TestId,
        /// Where.
        vm: VmId,
        /// Why.
        rung: Rung,
    },
    /// A test of an experiment has run.
    Trial {
        /// The experiment.
        ticket: Ticket,
        /// The run.
        trial: Box<Trial>,
    },
    /// An experiment is over.
    Ended {
        /// The experiment.
        ticket: Ticket,
        /// The files of the work tree that it changed, if that was looked at.
        left_behind: Vec<String>,
        /// When it ended, counted from the start of the work.
        at: Duration,
    },
    /// The state behind a test was looked for.
    Explained {
        /// The wish.
        ticket: Ticket,
        /// The state; `None` if it cannot be looked at.
        cause: Option<Box<Cause>>,
    },
}

/// A test of which a technique has not said all.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsettled {
    /// The test.
    pub test: TestId,
    /// What is known of it: its trials so far, without those that say nothing.
    pub trials: Vec<Trial>,
    /// The files of the work tree that it changed.
    pub left_behind: Vec<String>,
}

impl Unsettled {
    /// What is said of it if nothing more can be done; nothing if it never failed.
    pub fn cut(self) -> Option<Finding> {
        let has_failed = self.trials.iter().any(|trial| trial.outcome.is_failure());
        has_failed.then(|| Finding {
            test: self.test,
            verdict: Verdict::Unexamined(Reason::Cut),
            trials: self.trials,
            blame: Some(Box::new(Blame::unasked(Open::Unexamined))),
            left_behind: self.left_behind,
            dependence: None,
            cause: None,
            is_latent: false,
        })
    }
}
