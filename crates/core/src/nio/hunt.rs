//! The hunt for NIO tests: every test twice, then those that did not pass twice, alone, until each has its name.
//!
//! What a pair of outcomes means is decided in `nio`, which experiments detect in `detection`, which ones name a suspect
//! in `naming`, and how many suspects are confirmed at once in `confirmation`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::event::{Event, Note};
use crate::experiment::{Between, Capabilities, Experiment};
use crate::nio::class::takes_two_classes;
use crate::nio::confirmation::{Confirmation, Next, keep};
use crate::nio::detection::Detection;
use crate::nio::suspect::Suspect;
use crate::nio::{Setting, Step, naming};
use crate::state::Cause;
use crate::technique::{Heard, Move, Technique, Ticket, Unsettled};
use crate::test::TestId;
use crate::trial::Trial;
use crate::verdict::{Finding, Verdict};

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

/// What is hunted, and how.
#[derive(Clone, Debug)]
pub struct HuntPlan {
    /// In which VMs tests are run twice.
    pub mode: Mode,
    /// The tests that are run twice, in the suite's order.
    pub tests: Vec<TestId>,
    /// Those of them that are new or modified.
    pub changed: BTreeSet<TestId>,
    /// All tests of the project, if it gives each class a VM of its own.
    pub classes: Option<Vec<TestId>>,
}

/// The hunt for NIO tests, as a technique.
#[derive(Clone, Debug)]
pub struct Hunt {
    plan: HuntPlan,
    can: Capabilities,
    phase: Phase,
    suspects: Vec<Suspect>,
    /// The tests of which there is nothing to say.
    settled: BTreeSet<TestId>,
    /// What it waits for.
    asked: BTreeMap<Ticket, Asked>,
    /// The number of the next ticket.
    next: usize,
    /// What it has to say, or wants, and has not been asked for yet.
    moves: Vec<Move>,
    /// When the last experiment ended.
    now: Duration,
}

#[derive(Clone, Debug)]
enum Phase {
    Detecting(Detection),
    /// Suspects are confirmed many at once.
    Confirming(Confirmation),
    /// Suspects are named one by one. The whole suite runs again in these settings, each once for all suspects that
    /// need it.
    Naming(VecDeque<Setting>),
    Done,
}

/// Something that was asked for, with the trials that came of it.
#[derive(Clone, Debug)]
struct Asked {
    purpose: Purpose,
    trials: Vec<Trial>,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Detect,
    /// Pairs of some suspects, alone or among each other, in new processes.
    Confirm(Setting, Between),
    /// A pair of the suspect at this place.
    Name(usize, Setting),
    /// The suite once more.
    Suite(Setting),
    /// The state behind the suspect at this place, whose verdict is known.
    Explain(usize, Verdict),
}

impl Hunt {
    /// A hunt in a lab that can do this.
    pub fn new(plan: HuntPlan, can: Capabilities) -> Self {
        Self {
            phase: Phase::Detecting(Detection::new(&plan, can)),
            plan,
            can,
            suspects: Vec::new(),
            settled: BTreeSet::new(),
            asked: BTreeMap::new(),
            next: 0,
            moves: Vec::new(),
            now: Duration::ZERO,
        }
    }

    /// Goes on, once all experiments have ended.
    fn advance(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Detecting(detection) => self.detect(detection),
            Phase::Confirming(confirmation) => self.confirm(confirmation),
            Phase::Naming(suites) => self.name(suites),
            Phase::Done => Phase::Done,
        };
    }

    fn detect(&mut self, mut detection: Detection) -> Phase {
        if let Some(note) = detection.end_stage() {
            self.tell(Event::Noted(note));
        }
        let experiments = detection.next_experiments();
        if !experiments.is_empty() {
            for experiment in experiments {
                self.submit(Purpose::Detect, experiment);
            }
            return Phase::Detecting(detection);
        }
        let suspects = detection.into_suspects();
        self.suspects = suspects
            .map(|(once, again)| Suspect::new(once, again))
            .collect();
        self.settled = self.plan.tests.iter().cloned().collect();
        for suspect in &self.suspects {
            self.settled.remove(&suspect.test);
        }
        self.tell(Event::SuiteEnded {
            elapsed: self.now.max(Duration::from_millis(1)),
            failures: self.suspects.len(),
            too_many_failures: false,
        });
        if self.can.copies {
            one_by_one()
        } else {
            Phase::Confirming(Confirmation::new(self.can.lanes))
        }
    }

    fn confirm(&mut self, mut confirmation: Confirmation) -> Phase {
        match confirmation.next(&self.suspects) {
            Next::Run(between, experiments) => {
                for experiment in experiments {
                    self.submit(Purpose::Confirm(experiment.setting, between), experiment);
                }
            }
            Next::Judge(verdicts) => {
                for (at, verdict) in verdicts {
                    self.judge(at, verdict);
                }
            }
            Next::End => {
                let (tests, explained) = confirmation.into_unexplained();
                if !tests.is_empty() {
                    self.tell(Event::Noted(Note::Unexplained { tests, explained }));
                }
                return one_by_one();
            }
        }
        Phase::Confirming(confirmation)
    }

    /// Asks for what names the first suspect that can be named alone; if there is none, for the suite.
    fn name(&mut self, mut suites: VecDeque<Setting>) -> Phase {
        for at in 0..self.suspects.len() {
            if self.suspects[at].is_judged {
                continue;
            }
            match self.suspects[at].step() {
                Step::Conclude(Some(verdict @ Verdict::Nio(_))) => {
                    let ticket = self.ask(Purpose::Explain(at, verdict));
                    let test = self.suspects[at].test.clone();
                    self.moves.push(Move::Explain(ticket, test));
                    return Phase::Naming(suites);
                }
                Step::Conclude(Some(verdict)) => self.judge(at, verdict),
                Step::Conclude(None) => self.suspects[at].is_judged = true,
                Step::Run(Setting::Replay | Setting::Plain) => {}
                Step::Run(setting) => {
                    let experiment = naming::alone(&self.suspects[at].test, setting);
                    self.submit(Purpose::Name(at, setting), experiment);
                    return Phase::Naming(suites);
                }
            }
        }
        while let Some(setting) = suites.pop_front() {
            if self.suspects.iter().any(|one| one.wants(setting)) {
                let experiment = naming::suite(&self.plan.tests, setting);
                self.submit(Purpose::Suite(setting), experiment);
                return Phase::Naming(suites);
            }
        }
        Phase::Done
    }

    fn submit(&mut self, purpose: Purpose, experiment: Experiment) {
        let ticket = self.ask(purpose);
        self.moves.push(Move::Submit(ticket, experiment));
    }

    fn ask(&mut self, purpose: Purpose) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let trials = Vec::new();
        self.asked.insert(ticket, Asked { purpose, trials });
        ticket
    }

    fn tell(&mut self, event: Event) {
        self.moves.push(Move::Tell(Box::new(event)));
    }

    fn judge(&mut self, at: usize, verdict: Verdict) {
        let suspect = &mut self.suspects[at];
        suspect.is_judged = true;
        let classes = self.plan.classes.as_ref();
        let finding = Finding {
            is_latent: verdict.depends_on_order()
                && classes.is_some_and(|listed| takes_two_classes(&suspect.test, &[], listed)),
            test: suspect.test.clone(),
            verdict,
            trials: suspect.trials.clone(),
            blame: None,
            left_behind: suspect.left_behind.clone(),
            dependence: None,
            cause: suspect.cause.clone(),
        };
        self.tell(Event::Judged(finding));
    }

    /// Takes what an experiment made.
    fn end(&mut self, asked: Asked, left_behind: &[String]) {
        let trials = asked.trials;
        match asked.purpose {
            // What was only to detect is taken trial by trial.
            Purpose::Detect | Purpose::Explain(..) => {}
            Purpose::Confirm(setting, between) => {
                for (at, own) in self.by_suspect(trials) {
                    keep(&mut self.suspects[at], own, between);
                    // Which of several changed the files is not known.
                    if setting == Setting::Confirm {
                        self.suspects[at].left_behind = left_behind.to_vec();
                    }
                }
            }
            Purpose::Name(at, setting) => {
                self.suspects[at].take(setting, trials);
                self.suspects[at].left_behind = left_behind.to_vec();
            }
            Purpose::Suite(setting) => {
                let mut trials = self.by_suspect(trials);
                for at in 0..self.suspects.len() {
                    if self.suspects[at].wants(setting) {
                        let own = trials.remove(&at).unwrap_or_default();
                        self.suspects[at].take(setting, own);
                    }
                }
            }
        }
    }

    /// The trials of each suspect, by its place.
    fn by_suspect(&self, trials: Vec<Trial>) -> BTreeMap<usize, Vec<Trial>> {
        let mut found: BTreeMap<usize, Vec<Trial>> = BTreeMap::new();
        for trial in trials {
            let mut suspects = self.suspects.iter();
            if let Some(at) = suspects.position(|suspect| suspect.test == trial.test) {
                found.entry(at).or_default().push(trial);
            }
        }
        found
    }

    fn explained(&mut self, at: usize, verdict: Verdict, cause: Option<&Cause>) {
        self.suspects[at].cause = cause.cloned().map(Box::new);
        self.judge(at, verdict);
    }
}

impl Technique for Hunt {
    fn hear(&mut self, heard: &Heard) {
        match heard {
            Heard::Started { .. } => {}
            Heard::Trial { ticket, trial } => {
                if let Phase::Detecting(detection) = &mut self.phase {
                    self.settled.extend(detection.hear(trial));
                } else if let Some(asked) = self.asked.get_mut(ticket) {
                    asked.trials.push((**trial).clone());
                }
            }
            Heard::Ended {
                ticket,
                left_behind,
                at,
            } => {
                self.now = *at;
                if let Some(asked) = self.asked.remove(ticket) {
                    self.end(asked, left_behind);
                }
            }
            Heard::Explained { ticket, cause } => {
                let asked = self.asked.remove(ticket);
                if let Some(Purpose::Explain(at, verdict)) = asked.map(|asked| asked.purpose) {
                    self.explained(at, verdict, cause.as_deref());
                }
            }
        }
    }

    fn moves(&mut self) -> Vec<Move> {
        while self.asked.is_empty() && !matches!(self.phase, Phase::Done) {
            self.advance();
        }
        std::mem::take(&mut self.moves)
    }

    fn open(&self) -> Vec<Unsettled> {
        let judged = self.suspects.iter().filter(|suspect| suspect.is_judged);
        let judged: BTreeSet<&TestId> = judged.map(|suspect| &suspect.test).collect();
        let is_open = |test: &&TestId| !self.settled.contains(*test) && !judged.contains(*test);
        let open = self.plan.tests.iter().filter(is_open);
        open.map(|test| self.unsettled(test)).collect()
    }
}

impl Hunt {
    /// What is known of a test so far.
    fn unsettled(&self, test: &TestId) -> Unsettled {
        let mut suspects = self.suspects.iter();
        let suspect = suspects.find(|suspect| suspect.test == *test);
        let mut trials = match &self.phase {
            Phase::Detecting(detection) => detection.trials_of(test),
            Phase::Confirming(_) | Phase::Naming(_) | Phase::Done => {
                suspect.map_or_else(Vec::new, |suspect| suspect.trials.clone())
            }
        };
        let asked = self.asked.values().flat_map(|asked| &asked.trials);
        trials.extend(asked.filter(|trial| trial.test == *test).cloned());
        Unsettled {
            test: test.clone(),
            trials,
            left_behind: suspect.map_or_else(Vec::new, |suspect| suspect.left_behind.clone()),
        }
    }
}

/// The phase in which suspects are named one by one.
fn one_by_one() -> Phase {
    Phase::Naming([Setting::Replay, Setting::Plain].into())
}
