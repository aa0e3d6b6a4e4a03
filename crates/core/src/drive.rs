//! The loop between a technique and a lab, and the only place that waits.
//!
//! The readers of events hear of everything before the technique does. What an interruption means is known here alone:
//! all that was heard stays told, and what the technique has not settled is told as cut off.

use std::collections::BTreeMap;

use crate::event::{Ending, Event};
use crate::experiment::{Capabilities, Experiment, TrialsTold};
use crate::nio::Pair;
use crate::technique::{Heard, Move, Technique, Ticket, Unsettled};
use crate::test::TestId;
use crate::trial::{Rung, Trial};

/// A place where experiments are made.
pub trait Lab {
    /// Why it can break down.
    type Trouble;

    /// What it can do.
    fn can(&self) -> Capabilities;

    /// Takes an experiment. It begins when there is room for it.
    fn submit(&mut self, ticket: Ticket, experiment: Experiment);

    /// Takes the wish to know the state by which a test makes itself fail.
    fn explain(&mut self, ticket: Ticket, test: TestId);

    /// Waits until something happens. It is asked only while a ticket is open.
    fn hear(&mut self) -> Result<Heard, Stop<Self::Trouble>>;
}

/// Why a lab says nothing more.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop<T> {
    /// The user wants to stop.
    Interrupted,
    /// It broke down.
    Trouble(T),
}

/// Makes the experiments that a technique asks for, until it asks for none.
pub fn drive<L: Lab>(
    technique: &mut dyn Technique,
    lab: &mut L,
    tell: &mut dyn FnMut(Event),
) -> Result<Ending, L::Trouble> {
    let mut open = BTreeMap::new();
    loop {
        for wanted in technique.moves() {
            match wanted {
                Move::Submit(ticket, experiment) => {
                    open.insert(ticket, Telling::of(experiment.told));
                    lab.submit(ticket, experiment);
                }
                Move::Explain(ticket, test) => {
                    open.insert(ticket, Telling::of(TrialsTold::All));
                    lab.explain(ticket, test);
                }
                Move::Tell(event) => tell(*event),
            }
        }
        if open.is_empty() {
            return Ok(Ending::Completed);
        }
        let heard = match lab.hear() {
            Ok(heard) => heard,
            Err(Stop::Trouble(trouble)) => return Err(trouble),
            Err(Stop::Interrupted) => {
                let cut = technique.open().into_iter();
                let cut = cut.filter_map(Unsettled::cut);
                cut.map(Event::Judged).for_each(tell);
                return Ok(Ending::Interrupted);
            }
        };
        match &heard {
            Heard::Started { test, vm, rung } => tell(Event::TrialStarted {
                test: test.clone(),
                vm: *vm,
                rung: *rung,
            }),
            Heard::Trial { ticket, trial } => {
                let telling = open.get_mut(ticket);
                let trials = telling.map(|telling| telling.take(trial));
                let trials = trials.into_iter().flatten();
                trials.map(Event::TrialEnded).for_each(&mut *tell);
            }
            Heard::Ended { ticket, .. } | Heard::Explained { ticket, .. } => {
                open.remove(ticket);
            }
        }
        technique.hear(&heard);
    }
}

/// What the readers of events hear of one experiment.
struct Telling {
    told: TrialsTold,
    /// First runs that are told with the second one, or not at all.
    held: Vec<Trial>,
}

impl Telling {
    fn of(told: TrialsTold) -> Self {
        Self {
            told,
            held: Vec::new(),
        }
    }

    /// The trials that are told now that this one has ended.
    fn take(&mut self, trial: &Trial) -> Vec<Trial> {
        if self.told == TrialsTold::All {
            return vec![trial.clone()];
        }
        if !matches!(trial.rung, Rung::Again(_)) {
            self.held.push(trial.clone());
            return Vec::new();
        }
        let place = self.held.iter().rposition(|one| one.test == trial.test);
        let Some(once) = place.map(|place| self.held.swap_remove(place)) else {
            return Vec::new();
        };
        if Pair::of(&once, trial).is_content() {
            vec![once, trial.clone()]
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::VmId;

    /// Wants one thing, and counts what it hears.
    #[derive(Default)]
    struct Listener {
        has_asked: bool,
        heard: usize,
    }

    impl Technique for Listener {
        fn hear(&mut self, _heard: &Heard) {
            self.heard += 1;
        }

        fn moves(&mut self) -> Vec<Move> {
            let wish = Move::Explain(Ticket(0), TestId::new("t"));
            let is_first = !std::mem::replace(&mut self.has_asked, true);
            Vec::from_iter(is_first.then_some(wish))
        }

        fn open(&self) -> Vec<Unsettled> {
            Vec::new()
        }
    }

    /// Says that a test starts, and breaks down.
    struct Broken {
        has_spoken: bool,
    }

    impl Lab for Broken {
        type Trouble = &'static str;

        fn can(&self) -> Capabilities {
            Capabilities {
                copies: false,
                reloads: false,
                lanes: 1,
            }
        }

        fn submit(&mut self, _ticket: Ticket, _experiment: Experiment) {}

        fn explain(&mut self, _ticket: Ticket, _test: TestId) {}

        fn hear(&mut self) -> Result<Heard, Stop<Self::Trouble>> {
            if std::mem::replace(&mut self.has_spoken, true) {
                return Err(Stop::Trouble("no space left"));
            }
            Ok(Heard::Started {
                test: TestId::new("t"),
                vm: VmId(0),
                rung: Rung::Suite,
            })
        }
    }

    #[test]
    fn what_was_heard_before_a_lab_broke_down_is_told() {
        let mut told = Vec::new();
        let mut listener = Listener::default();
        let mut lab = Broken { has_spoken: false };
        let ending = drive(&mut listener, &mut lab, &mut |event| told.push(event));
        assert_eq!(ending, Err("no space left"));
        assert_eq!((told.len(), listener.heard), (1, 1));
    }
}
