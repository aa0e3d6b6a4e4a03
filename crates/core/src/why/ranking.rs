//! Our own ranking: which difference between passing and failing runs explains the failure best.
//!
//! A predicate counts by how much more often it holds in failing runs, so one that holds in nine of ten
//! still counts. A source of non-determinism outranks plain calls, what a call did outranks that it was
//! made at all, and of what is equally strong the first to end comes first: an inner call ends before the
//! calls around it, and a cause before what follows from it. All that is said of one place is one finding.

use std::collections::HashMap;

use crate::sequential::{Tally, chance_of};
use crate::why::category::Category;
use crate::why::ledger::{Evidence, Ledger, Side, Sides};
use crate::why::predicate::{Claim, Held, Place, Predicate, Thresholds};
use crate::why::split::median;
use crate::why::trace::{Kind, Site};

/// Differences that are weaker are not shown.
const WEAKEST: f64 = 0.5;
/// Differences that runs without any would show more often than this are not shown.
const BY_CHANCE: f64 = 0.05;
/// Scores that differ by less are taken for the same.
const BAND: f64 = 0.05;
/// If so many claims as strong as one would hold by pure chance, it counts less than all others.
const BY_CHANCE_AMONG_ALL: f64 = 0.5;
/// How much less.
const DOUBTFUL: f64 = 0.4;
/// So many values of a side are shown.
const SHOWN_VALUES: usize = 3;
/// So many calls of one place are looked at for the order of their values.
const SEQUENCE: usize = 1000;
/// Numbers that differ by no more, in relation to their size, differ by rounding.
const ROUNDING: f64 = 1e-12;

/// A place at which passing and failing runs differ, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The call.
    pub spot: Spot,
    /// What is said of it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether failing runs are those in which it holds; else those in which it does not.
    pub holds: bool,
    /// In how many passing runs it holds.
    pub passing: Held,
    /// In how many failing runs it holds.
    pub failing: Held,
    /// How much more often it is so in failing runs, from 0 to 1.
    pub strength: f64,
    /// What kind of cause it looks like, if like any.
    pub category: Option<Category>,
    /// The most frequent values that it returned, in passing and in failing runs.
    pub values: Sides<Vec<String>>,
    /// How long it took in the middle, in microseconds, in passing and in failing runs.
    pub times: Sides<Option<f64>>,
    /// How many other claims about the same place are folded into it.
    pub folded: usize,
}

/// A call in words: where, in which thread, the how-manieth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where, and what is called.
    pub site: Site,
    /// The thread's name.
    pub thread: String,
    /// The how-manieth call there in this thread, from 1.
    pub sequence: u32,
}

impl Ledger {
    /// The differences at calls of these methods, or of all, the likeliest cause first.
    pub fn rank(&self, methods: &[String]) -> Vec<Difference> {
        let wanted = self.wanted(methods);
        let is_varying = |row: &&Evidence| row.values.len() > 1 || row.seen != self.runs;
        let varying = self.evidence.iter().filter(is_varying).count().max(1);
        let varying = u32::try_from(varying).unwrap_or(u32::MAX);
        let mut by_site: HashMap<u32, (f64, Predicate, usize, usize)> = HashMap::new();
        for (at, row) in self.evidence.iter().enumerate() {
            if !wanted[row.epoch.site as usize] {
                continue;
            }
            for predicate in self.predicates(row, Thresholds::Best) {
                let Some(score) = self.score(&predicate, varying) else {
                    continue;
                };
                let best = by_site.get_mut(&row.epoch.site);
                let Some((known, first, folded, place)) = best else {
                    by_site.insert(row.epoch.site, (score, predicate, 0, at));
                    continue;
                };
                *folded += 1;
                if key(score, &predicate) < key(*known, first) {
                    (*known, *first, *place) = (score, predicate, at);
                }
            }
        }
        let mut ranked: Vec<_> = by_site.into_values().collect();
        ranked.sort_by(|one, two| {
            let (one_key, two_key) = (key(one.0, &one.1), key(two.0, &two.1));
            let by_score = one_key.0.total_cmp(&two_key.0);
            let by_end = by_score.then(one_key.1.total_cmp(&two_key.1));
            by_end.then(one.1.line.cmp(&two.1.line))
        });
        let told = ranked.into_iter();
        told.map(|(_, predicate, folded, row)| self.tell(&predicate, folded, &self.evidence[row]))
            .collect()
    }

    /// A call in words.
    pub fn spot(&self, place: &Place) -> Spot {
        Spot {
            site: self.sites[place.site as usize].clone(),
            thread: self.threads[place.thread as usize].clone(),
            sequence: place.sequence,
        }
    }

    /// How well a predicate explains the failures, among so many epochs that vary; `None` if not at all.
    fn score(&self, predicate: &Predicate, varying: u32) -> Option<f64> {
        let (strength, holds) = predicate.strength(self.runs);
        if strength < WEAKEST {
            return None;
        }
        if predicate.claim != Claim::Reached && !predicate.tells_among_reached() {
            return None;
        }
        let hits = |held: Held| if holds { held.yes } else { held.no };
        let tally = |held: Held, side: Side| Tally {
            hits: hits(held),
            misses: self.runs[side as usize].saturating_sub(hits(held)),
        };
        let passing = tally(predicate.passing, Side::Passing);
        let chance = chance_of(passing, tally(predicate.failing, Side::Failing));
        if chance > BY_CHANCE {
            return None;
        }
        let by_doubt = self.doubt(predicate, chance, varying);
        let by_claim = match (&predicate.claim, holds) {
            (Claim::Reached, _) => 0.5,
            (Claim::Slow(_) | Claim::Fast(_), _) => 0.8,
            // Another value than all passing runs have: as telling, but it names no value.
            (Claim::Returns(_), false) => 0.95,
            (
                Claim::Repeats
                | Claim::Returns(_)
                | Claim::AtMost(_)
                | Claim::AtLeast(_)
                | Claim::Raises(_)
                | Claim::After(_),
                _,
            ) => 1.0,
        };
        let by_kind = self.weight(predicate);
        Some(strength * by_claim * by_kind * by_doubt)
    }

    /// Less than 1 if so many claims vary that as strong a one would hold by chance.
    fn doubt(&self, predicate: &Predicate, chance: f64, varying: u32) -> f64 {
        // A threshold was chosen so that it tells most: each could have been another one.
        let has_threshold = matches!(
            predicate.claim,
            Claim::AtMost(_)
                | Claim::AtLeast(_)
                | Claim::Slow(_)
                | Claim::Fast(_)
                | Claim::After(_)
        );
        let thresholds = if has_threshold {
            self.runs[0] + self.runs[1]
        } else {
            1
        };
        let by_chance = chance * f64::from(thresholds) * f64::from(varying);
        if by_chance > BY_CHANCE_AMONG_ALL {
            DOUBTFUL
        } else {
            1.0
        }
    }

    /// How likely a call of this kind is a cause: what can be another each time, whatever the project
    /// does, more than what follows from it.
    fn weight(&self, predicate: &Predicate) -> f64 {
        let kind = self.sites[predicate.place.site as usize].kind;
        let is_order = matches!(predicate.claim, Claim::After(_));
        let is_time = matches!(predicate.claim, Claim::Slow(_) | Claim::Fast(_));
        match kind {
            // Whoever starts threads is ahead of them, or not, also in runs without any harm.
            Kind::Start if is_order => 0.7,
            // Whoever starts a thread is ahead of it, or not; threads that did not start each other race.
            _ if is_order && self.is_family(predicate) => 0.75,
            // An order is itself what the scheduler decides, whatever is called.
            _ if is_order => 0.8,
            Kind::Wait | Kind::Lock | Kind::Start if is_time => 0.9,
            _ if kind.is_source() => 1.0,
            Kind::Plain
            | Kind::Start
            | Kind::Wait
            | Kind::Lock
            | Kind::Time
            | Kind::Randomness
            | Kind::Network
            | Kind::Io
            | Kind::Unordered
            | Kind::Leftover => 0.6,
        }
    }

    fn tell(&self, predicate: &Predicate, folded: usize, evidence: &Evidence) -> Difference {
        let (strength, holds) = predicate.strength(self.runs);
        let other = match &predicate.claim {
            Claim::After(place) => Some(self.spot(place)),
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_)
            | Claim::Slow(_)
            | Claim::Fast(_) => None,
        };
        let values = [Side::Passing, Side::Failing].map(|side| common_values(evidence, side));
        let times = [Side::Passing, Side::Failing].map(|side| {
            let times = evidence.times[side as usize].iter();
            median(&times.map(|time| f64::from(*time)).collect::<Vec<_>>())
        });
        Difference {
            spot: self.spot(&predicate.place),
            claim: predicate.claim.clone(),
            other,
            holds,
            passing: predicate.passing,
            failing: predicate.failing,
            strength,
            category: self.category(predicate, &values),
            values,
            times,
            folded,
        }
    }

    /// What kind of cause a difference looks like.
    fn category(&self, predicate: &Predicate, values: &Sides<Vec<String>>) -> Option<Category> {
        let by_threads = || self.thread_category(predicate);
        if matches!(predicate.claim, Claim::After(_)) {
            return by_threads();
        }
        match self.sites[predicate.place.site as usize].kind {
            Kind::Time => Some(Category::Time),
            Kind::Randomness => Some(Category::Randomness),
            Kind::Network => Some(Category::Network),
            Kind::Io => Some(Category::Io),
            Kind::Unordered => Some(Category::UnorderedCollection),
            Kind::Leftover => Some(Category::ResourceLeak),
            Kind::Plain | Kind::Start | Kind::Wait | Kind::Lock => match predicate.claim {
                Claim::After(_) | Claim::Slow(_) | Claim::Fast(_) => by_threads(),
                Claim::Reached
                | Claim::Repeats
                | Claim::Returns(_)
                | Claim::AtMost(_)
                | Claim::AtLeast(_)
                | Claim::Raises(_) => by_values(values)
                    .or_else(|| self.by_sequence(predicate))
                    .or_else(by_threads),
            },
        }
    }
}

impl Ledger {
    /// Calls of one place that return the same values in another order were made in the order of a
    /// collection.
    fn by_sequence(&self, predicate: &Predicate) -> Option<Category> {
        let place = &predicate.place;
        let rows = self.rows_at(place.site, place.thread);
        let [passing, failing] = [Side::Passing, Side::Failing].map(|side| {
            let first = |row: &Evidence| common_values(row, side).into_iter().next();
            let values = rows.iter().take(SEQUENCE).filter_map(|row| first(row));
            values.collect::<Vec<String>>()
        });
        let sorted = |values: &[String]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values
        };
        let is_shuffled = passing != failing && sorted(&passing) == sorted(&failing);
        is_shuffled.then_some(Category::UnorderedCollection)
    }

    /// Whether a thread was started by another, or by one that it started.
    fn is_started(&self, thread: u32, by: u32) -> bool {
        let mut at = self.parents[thread as usize];
        while let Some(parent) = at {
            if parent == by {
                return true;
            }
            at = self.parents[parent as usize].filter(|next| *next != parent);
        }
        false
    }

    /// Whether an order is one between a thread and one that it started.
    fn is_family(&self, predicate: &Predicate) -> bool {
        let own = predicate.place.thread;
        let Claim::After(other) = &predicate.claim else {
            return false;
        };
        self.is_started(other.thread, own) || self.is_started(own, other.thread)
    }

    /// Whoever does not wait for what it started waits too little; others meet by chance.
    fn thread_category(&self, predicate: &Predicate) -> Option<Category> {
        if self.threads.len() < 2 {
            return None;
        }
        let own = predicate.place.thread;
        let is_async = match &predicate.claim {
            Claim::After(other) => self.is_started(other.thread, own),
            // What was started took longer than whoever started it thought.
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_)
            | Claim::Slow(_)
            | Claim::Fast(_) => self.sites.iter().any(|site| site.kind == Kind::Wait),
        };
        Some(if is_async {
            Category::AsyncWait
        } else {
            Category::Concurrency
        })
    }
}

/// Strong ones first, and of equally strong ones those that end first.
fn key(score: f64, predicate: &Predicate) -> (f64, f64) {
    (-(score / BAND).round(), predicate.ended)
}

/// The most frequent values of one side.
fn common_values(evidence: &Evidence, side: Side) -> Vec<String> {
    let of_side = |counts: Sides<u32>| counts[side as usize];
    let mut values: Vec<_> = evidence
        .values
        .iter()
        .filter(|value| of_side(value.counts) > 0)
        .collect();
    values.sort_by_key(|value| std::cmp::Reverse(of_side(value.counts)));
    let shown = values.into_iter().take(SHOWN_VALUES);
    shown.map(|value| value.text.to_string()).collect()
}

/// What the values themselves tell: numbers that differ by rounding, or the same things in another order.
fn by_values(values: &Sides<Vec<String>>) -> Option<Category> {
    let [Some(passing), Some(failing)] = values.each_ref().map(|values| values.first()) else {
        return None;
    };
    if let (Ok(passing), Ok(failing)) = (passing.parse::<f64>(), failing.parse::<f64>()) {
        let size = f64::max(passing.abs(), failing.abs());
        let distance = (passing - failing).abs();
        let is_rounding = distance > 0.0 && distance <= ROUNDING * size;
        return is_rounding.then_some(Category::FloatingPoint);
    }
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_shuffled = passing != failing && sorted(passing) == sorted(failing);
    is_shuffled.then_some(Category::UnorderedCollection)
}
