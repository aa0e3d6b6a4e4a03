//! What was seen at each epoch, over all traces. A trace is added and can be forgotten: memory grows
//! with the number of epochs, not with the number of calls.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::why::trace::{Call, Kind, Site, Trace};

/// So many different values of one epoch are told apart.
const MOST_VALUES: usize = 16;
/// So many epochs, at most, are held against the progress of other threads.
const MOST_ORDERED: usize = 20_000;
/// So many calls of a thread, at most, are named in an order.
const MOST_NAMED: usize = 20_000;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The test passed.
    Passing = 0,
    /// The test failed.
    Failing = 1,
}

/// One value for the passing runs and one for the failing.
pub(crate) type Sides<T> = [T; 2];

/// When a call is made: at which place, in which thread, for the how-manieth time (`RootFinder` 2019,
/// 3.2). Calls of different runs with the same epoch are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch {
    pub(crate) site: u32,
    pub(crate) thread: u32,
    /// From 1.
    pub(crate) sequence: u32,
}

/// Everything that was seen at one epoch.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) epoch: Epoch,
    /// Its first place in a log, from 1.
    pub(crate) line: usize,
    /// The sum of the times at which its calls ended, in nanoseconds.
    ended: Sides<f64>,
    /// In how many runs it was reached.
    pub(crate) seen: Sides<u32>,
    /// In how many of them it returned what an earlier call at the same place had returned.
    pub(crate) same: Sides<u32>,
    pub(crate) raised: Sides<u32>,
    pub(crate) values: Vec<Value>,
    /// The values, where they are numbers.
    pub(crate) numbers: Sides<Vec<f64>>,
    /// How long the calls took, in microseconds.
    pub(crate) times: Sides<Vec<u32>>,
    /// How far other threads were when it began, by thread: the highest place among the calls that they
    /// had ended, from 1.
    pub(crate) progress: Vec<(u32, Sides<Vec<u32>>)>,
    /// Its place among the calls of its thread, from 1; 0 if it has none.
    place: u32,
}

/// A value or exception, and in how many runs it came.
#[derive(Debug)]
pub(crate) struct Value {
    hash: u64,
    pub(crate) text: String,
    pub(crate) is_exception: bool,
    pub(crate) counts: Sides<u32>,
}

impl Evidence {
    fn new(epoch: Epoch, line: usize) -> Self {
        Self {
            epoch,
            line,
            ended: [0.0; 2],
            seen: [0; 2],
            same: [0; 2],
            raised: [0; 2],
            values: Vec::new(),
            numbers: [Vec::new(), Vec::new()],
            times: [Vec::new(), Vec::new()],
            progress: Vec::new(),
            place: 0,
        }
    }

    /// When its calls ended on average, in nanoseconds from the beginning of the run: in failing runs,
    /// unless only passing ones make them.
    pub(crate) fn mean_end(&self) -> f64 {
        let [passing, failing] = [0, 1].map(|side| self.ended[side] / f64::from(self.seen[side]));
        if self.seen[Side::Failing as usize] > 0 {
            failing
        } else {
            passing
        }
    }

    fn take_value(&mut self, text: &str, is_exception: bool, side: Side) {
        if !is_exception
            && let Ok(number) = text.parse::<f64>()
            && number.is_finite()
        {
            self.numbers[side as usize].push(number);
        }
        let mut hasher = DefaultHasher::new();
        (text, is_exception).hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.values.iter().position(|value| value.hash == hash);
        if let Some(known) = known {
            self.values[known].counts[side as usize] += 1;
        } else if self.values.len() < MOST_VALUES {
            // Where there are more, no single one explains anything.
            let mut counts = [0; 2];
            counts[side as usize] = 1;
            self.values.push(Value {
                hash,
                text: text.to_owned(),
                is_exception,
                counts,
            });
        }
    }
}

/// What was seen at each epoch, over all traces that were added.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(crate) sites: Vec<Site>,
    site_numbers: HashMap<Site, u32>,
    pub(crate) threads: Vec<String>,
    /// Who started each thread.
    pub(crate) parents: Vec<Option<u32>>,
    thread_numbers: HashMap<String, u32>,
    rows: HashMap<Epoch, usize>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) runs: Sides<u32>,
    /// The calls of each thread in the order in which they were first seen to end, over all runs: a call
    /// that only some runs make does not move the others.
    pub(crate) ended: HashMap<u32, Vec<Epoch>>,
    ordered: usize,
}

impl Ledger {
    /// Takes in the trace of a run.
    pub fn add(&mut self, trace: &Trace, side: Side) {
        self.runs[side as usize] += 1;
        let sites: Vec<u32> = trace.sites.iter().map(|site| self.site(site)).collect();
        let mut threads: Vec<u32> = Vec::with_capacity(trace.threads.len());
        for thread in &trace.threads {
            // Whoever starts a thread is told before it.
            let parent = thread
                .parent
                .and_then(|parent| threads.get(parent as usize));
            let parent = parent.copied();
            threads.push(self.thread(&thread.name, parent));
        }
        let mut sequences: HashMap<(u32, u32), u32> = HashMap::new();
        let mut known: HashSet<(u32, u32, Option<u32>, bool)> = HashSet::new();
        let mut epochs = Vec::with_capacity(trace.calls.len());
        let mut rows = Vec::with_capacity(trace.calls.len());
        for (at, call) in trace.calls.iter().enumerate() {
            let (at_site, thread) = (sites[call.site as usize], threads[call.thread as usize]);
            let sequence = sequences.entry((at_site, thread)).or_default();
            *sequence += 1;
            let epoch = Epoch {
                site: at_site,
                thread,
                sequence: *sequence,
            };
            let result = call.result;
            let is_new = known.insert((at_site, thread, result.text(), result.is_exception()));
            let row = self.take_call(trace, call, epoch, at + 1, side);
            self.evidence[row].same[side as usize] += u32::from(!is_new);
            epochs.push(epoch);
            rows.push(row);
        }
        if trace.threads.len() > 1 {
            self.take_orders(trace, &epochs, &rows, side);
        }
    }

    /// How many traces of one kind were added.
    pub fn runs(&self, side: Side) -> u32 {
        self.runs[side as usize]
    }

    /// How many epochs were seen.
    pub fn epochs(&self) -> usize {
        self.evidence.len()
    }

    fn site(&mut self, site: &Site) -> u32 {
        if let Some(number) = self.site_numbers.get(site) {
            return *number;
        }
        let number = index(self.sites.len());
        self.sites.push(site.clone());
        self.site_numbers.insert(site.clone(), number);
        number
    }

    fn thread(&mut self, name: &str, parent: Option<u32>) -> u32 {
        if let Some(number) = self.thread_numbers.get(name) {
            return *number;
        }
        let number = index(self.threads.len());
        self.threads.push(name.to_owned());
        self.parents.push(parent);
        self.thread_numbers.insert(name.to_owned(), number);
        number
    }

    fn take_call(
        &mut self,
        trace: &Trace,
        call: &Call,
        epoch: Epoch,
        line: usize,
        side: Side,
    ) -> usize {
        let next = self.evidence.len();
        let row = *self.rows.entry(epoch).or_insert(next);
        if row == next {
            self.evidence.push(Evidence::new(epoch, line));
        }
        let evidence = &mut self.evidence[row];
        evidence.line = evidence.line.min(line);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a run takes far less than 2 to the 52nd nanoseconds"
        )]
        let end = (call.start + call.duration) as f64;
        evidence.ended[side as usize] += end;
        evidence.seen[side as usize] += 1;
        evidence.raised[side as usize] += u32::from(call.result.is_exception());
        if let Some(text) = call.result.text() {
            let text = &trace.values[text as usize];
            evidence.take_value(text, call.result.is_exception(), side);
        }
        let time = u32::try_from(call.duration / 1000).unwrap_or(u32::MAX);
        evidence.times[side as usize].push(time);
        row
    }

    /// Notes for each call how far the other threads were when it began.
    fn take_orders(&mut self, trace: &Trace, epochs: &[Epoch], rows: &[usize], side: Side) {
        let kind = |at: usize| trace.sites[trace.calls[at].site as usize].kind;
        let is_call = |at: &usize| kind(*at) != Kind::Leftover;
        let end = |at: usize| trace.calls[at].start + trace.calls[at].duration;
        let mut by_end: Vec<usize> = (0..trace.calls.len()).filter(is_call).collect();
        by_end.sort_by_key(|at| end(*at));
        for at in &by_end {
            self.name_end(epochs[*at], rows[*at]);
        }
        let mut threads: Vec<u32> = epochs.iter().map(|epoch| epoch.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut progress: HashMap<u32, u32> = HashMap::new();
        let mut following = by_end.iter().peekable();
        for at in (0..trace.calls.len()).filter(is_call) {
            let is_before = |other: &&usize| end(**other) <= trace.calls[at].start;
            while let Some(other) = following.next_if(is_before) {
                let furthest = progress.entry(epochs[*other].thread).or_default();
                *furthest = (*furthest).max(self.evidence[rows[*other]].place);
            }
            for other in &threads {
                if *other != epochs[at].thread {
                    let furthest = progress.get(other).copied().unwrap_or(0);
                    self.note_progress(rows[at], *other, furthest, side);
                }
            }
        }
    }

    /// Gives a call that has ended its place among those of its thread.
    fn name_end(&mut self, epoch: Epoch, row: usize) {
        let ended = self.ended.entry(epoch.thread).or_default();
        if self.evidence[row].place == 0 && ended.len() < MOST_NAMED {
            ended.push(epoch);
            self.evidence[row].place = index(ended.len());
        }
    }

    fn note_progress(&mut self, row: usize, other: u32, progress: u32, side: Side) {
        let evidence = &mut self.evidence[row];
        let known = evidence.progress.iter_mut();
        let mut known = known.filter(|(thread, _)| *thread == other);
        if let Some((_, sides)) = known.next() {
            sides[side as usize].push(progress);
        } else if self.ordered < MOST_ORDERED {
            self.ordered += 1;
            let mut sides = [Vec::new(), Vec::new()];
            sides[side as usize].push(progress);
            evidence.progress.push((other, sides));
        }
    }
}

/// A place in a list, as it is kept.
fn index(place: usize) -> u32 {
    u32::try_from(place).expect("a trace has fewer than 2 to the 32nd things of a kind")
}
