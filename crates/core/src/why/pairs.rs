//! Two claims of which neither explains the failure alone: an order and a time, for example, as in the
//! paper's concurrency case (`RootFinder` 2019, 4.2.4).
//!
//! Each must hold in nearly all failing runs, and in some passing ones too; together they tell the runs
//! apart. Only calls that every run makes are looked at: of those it is known which run did what.

use std::collections::HashMap;

use crate::sequential::{Tally, chance_of};
use crate::why::ledger::{Evidence, Ledger, Side, Sides};
use crate::why::predicate::{Claim, Held, Predicate, Thresholds, is_worth_telling};
use crate::why::split::{Beyond, best_split, median};

/// A part holds in at least this share of the failing runs.
const NECESSARY: f64 = 0.9;
/// The least strength of a part by itself; weaker parts are left out.
const LEAST_PART: f64 = 0.1;
/// The least strength of a pair.
const LEAST_PAIR: f64 = 0.8;
/// The least gain of a pair over each of its parts.
const LEAST_GAIN: f64 = 0.2;
/// The most parts that are combined into pairs.
const MOST_PARTS: usize = 200;
/// The most pairs of the same strength that may be found by pure chance, on average.
const BY_CHANCE: f64 = 0.05;

/// Two claims that explain the failure together.
pub(crate) struct Pair {
    /// The one that ends last, with the counts of both together.
    pub(crate) first: Predicate,
    pub(crate) second: Predicate,
    pub(crate) strength: f64,
    /// The row of the first claim's evidence.
    pub(crate) row: usize,
}

/// A claim, and in which runs it is so.
struct Part {
    predicate: Predicate,
    strength: f64,
    holds: bool,
    row: usize,
    runs: Sides<Vec<bool>>,
}

impl Ledger {
    /// The two claims that explain the failure best, if none of their kind does alone.
    pub(crate) fn find_pair(&self, wanted: &[bool]) -> Option<Pair> {
        let parts = self.parts(wanted);
        if parts.iter().any(|part| part.strength >= LEAST_PAIR) {
            return None;
        }
        let mut best: Option<((bool, f64), &Part, &Part)> = None;
        let mut tried = 0_u32;
        for (at, one) in parts.iter().enumerate() {
            for two in &parts[at + 1..] {
                if one.row == two.row || !(one.predicate.is_order() || two.predicate.is_order()) {
                    continue;
                }
                tried += 1;
                let strength = self.together(one, two);
                let is_gain = strength >= f64::max(one.strength, two.strength) + LEAST_GAIN;
                if strength < LEAST_PAIR || !is_gain {
                    continue;
                }
                // An order and a time say more than two orders.
                let is_mixed = one.predicate.is_order() != two.predicate.is_order();
                let value = (is_mixed, strength);
                if best.as_ref().is_none_or(|(known, ..)| value > *known) {
                    best = Some((value, one, two));
                }
            }
        }
        let ((_, strength), one, two) = best?;
        let [passing, failing] = both(one, two).map(|runs| Tally {
            hits: count(&runs),
            misses: count(&runs.iter().map(|so| !so).collect::<Vec<_>>()),
        });
        // The thresholds were chosen so that they tell most.
        let thresholds = self.runs[0] + self.runs[1];
        if chance_of(passing, failing) * f64::from(tried) * f64::from(thresholds) > BY_CHANCE {
            return None;
        }
        let (last, before) = if one.predicate.ended >= two.predicate.ended {
            (one, two)
        } else {
            (two, one)
        };
        let mut first = last.predicate.clone();
        let held = |tally: Tally| {
            let Tally { hits, misses } = tally;
            let (yes, no) = if last.holds {
                (hits, misses)
            } else {
                (misses, hits)
            };
            Held { yes, no }
        };
        (first.passing, first.failing) = (held(passing), held(failing));
        Some(Pair {
            first,
            second: before.predicate.clone(),
            strength,
            row: last.row,
        })
    }

    /// All that holds in nearly all failing runs; of what holds in the same runs, the first to end.
    fn parts(&self, wanted: &[bool]) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut known: HashMap<(bool, Sides<Vec<bool>>), usize> = HashMap::new();
        for (at, row) in self.evidence.iter().enumerate() {
            if row.seen != self.runs || !wanted[row.epoch.site as usize] {
                continue;
            }
            for predicate in self.orders_and_times(row) {
                let Some(runs) = self.runs_of(&predicate, row) else {
                    continue;
                };
                let (strength, holds) = predicate.strength(self.runs);
                let runs = runs.map(|runs| runs.iter().map(|so| *so == holds).collect::<Vec<_>>());
                if strength < LEAST_PART || self.share(&runs, Side::Failing) < NECESSARY {
                    continue;
                }
                let key = (predicate.is_order(), runs.clone());
                let part = Part {
                    predicate,
                    strength,
                    holds,
                    row: at,
                    runs,
                };
                match known.get(&key).map(|known| &mut parts[*known]) {
                    Some(known) if part.predicate.ended < known.predicate.ended => *known = part,
                    Some(_) => {}
                    None => {
                        known.insert(key, parts.len());
                        parts.push(part);
                    }
                }
            }
        }
        parts.sort_by(|one, two| two.strength.total_cmp(&one.strength));
        parts.truncate(MOST_PARTS);
        parts
    }

    fn orders_and_times(&self, row: &Evidence) -> Vec<Predicate> {
        let mut found: Vec<Predicate> = Vec::new();
        if !row.progress.is_empty() {
            let all = self.predicates(row, Thresholds::Best).into_iter();
            found.extend(all.filter(Predicate::is_order));
        }
        let every = || row.times.iter().flatten();
        let (least, most) = (every().min().copied(), every().max().copied());
        if !is_worth_telling(least.map(f64::from), most.map(f64::from)) {
            return found;
        }
        let [passing, failing] = row.times.each_ref().map(|times| {
            let times = times.iter().map(|time| f64::from(*time));
            times.collect::<Vec<f64>>()
        });
        if let Some(split) = best_split(&passing, &failing, self.runs) {
            let is_usual = |time: &&f64| match split.beyond {
                Beyond::Above => **time < split.threshold,
                Beyond::Below => **time > split.threshold,
            };
            let usual: Vec<f64> = passing.iter().filter(is_usual).copied().collect();
            let claim = match split.beyond {
                Beyond::Above => Claim::Slow(split.threshold),
                Beyond::Below => Claim::Fast(split.threshold),
            };
            if is_worth_telling(median(&usual), median(&failing)) {
                found.push(Predicate::new(row, claim, [split.passing, split.failing]));
            }
        }
        found
    }

    /// The runs in which a claim holds; `None` if that is not known of each run.
    fn runs_of(&self, predicate: &Predicate, row: &Evidence) -> Option<Sides<Vec<bool>>> {
        let times = |is_so: &dyn Fn(f64) -> bool| {
            row.times.each_ref().map(|times| {
                let times = times.iter().map(|time| is_so(f64::from(*time)));
                times.collect::<Vec<bool>>()
            })
        };
        let runs = match &predicate.claim {
            Claim::Slow(least) => times(&|time| time >= *least),
            Claim::Fast(most) => times(&|time| time <= *most),
            Claim::After(other) => {
                let of_other = row
                    .progress
                    .iter()
                    .find(|(thread, _)| *thread == other.thread);
                let named = self.rows_at(other.site, other.thread);
                let least = named.get(other.sequence as usize - 1)?.place;
                of_other?.1.each_ref().map(|progress| {
                    let further = progress.iter().map(|progress| *progress >= least);
                    further.collect()
                })
            }
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::OneOf { .. }
            | Claim::Contains { .. }
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_) => return None,
        };
        let is_whole = [0, 1]
            .iter()
            .all(|side| runs[*side].len() == self.runs[*side] as usize);
        is_whole.then_some(runs)
    }

    fn share(&self, runs: &Sides<Vec<bool>>, side: Side) -> f64 {
        f64::from(count(&runs[side as usize])) / f64::from(self.runs[side as usize].max(1))
    }

    /// The share of failing runs in which both hold, minus the share of passing runs.
    fn together(&self, one: &Part, two: &Part) -> f64 {
        let both = both(one, two);
        self.share(&both, Side::Failing) - self.share(&both, Side::Passing)
    }
}

fn both(one: &Part, two: &Part) -> Sides<Vec<bool>> {
    [0, 1].map(|side| {
        let runs = one.runs[side].iter().zip(&two.runs[side]);
        runs.map(|(one, two)| *one && *two).collect()
    })
}

fn count(runs: &[bool]) -> u32 {
    let so = runs.iter().filter(|so| **so).count();
    u32::try_from(so).expect("there are as many as runs")
}

#[cfg(test)]
mod tests {
    use crate::why::predicate::Claim;
    use crate::why::tests::{Pen, ledger};
    use crate::why::trace::{Kind, Trace};

    /// A machine is given back while a watcher looks (`RootFinder` 2019, 4.2.4): it is lost only if the watcher
    /// looks first *and* cleaning takes long.
    fn recycle(looks_first: bool, is_slow: bool) -> Trace {
        let mut pen = Pen::new();
        let watcher = pen.thread("main/test_alert.py:2#1", Some(0));
        pen.timed((2, "start", Kind::Start), "None", 0, (0, 1_000));
        let look = if looks_first { 10_000 } else { 30_000 };
        pen.timed((20, "look", Kind::Plain), "None", watcher, (look, 1_000));
        pen.timed((3, "give_back", Kind::Plain), "None", 0, (20_000, 1_000));
        let time = if is_slow { 60_000_000 } else { 5_000_000 };
        pen.timed((4, "clean", Kind::Plain), "None", 0, (50_000, time));
        pen.done()
    }

    #[test]
    fn an_order_and_a_time_that_explain_only_together_are_one_finding() {
        let ways = [
            (true, false),
            (false, true),
            (false, false),
            (true, false),
            (false, true),
        ];
        let passing = ways.iter().cycle().take(15);
        let passing = passing.map(|(first, slow)| recycle(*first, *slow));
        let failing = (0..8).map(|_| recycle(true, true));
        let ranked = ledger(passing.collect(), failing.collect()).rank(&[]);
        let pair = ranked.iter().find(|one| one.also.is_some()).unwrap();
        assert_eq!(pair, &ranked[0], "it explains best");
        assert_eq!(
            (pair.spot.site.line, pair.failing.yes, pair.passing.yes),
            (4, 8, 0)
        );
        assert!(matches!(pair.claim, Claim::Slow(_)), "{:?}", pair.claim);
        let also = pair.also.as_ref().unwrap();
        assert!(!also.holds && matches!(also.claim, Claim::After(_)));
        let lines = (also.spot.site.line, also.other.as_ref().unwrap().site.line);
        assert_eq!(lines, (20, 3), "it looks before the machine is given back");
        assert!(pair.category.is_some(), "an order is there");
    }

    #[test]
    fn what_one_claim_explains_is_not_explained_by_two() {
        let passing = (0..12).map(|at| recycle(false, at % 2 == 0));
        let failing = (0..8).map(|at| recycle(true, at % 4 > 0));
        let ranked = ledger(passing.collect(), failing.collect()).rank(&[]);
        assert!(!ranked.is_empty() && ranked.iter().all(|one| one.also.is_none()));
        // And what neither one nor both explain is not a finding.
        let passing = (0..12).map(|at| recycle(at % 2 == 0, at % 3 == 0));
        let failing = (0..8).map(|at| recycle(at % 2 == 0, at % 4 > 0));
        let ranked = ledger(passing.collect(), failing.collect()).rank(&[]);
        assert!(ranked.iter().all(|one| one.also.is_none()), "{ranked:#?}");
    }

    #[test]
    fn few_runs_do_not_make_a_pair() {
        let ways = [(true, false), (false, true), (false, true)];
        let passing = ways.map(|(first, slow)| recycle(first, slow)).into();
        let failing = (0..3).map(|_| recycle(true, true)).collect();
        let ranked = ledger(passing, failing).rank(&[]);
        assert!(ranked.iter().all(|one| one.also.is_none()), "{ranked:#?}");
    }
}
