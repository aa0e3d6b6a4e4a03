//! What was seen at each epoch, over all traces: memory grows with the epochs, and not with the calls.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use crate::why::trace::{Call, Kind, Site, Trace};

/// The most different values of one epoch that are told apart on each side.
const MOST_VALUES: usize = 12;
/// The most epochs that are compared with the progress of other threads.
const MOST_ORDERED: usize = 200_000;
/// The most calls of a thread that an order can name.
const MOST_NAMED: usize = 100_000;

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

/// The position of a call in a run: its place, its thread, and its number among the calls there (`RootFinder` 2019,
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
    /// The number of runs that reached it.
    pub(crate) seen: Sides<u32>,
    /// The number of these runs in which it returned the same as an earlier call at the same place.
    pub(crate) same: Sides<u32>,
    pub(crate) raised: Sides<u32>,
    pub(crate) values: Vec<Value>,
    /// The values, where they are numbers.
    pub(crate) numbers: Sides<Vec<f64>>,
    /// The durations of the calls, in microseconds.
    pub(crate) times: Sides<Vec<u32>>,
    /// The progress of other threads when it began, by thread: the highest place among the calls that they had ended,
    /// from 1.
    pub(crate) progress: Vec<(u32, Sides<Vec<u32>>)>,
    /// Its place among the calls of its thread, from 1; 0 if it has none.
    pub(crate) place: u32,
}

/// A value or exception, and in how many runs it came.
#[derive(Debug)]
pub(crate) struct Value {
    hash: u64,
    pub(crate) text: Box<str>,
    pub(crate) is_exception: bool,
    pub(crate) counts: Sides<u32>,
}

impl Evidence {
    fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            line: usize::MAX,
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

    /// The average end of its calls, in nanoseconds from the beginning of the run: over failing runs, unless only
    /// passing ones make them.
    pub(crate) fn mean_end(&self) -> f64 {
        let [passing, failing] = [0, 1].map(|side| self.ended[side] / f64::from(self.seen[side]));
        if self.seen[Side::Failing as usize] > 0 {
            failing
        } else {
            passing
        }
    }

    pub(super) fn take_call(&mut self, call: &Call, line: usize, side: Side) {
        self.line = self.line.min(line);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a run takes far less than 2 to the 52nd nanoseconds"
        )]
        let end = (call.start + call.duration) as f64;
        self.ended[side as usize] += end;
        self.seen[side as usize] += 1;
        self.raised[side as usize] += u32::from(call.result.is_exception());
        let time = u32::try_from(call.duration / 1000).unwrap_or(u32::MAX);
        self.times[side as usize].push(time);
    }

    /// Whether one more value of a side can be told apart: many values of one side leave room for those of the other.
    fn has_room(&self, side: Side) -> bool {
        let of_side = |value: &&Value| value.counts[side as usize] > 0;
        self.values.len() < 2 * MOST_VALUES
            && self.values.iter().filter(of_side).count() < MOST_VALUES
    }

    pub(super) fn take_value(&mut self, text: &Text<'_>, is_exception: bool, side: Side) {
        if !is_exception && let Some(number) = text.number {
            self.numbers[side as usize].push(number);
        }
        let is_it =
            |value: &&mut Value| value.hash == text.hash && value.is_exception == is_exception;
        if let Some(known) = self.values.iter_mut().find(is_it) {
            known.counts[side as usize] += 1;
        } else if self.has_room(side) {
            // If there are more, no single value explains anything.
            let mut counts = [0; 2];
            counts[side as usize] = 1;
            self.values.push(Value {
                hash: text.hash,
                text: text.words.into(),
                is_exception,
                counts,
            });
        }
    }
}

/// A text of a trace, looked at once however many calls return it.
pub(super) struct Text<'a> {
    words: &'a str,
    hash: u64,
    /// If it is a number.
    pub(super) number: Option<f64>,
}

impl<'a> Text<'a> {
    fn of(text: &'a String) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        Self {
            words: text,
            hash: hasher.finish(),
            number,
        }
    }
}

/// All calls of one thread at one place, by the numbers of the ledger.
type Lane = (u32, u32);

/// Mixes numbers that we gave ourselves: nobody chooses them so that they collide.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

type Mixed = BuildHasherDefault<Mixer>;

/// What was seen at each epoch, over all traces that were added.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(crate) sites: Vec<Site>,
    site_numbers: HashMap<Site, u32>,
    pub(crate) threads: Vec<String>,
    /// Who started each thread.
    pub(crate) parents: Vec<Option<u32>>,
    thread_numbers: HashMap<String, u32>,
    lane_numbers: HashMap<Lane, u32, Mixed>,
    /// The rows of each lane, by sequence numbers.
    lanes: Vec<Vec<u32>>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) runs: Sides<u32>,
    /// The calls of each thread in the order in which they were first seen to end, over all runs: a call
    /// that only some runs make does not move the others.
    pub(crate) ended: HashMap<u32, Vec<Epoch>>,
    ordered: usize,
    /// Whether all failing runs were made after, or all before, the passing ones: then clocks tell nothing.
    pub is_apart: bool,
}

impl Ledger {
    /// Takes in the trace of a run.
    pub fn add(&mut self, trace: &Trace, side: Side) {
        self.runs[side as usize] += 1;
        let sites: Vec<u32> = trace.sites.iter().map(|site| self.site(site)).collect();
        let names = trace.threads.iter();
        let threads: Vec<u32> = names.map(|thread| self.thread(&thread.name)).collect();
        for (thread, number) in trace.threads.iter().zip(&threads) {
            let parent = thread
                .parent
                .and_then(|parent| threads.get(parent as usize));
            let known = &mut self.parents[*number as usize];
            *known = known.or(parent.copied());
        }
        let texts: Vec<Text<'_>> = trace.values.iter().map(Text::of).collect();
        // The number of calls of each lane so far; and its results, by lane, text and whether it raised.
        let mut counts: Vec<u32> = vec![0; self.lanes.len()];
        let mut known: HashSet<(u64, u64), Mixed> = HashSet::default();
        let mut rows: Vec<u32> = Vec::with_capacity(trace.calls.len());
        for (at, call) in trace.calls.iter().enumerate() {
            let place = (sites[call.site as usize], threads[call.thread as usize]);
            let lane = self.lane(place);
            if counts.len() <= lane as usize {
                counts.resize(self.lanes.len(), 0);
            }
            counts[lane as usize] += 1;
            let row = self.row(place, lane, counts[lane as usize]);
            let result = call.result;
            let text = result.text().map_or(0, |text| u64::from(text) + 1);
            let is_new = known.insert((
                u64::from(lane) << 1 | u64::from(result.is_exception()),
                text,
            ));
            let evidence = &mut self.evidence[row as usize];
            evidence.same[side as usize] += u32::from(!is_new);
            evidence.take_call(call, at + 1, side);
            if let Some(text) = result.text() {
                evidence.take_value(&texts[text as usize], result.is_exception(), side);
            }
            rows.push(row);
        }
        self.take_extremes(trace, &texts, side);
        if trace.threads.len() > 1 {
            self.take_orders(trace, &rows, side);
        }
    }

    /// The number of traces of one kind that were added.
    pub fn runs(&self, side: Side) -> u32 {
        self.runs[side as usize]
    }

    /// The number of epochs that were seen.
    pub fn epochs(&self) -> usize {
        self.evidence.len()
    }

    /// The evidence of the calls at one place in one thread, in the order of the calls.
    pub(crate) fn rows_at(&self, site: u32, thread: u32) -> Vec<&Evidence> {
        let lane = self.lane_numbers.get(&(site, thread));
        let rows = lane.map_or(&[][..], |lane| &self.lanes[*lane as usize]);
        rows.iter()
            .map(|row| &self.evidence[*row as usize])
            .collect()
    }

    pub(super) fn site(&mut self, site: &Site) -> u32 {
        if let Some(number) = self.site_numbers.get(site) {
            return *number;
        }
        let number = index(self.sites.len());
        self.sites.push(site.clone());
        self.site_numbers.insert(site.clone(), number);
        number
    }

    pub(super) fn thread(&mut self, name: &str) -> u32 {
        if let Some(number) = self.thread_numbers.get(name) {
            return *number;
        }
        let number = index(self.threads.len());
        self.threads.push(name.to_owned());
        self.parents.push(None);
        self.thread_numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn lane(&mut self, lane: Lane) -> u32 {
        let next = index(self.lanes.len());
        let number = *self.lane_numbers.entry(lane).or_insert(next);
        if number == next {
            self.lanes.push(Vec::new());
        }
        number
    }

    /// The row of a call in a lane, by its number there; all calls before it have theirs.
    pub(super) fn row(&mut self, (site, thread): Lane, lane: u32, sequence: u32) -> u32 {
        let rows = &mut self.lanes[lane as usize];
        if let Some(row) = rows.get(sequence as usize - 1) {
            return *row;
        }
        let row = index(self.evidence.len());
        rows.push(row);
        self.evidence.push(Evidence::new(Epoch {
            site,
            thread,
            sequence,
        }));
        row
    }

    /// Notes for each call how far the other threads were when it began.
    fn take_orders(&mut self, trace: &Trace, rows: &[u32], side: Side) {
        let kind = |at: usize| trace.sites[trace.calls[at].site as usize].kind;
        let is_call = |at: &usize| kind(*at) != Kind::Leftover;
        let end = |at: usize| trace.calls[at].start + trace.calls[at].duration;
        let mut by_end: Vec<(u64, usize)> = (0..trace.calls.len())
            .filter(is_call)
            .map(|at| (end(at), at))
            .collect();
        by_end.sort_unstable();
        for (_, at) in &by_end {
            self.name_end(rows[*at] as usize);
        }
        let thread = |ledger: &Self, at: usize| ledger.evidence[rows[at] as usize].epoch.thread;
        // The threads of this trace, each with how far it is.
        let mut progress: Vec<(u32, u32)> = Vec::new();
        for at in 0..trace.calls.len() {
            let thread = thread(self, at);
            if progress.iter().all(|(known, _)| *known != thread) {
                progress.push((thread, 0));
            }
        }
        let mut following = by_end.iter().peekable();
        for at in (0..trace.calls.len()).filter(is_call) {
            let is_before = |(end, _): &&(u64, usize)| *end <= trace.calls[at].start;
            while let Some((_, other)) = following.next_if(is_before) {
                let thread = thread(self, *other);
                let place = self.evidence[rows[*other] as usize].place;
                for (known, furthest) in &mut progress {
                    if *known == thread {
                        *furthest = (*furthest).max(place);
                    }
                }
            }
            let own = thread(self, at);
            for (other, furthest) in &progress {
                if *other != own {
                    self.note_progress(rows[at] as usize, *other, *furthest, side);
                }
            }
        }
    }

    /// Gives a call that has ended its place among those of its thread.
    fn name_end(&mut self, row: usize) {
        let evidence = &mut self.evidence[row];
        if evidence.place != 0 {
            return;
        }
        let ended = self.ended.entry(evidence.epoch.thread).or_default();
        if ended.len() < MOST_NAMED {
            ended.push(evidence.epoch);
            evidence.place = index(ended.len());
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
