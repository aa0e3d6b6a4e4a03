//! Confirmation of many suspects at once, where a VM cannot be copied and every suspect needs a new process.
//!
//! Each run of a test has a set-up of its own there, that of its class included. So a confirmation is a
//! pair with everything torn down in between as well. In the last of them the garbage is collected
//! between the runs too: if the test fails all the same, the collector has no part in it.
//!
//! A process for each is dear. So where there are many suspects, only the first confirmation is alone. The
//! others are made among all that passed and failed there, once backwards and once forwards, each time in
//! new processes. One that ends otherwise among others is confirmed alone after all.

use std::collections::HashSet;

use crate::experiment::{Between, Experiment, Times, TrialsTold, VmSpec};
use crate::nio::class::class_of;
use crate::nio::suspect::Suspect;
use crate::nio::{Pair, Setting, Shape, Step};
use crate::test::TestId;
use crate::trial::Trial;
use crate::verdict::Verdict;

/// The number of suspects for each lane that are confirmed before any is named: a hunt that is cut off keeps the
/// others.
const CHUNK: usize = 32;

/// From more suspects than this on, only some are looked into further.
const FEW: usize = 16;

/// The number of NIO tests, each of another class, whose state is looked for where there are many: it takes several
/// processes for each.
const EXPLAINED: usize = 2;

/// What is made of a chunk, one after the other.
const ROUNDS: [Round; 5] = [
    Round::Alone(Between::Nothing),
    Round::Backwards(Between::Nothing),
    Round::Forwards(Between::Collect),
    Round::Alone(Between::Nothing),
    Round::Alone(Between::Collect),
];

/// What is made of those suspects of a chunk that have still to be confirmed.
#[derive(Clone, Copy, Debug)]
enum Round {
    /// A pair of each, alone.
    Alone(Between),
    /// A pair of each that passed and failed alone, among the others, the last first.
    Backwards(Between),
    /// The same, the first first.
    Forwards(Between),
}

/// A confirmation on its way.
#[derive(Clone, Debug)]
pub(super) struct Confirmation {
    lanes: usize,
    /// The first suspect of the chunk.
    from: usize,
    /// How many rounds of the chunk have begun.
    begun: usize,
    explained: HashSet<String>,
    /// The NIO tests whose state is not looked for.
    unexplained: Vec<TestId>,
}

/// What a confirmation wants next.
pub(super) enum Next {
    /// Experiments with new processes, and what is done between the two runs of a test in them.
    Run(Between, Vec<Experiment>),
    /// A verdict for the suspect at this place.
    Judge(Vec<(usize, Verdict)>),
    /// Nothing: all chunks are done.
    End,
}

impl Confirmation {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes,
            from: 0,
            begun: 0,
            explained: HashSet::new(),
            unexplained: Vec::new(),
        }
    }

    /// The next experiments, or verdicts. It is called again when those experiments have ended.
    pub(super) fn next(&mut self, suspects: &[Suspect]) -> Next {
        if self.from >= suspects.len() {
            return Next::End;
        }
        let until = (self.from + CHUNK * self.lanes).min(suspects.len());
        let chunk = &suspects[self.from..until];
        while let Some(round) = ROUNDS.get(self.begun).copied() {
            self.begun += 1;
            let (between, groups) = self.groups(round, chunk);
            if !groups.is_empty() {
                let setting = match round {
                    Round::Alone(_) => Setting::Confirm,
                    Round::Backwards(_) | Round::Forwards(_) => Setting::Together,
                };
                let experiment = |order| Experiment {
                    vm: VmSpec::New,
                    order,
                    times: Times::Twice(between),
                    setting,
                    told: TrialsTold::All,
                };
                return Next::Run(between, groups.into_iter().map(experiment).collect());
            }
        }
        let (from, all) = (self.from, suspects.len());
        (self.from, self.begun) = (until, 0);
        let judged = chunk.iter().zip(from..).filter_map(|(suspect, at)| {
            let Step::Conclude(Some(verdict)) = suspect.step() else {
                return None;
            };
            (!self.is_explained(suspect, verdict, all)).then_some((at, verdict))
        });
        Next::Judge(judged.collect())
    }

    /// The NIO tests whose state is not looked for, and of how many others it is.
    pub(super) fn into_unexplained(self) -> (Vec<TestId>, usize) {
        (self.unexplained, self.explained.len())
    }

    /// The tests that run in one process each in a round.
    fn groups(&self, round: Round, chunk: &[Suspect]) -> (Between, Vec<Vec<TestId>>) {
        let open = chunk.iter().filter(|one| one.wants(Setting::Confirm));
        let tests = |suspects: Vec<&Suspect>| -> Vec<TestId> {
            suspects.into_iter().map(|one| one.test.clone()).collect()
        };
        match round {
            Round::Alone(between) => {
                let tests = tests(open.collect());
                (between, tests.into_iter().map(|test| vec![test]).collect())
            }
            Round::Backwards(between) | Round::Forwards(between) => {
                let mut seen = tests(open.filter(|one| is_seen_alone(one)).collect());
                if matches!(round, Round::Backwards(_)) {
                    seen.reverse();
                }
                if seen.len() <= self.lanes {
                    return (between, Vec::new());
                }
                let parts = seen.chunks(seen.len().div_ceil(self.lanes));
                (between, parts.map(<[TestId]>::to_vec).collect())
            }
        }
    }

    /// Whether the state behind a suspect is looked for before it is judged. Notes what is not looked for.
    fn is_explained(&mut self, suspect: &Suspect, verdict: Verdict, all: usize) -> bool {
        if !matches!(verdict, Verdict::Nio(_)) {
            return false;
        }
        let is_few = all <= FEW;
        let class = class_of(&suspect.test).to_owned();
        let has_room = self.explained.len() < EXPLAINED;
        let is_explained = is_few || has_room && !self.explained.contains(&class);
        if is_explained {
            self.explained.insert(class);
        } else {
            self.unexplained.push(suspect.test.clone());
        }
        is_explained
    }
}

/// Whether a test was run alone, and passed and failed each time.
fn is_seen_alone(suspect: &Suspect) -> bool {
    let seen = suspect.pairs.iter();
    let mut alone = seen
        .filter(|pair| pair.setting == Setting::Confirm)
        .peekable();
    alone.peek().is_some() && alone.all(|pair| pair.shape() == Shape::PassFail)
}

/// Takes the two trials of a confirmation for what they show.
pub(super) fn keep(suspect: &mut Suspect, trials: Vec<Trial>, between: Between) {
    if let [once, again] = &trials[..] {
        keep_pair(&mut suspect.pairs, &Pair::of(once, again), between);
    }
    suspect.trials.extend(trials);
}

fn keep_pair(seen: &mut Vec<Pair>, pair: &Pair, between: Between) {
    let also = |setting: Setting| Pair {
        setting,
        ..pair.clone()
    };
    let fails_again = pair.shape() == Shape::PassFail;
    if pair.setting == Setting::Together && !fails_again {
        // One of the others may have disturbed it.
        return;
    }
    if between == Between::Collect {
        seen.push(also(Setting::Collected));
        if !fails_again {
            // The collector may have helped: this one confirms nothing.
            return;
        }
    }
    if seen.iter().all(|pair| pair.setting != Setting::TornDown) {
        seen.push(also(Setting::TornDown));
    }
    seen.push(pair.clone());
}
