//! Delay fuzzing: the delays that make a test fail which passes by itself (`RootFinder` 2019, 3.2 and 4).
//!
//! A [`Fuzz`] says which delays the next run has. First it looks for a set of delays with which the test fails; the
//! seed chooses. Then it narrows that set down to the fewest (Zeller's ddmin), and tries each set as often as it takes
//! to believe the answer. The runs are made elsewhere.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::sequential::{Sequential, Tally};

/// The lengths of delays in milliseconds, tried one after the other: most races are narrow, and long delays run into
/// time-outs that have nothing to do with it.
const LENGTHS: [u32; 3] = [50, 200, 1000];
/// The most delays in one run of the search, about.
const MOST_AT_ONCE: f64 = 24.0;
/// The most runs with one set of delays. If they do not decide, the set counts by whether it failed more often than
/// runs without.
const MOST_RUNS: u32 = 10;
/// The least number of runs that are allowed for finding the fewest delays.
const LEAST_TO_NARROW: u32 = 60;
/// The number of failing runs with the fewest delays that are wanted.
const WANTED: u32 = 3;
/// The most runs of the search if there is only one thread. No other thread can overtake it, so only the length of a
/// delay matters, not its place. Each length is tried twice.
const MOST_OF_ONE_THREAD: u32 = 6;

/// The moment of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// Before a call, or before a lock is taken.
    Before,
    /// After a call.
    After,
    /// Before a thread does its first thing.
    Entry,
}

impl Moment {
    /// Its word in reports and in the protocol.
    pub fn label(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Entry => "entry",
        }
    }
}

/// A place at which a thread can be delayed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The thread, by a name that is the same in every run.
    pub thread: String,
    /// The file, from the project's folder.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// When.
    pub moment: Moment,
    /// The function that is called there.
    pub callee: String,
    /// Whether it is a call like any other: not of threads, locks, queues, sleeps, files or the network.
    pub is_plain: bool,
}

/// The next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A run with these delays.
    Run(Delays),
    /// There is nothing more to find out.
    Conclude(Option<Culprits>),
}

/// The delays of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delays {
    /// Where, in order.
    pub points: Vec<Point>,
    /// The length of each of them.
    pub milliseconds: u32,
}

/// The fewest delays that were found to make the test fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprits {
    /// The delays.
    pub delays: Delays,
    /// The number of runs with them that failed (hits) and passed.
    pub tally: Tally,
    /// Whether no smaller set of them makes the test fail; `false` if the search was cut off.
    pub is_fewest: bool,
}

/// A search for delays that make a test fail.
#[derive(Clone, Debug)]
pub struct Fuzz {
    seed: u64,
    /// The most runs for the search, and again for the narrowing.
    most: u32,
    /// The number of runs without delays that failed (hits) and passed.
    without: Tally,
    points: Vec<Point>,
    runs: u32,
    /// The first set with which it failed.
    found: Option<Delays>,
    /// The number of runs before it was found.
    searched: u32,
    tallies: BTreeMap<Delays, Tally>,
}

impl Fuzz {
    /// A search by this seed, after the runs `without` delays.
    pub fn new(seed: u64, most: u32, without: Tally) -> Self {
        Self {
            seed,
            most,
            without,
            points: Vec::new(),
            runs: 0,
            found: None,
            searched: 0,
            tallies: BTreeMap::new(),
        }
    }

    /// The places that were met so far.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The number of runs that were noted.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Takes in a run: its delays, which places it met, and whether it failed; `None` if it did neither
    /// fail nor pass.
    pub fn note(&mut self, delays: &Delays, met: &[Point], failed: Option<bool>) {
        self.runs += 1;
        for point in met {
            if let Err(place) = self.points.binary_search(point) {
                self.points.insert(place, point.clone());
            }
        }
        let tally = self.tallies.entry(delays.clone()).or_default();
        tally.hits += u32::from(failed == Some(true));
        tally.misses += u32::from(failed == Some(false));
        if self.found.is_none() {
            self.searched = self.runs;
            if failed == Some(true) && !delays.points.is_empty() {
                self.found = Some(delays.clone());
            }
        }
    }

    /// The next step.
    pub fn next_step(&self) -> Step {
        let Some(found) = &self.found else {
            return self.search();
        };
        let is_over = self.runs - self.searched >= self.most.max(LEAST_TO_NARROW);
        match self.narrow(found) {
            Narrowed::Ask(delays) if !is_over => Step::Run(delays),
            Narrowed::Ask(_) => Step::Conclude(self.smallest_so_far()),
            Narrowed::Fewest(delays) => self.confirm(delays, is_over),
        }
    }

    /// The first run has no delays and shows where some can be made.
    fn search(&self) -> Step {
        let first = Delays {
            points: Vec::new(),
            milliseconds: 0,
        };
        if self.runs == 0 {
            return Step::Run(first);
        }
        if self.points.is_empty() || self.runs > self.most_searches() {
            return Step::Conclude(None);
        }
        let number = self.runs - 1;
        let length = LENGTHS[number as usize % LENGTHS.len()];
        let mut chance = ChaCha8Rng::seed_from_u64(self.seed);
        chance.set_stream(u64::from(number));
        Step::Run(Delays {
            points: self.choose(number, &mut chance),
            milliseconds: length,
        })
    }

    /// The most runs with delays that are made to find a failing one.
    fn most_searches(&self) -> u32 {
        let first = self.points.first().map(|point| &point.thread);
        let is_one = self.points.iter().all(|at| Some(&at.thread) == first);
        if is_one {
            self.most.min(MOST_OF_ONE_THREAD)
        } else {
            self.most
        }
    }

    /// Every other round one thread is late at each of its places, since that is how machines are; else
    /// each place is late by chance. Plain calls are seldom chosen where there are many.
    fn choose(&self, number: u32, chance: &mut ChaCha8Rng) -> Vec<Point> {
        let mut threads: Vec<&str> = self.points.iter().map(|at| at.thread.as_str()).collect();
        threads.dedup();
        let round = number as usize / LENGTHS.len();
        let late = (round.is_multiple_of(2)).then(|| threads[round / 2 % threads.len()]);
        let wanted = |point: &&Point| late.is_none_or(|thread| point.thread == thread);
        let candidates: Vec<&Point> = self.points.iter().filter(wanted).collect();
        let (plain, special): (Vec<&Point>, Vec<&Point>) =
            candidates.into_iter().partition(|point| point.is_plain);
        let mut chosen = Vec::new();
        for (points, rate) in [(special, share_of(late)), (plain, 0.25)] {
            let count = u32::try_from(points.len().max(1)).unwrap_or(u32::MAX);
            let most = MOST_AT_ONCE / f64::from(count);
            let picked = points
                .into_iter()
                .filter(|_| chance.random_bool(f64::min(rate, most)));
            chosen.extend(picked.cloned());
        }
        chosen.sort();
        if chosen.is_empty() {
            let any = chance.random_range(0..self.points.len());
            chosen.push(self.points[any].clone());
        }
        chosen
    }

    /// Whether a set makes the test fail, if that is known.
    ///
    /// The failure rate that is expected of a yes is that of the first set that failed. It is estimated low, because
    /// the set was chosen for having failed.
    fn answer(&self, delays: &Delays) -> Option<bool> {
        let tally = self.tallies.get(delays).copied().unwrap_or_default();
        let low = f64::from(self.without.hits + 1) / f64::from(self.without.runs() + 20);
        let found = self
            .found
            .as_ref()
            .and_then(|found| self.tallies.get(found));
        let found = found.copied().unwrap_or_default();
        let high = f64::from(found.hits + 1) / f64::from(found.runs() + 2);
        let question = Sequential::between(low, high.max(low * 2.0).max(0.3));
        let answer = question.answer(tally);
        answer.or((tally.runs() >= MOST_RUNS).then_some(tally.rate() > low))
    }

    /// Zeller's ddmin, played from the beginning with the answers so far until one is missing.
    fn narrow(&self, found: &Delays) -> Narrowed {
        let set = |points: Vec<Point>| Delays {
            points,
            milliseconds: found.milliseconds,
        };
        let mut current = found.points.clone();
        let mut parts = 2;
        while current.len() > 1 {
            let size = current.len().div_ceil(parts);
            let chunks: Vec<Vec<Point>> = current.chunks(size).map(<[Point]>::to_vec).collect();
            let rests = (0..chunks.len()).map(|left_out| {
                let others = chunks.iter().enumerate().filter(|(at, _)| *at != left_out);
                others.flat_map(|(_, chunk)| chunk.clone()).collect()
            });
            // With two parts, the rest without one is the other.
            let rests: Vec<Vec<Point>> = if chunks.len() > 2 {
                rests.collect()
            } else {
                Vec::new()
            };
            let mut smaller = None;
            for (is_rest, points) in chunks
                .iter()
                .map(|chunk| (false, chunk.clone()))
                .chain(rests.into_iter().map(|rest| (true, rest)))
            {
                match self.answer(&set(points.clone())) {
                    None => return Narrowed::Ask(set(points)),
                    Some(true) => {
                        smaller = Some((is_rest, points));
                        break;
                    }
                    Some(false) => {}
                }
            }
            match smaller {
                Some((is_rest, points)) => {
                    parts = if is_rest {
                        (chunks.len() - 1).max(2)
                    } else {
                        2
                    };
                    current = points;
                }
                None if size == 1 => break,
                None => parts = (parts * 2).min(current.len()),
            }
        }
        Narrowed::Fewest(set(current))
    }

    /// Asks the fewest delays until they have failed often enough to be looked at.
    fn confirm(&self, delays: Delays, is_over: bool) -> Step {
        let tally = self.tallies.get(&delays).copied().unwrap_or_default();
        let is_enough = tally.hits >= WANTED || tally.runs() >= MOST_RUNS;
        if !is_enough && !is_over {
            return Step::Run(delays);
        }
        Step::Conclude(Some(Culprits {
            delays,
            tally,
            is_fewest: true,
        }))
    }

    /// The smallest set that was seen to fail when the runs are used up.
    fn smallest_so_far(&self) -> Option<Culprits> {
        let failing = self.tallies.iter().filter(|(_, tally)| tally.hits > 0);
        let failing = failing.filter(|(delays, _)| !delays.points.is_empty());
        let smallest = failing.min_by_key(|(delays, _)| delays.points.len());
        smallest.map(|(delays, tally)| Culprits {
            delays: delays.clone(),
            tally: *tally,
            is_fewest: false,
        })
    }
}

enum Narrowed {
    Ask(Delays),
    Fewest(Delays),
}

/// The share of the places that are delayed: all of a delayed thread, else about two of five.
fn share_of(late: Option<&str>) -> f64 {
    if late.is_some() { 1.0 } else { 0.4 }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn point(at: usize) -> Point {
        Point {
            thread: format!("main/{}", at % 3),
            file: "work.py".into(),
            line: u32::try_from(at).unwrap() + 1,
            column: 1,
            moment: Moment::Before,
            callee: "queue.Queue.get".into(),
            is_plain: false,
        }
    }

    /// Plays a search against a test that fails with these delays, at this rate, and not without.
    fn play(points: usize, culprits: &[usize], rate: f64, seed: u64) -> (Option<Culprits>, u32) {
        let met: Vec<Point> = (0..points).map(point).collect();
        let needed: Vec<Point> = culprits.iter().map(|at| point(*at)).collect();
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut fuzz = Fuzz::new(
            seed,
            200,
            Tally {
                hits: 0,
                misses: 20,
            },
        );
        loop {
            match fuzz.next_step() {
                Step::Run(delays) => {
                    let does = needed.iter().all(|point| delays.points.contains(point));
                    let failed = does && chance.random_bool(rate);
                    fuzz.note(&delays, &met, Some(failed));
                }
                Step::Conclude(found) => return (found, fuzz.runs()),
            }
        }
    }

    #[test]
    fn a_test_without_a_place_for_delays_is_not_asked_twice() {
        let (found, runs) = play(0, &[0], 1.0, 1);
        assert_eq!((found, runs), (None, 1));
    }

    #[test]
    fn a_test_that_no_delay_breaks_is_given_up_after_the_last_run() {
        let (found, runs) = play(10, &[99], 1.0, 1);
        assert_eq!((found, runs), (None, 201));
    }

    #[test]
    fn a_thread_that_nobody_can_overtake_is_given_up_soon() {
        let mut fuzz = Fuzz::new(1, 200, Tally::default());
        let met = [point(0), point(3), point(6)];
        while let Step::Run(delays) = fuzz.next_step() {
            fuzz.note(&delays, &met, Some(false));
        }
        assert_eq!((fuzz.next_step(), fuzz.runs()), (Step::Conclude(None), 7));
    }

    #[test]
    fn the_same_seed_asks_for_the_same_delays() {
        assert_eq!(play(30, &[4, 7], 0.8, 5), play(30, &[4, 7], 0.8, 5));
    }

    proptest! {
        /// What is planted is what is found, with an oracle that always tells the truth.
        #[test]
        fn the_fewest_delays_are_those_that_were_planted(
            points in 1_usize..40,
            first in 0_usize..40,
            second in 0_usize..40,
            seed in 0_u64..1000,
        ) {
            let mut culprits = vec![first % points, second % points];
            culprits.sort_unstable();
            culprits.dedup();
            let (found, _) = play(points, &culprits, 1.0, seed);
            let found = found.unwrap();
            prop_assert!(found.is_fewest);
            let mut expected: Vec<Point> = culprits.into_iter().map(point).collect();
            expected.sort();
            prop_assert_eq!(found.delays.points, expected);
            prop_assert!(found.tally.hits >= WANTED && found.tally.misses == 0);
        }
    }

    #[test]
    fn delays_that_do_it_in_two_of_three_runs_are_found_too() {
        let right = (0..100).filter(|seed| {
            let (found, _) = play(25, &[11], 0.67, *seed);
            found.is_some_and(|found| found.delays.points == [point(11)])
        });
        let right = right.count();
        assert!(right >= 90, "{right} of 100");
    }
}
