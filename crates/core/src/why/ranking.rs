//! Our own ranking: which difference between passing and failing runs explains the failure best.
//!
//! A predicate counts by how much more often it holds in failing runs, so one that holds in nine of ten
//! still counts. A source of non-determinism outranks plain calls, what a call did outranks that it was
//! made at all, and of what is equally strong the first to end comes first: an inner call ends before the
//! calls around it, and a cause before what follows from it. All that is said of one place is one finding.

use std::collections::{HashMap, HashSet};

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
/// What two claims say together counts so much less than what one says.
const PAIR: f64 = 0.8;
/// So many values of a side are shown.
const SHOWN_VALUES: usize = 3;

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
    /// What all of its values are like, in passing and in failing runs.
    pub spread: Sides<Spread>,
    /// What must be so too, if this alone does not explain the failure. The counts are of both together.
    pub also: Option<Part>,
    /// The place in the list of a source of non-determinism that differs in the very same runs, from 1: this
    /// may only follow from it.
    pub follows: Option<usize>,
    /// How many other claims about the same place are folded into it.
    pub folded: usize,
}

/// The second of two claims that explain a failure only together.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The call.
    pub spot: Spot,
    /// What is said of it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether failing runs are those in which it holds; else those in which it does not.
    pub holds: bool,
}

/// What the values of a call are like over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many different ones there are, as far as they were told apart.
    pub distinct: usize,
    /// The least and the greatest, if all of them are numbers.
    pub range: Option<(f64, f64)>,
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
        let mut ranked = self.best_of_each_site(&wanted);
        ranked.extend(self.find_pair(&wanted).map(|pair| Finding {
            score: pair.strength * PAIR,
            predicate: pair.first,
            also: Some(pair.second),
            folded: 0,
            row: pair.row,
        }));
        ranked.sort_by(|one, two| {
            let [one_key, two_key] = [one, two].map(|found| key(found.score, &found.predicate));
            let by_score = one_key.0.total_cmp(&two_key.0);
            let by_end = by_score.then(one_key.1.total_cmp(&two_key.1));
            by_end.then(one.predicate.line.cmp(&two.predicate.line))
        });
        let source = ranked
            .iter()
            .position(|found| self.is_certain_source(found));
        let told = ranked.iter().enumerate().map(|(at, found)| {
            let follows =
                source.filter(|source| self.may_follow(found, &ranked[*source]) && *source < at);
            self.tell(found, follows.map(|source| source + 1))
        });
        told.collect()
    }

    /// The best that is said of each place that is wanted.
    fn best_of_each_site(&self, wanted: &[bool]) -> Vec<Finding> {
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
        let found = by_site.into_values();
        found
            .map(|(score, predicate, folded, row)| Finding {
                score,
                predicate,
                also: None,
                folded,
                row,
            })
            .collect()
    }

    /// The places that return something else from run to run by themselves, such as clocks and random
    /// values, the first to end first: for when no difference explains the failure.
    pub fn varying_sources(&self) -> Vec<Spot> {
        let is_varying = |row: &&Evidence| {
            let kind = self.sites[row.epoch.site as usize].kind;
            kind.is_source() && kind != Kind::Leftover && row.values.len() > 1
        };
        let mut rows: Vec<&Evidence> = self.evidence.iter().filter(is_varying).collect();
        rows.sort_by(|one, two| one.mean_end().total_cmp(&two.mean_end()));
        let mut known = HashSet::new();
        rows.retain(|row| known.insert(row.epoch.site));
        rows.iter()
            .map(|row| self.spot(&row.epoch.into()))
            .collect()
    }

    /// Whether it is a source of non-determinism that tells all failing runs from all passing ones.
    fn is_certain_source(&self, found: &Finding) -> bool {
        let kind = self.sites[found.predicate.place.site as usize].kind;
        kind.is_source() && kind != Kind::Leftover && self.is_certain(&found.predicate)
    }

    /// Whether a finding differs in the same runs as a source that ended before it.
    fn may_follow(&self, found: &Finding, source: &Finding) -> bool {
        let kind = self.sites[found.predicate.place.site as usize].kind;
        !kind.is_source()
            && self.is_certain(&found.predicate)
            && found.predicate.ended >= source.predicate.ended
    }

    fn is_certain(&self, predicate: &Predicate) -> bool {
        predicate.strength(self.runs).0 >= 1.0
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

    fn tell(&self, found: &Finding, follows: Option<usize>) -> Difference {
        let (predicate, evidence) = (&found.predicate, &self.evidence[found.row]);
        let (strength, holds) = predicate.strength(self.runs);
        let sides = [Side::Passing, Side::Failing];
        let values = sides.map(|side| common_values(evidence, side));
        let times = sides.map(|side| {
            let times = evidence.times[side as usize].iter();
            median(&times.map(|time| f64::from(*time)).collect::<Vec<_>>())
        });
        let parts = [Some(predicate), found.also.as_ref()];
        let order = parts.into_iter().flatten().find(|part| part.is_order());
        let category = match (order, follows) {
            (Some(order), _) => self.thread_category(order),
            (None, Some(_)) => self.value_category(predicate, &values),
            (None, None) => self.category(predicate, &values),
        };
        Difference {
            spot: self.spot(&predicate.place),
            claim: predicate.claim.clone(),
            other: self.other(predicate),
            holds,
            passing: predicate.passing,
            failing: predicate.failing,
            strength,
            category,
            values,
            times,
            spread: sides.map(|side| spread(evidence, side)),
            also: found.also.as_ref().map(|also| Part {
                spot: self.spot(&also.place),
                claim: also.claim.clone(),
                other: self.other(also),
                holds: also.strength(self.runs).1,
            }),
            follows,
            folded: found.folded,
        }
    }

    /// For an order: the call of the other thread.
    fn other(&self, predicate: &Predicate) -> Option<Spot> {
        match &predicate.claim {
            Claim::After(place) => Some(self.spot(place)),
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_)
            | Claim::Slow(_)
            | Claim::Fast(_) => None,
        }
    }
}

/// The best that is said of a place, and how well it explains the failures.
struct Finding {
    score: f64,
    predicate: Predicate,
    also: Option<Predicate>,
    folded: usize,
    row: usize,
}

/// What the values of one side are like.
fn spread(evidence: &Evidence, side: Side) -> Spread {
    let of_side = evidence.values.iter();
    let distinct = of_side
        .filter(|value| value.counts[side as usize] > 0)
        .count();
    let numbers = &evidence.numbers[side as usize];
    let is_all = numbers.len() == evidence.seen[side as usize] as usize;
    let least = numbers.iter().copied().reduce(f64::min);
    let range = least.zip(numbers.iter().copied().reduce(f64::max));
    Spread {
        distinct,
        range: range.filter(|_| is_all),
    }
}

/// Strong ones first, and of equally strong ones those that end first.
fn key(score: f64, predicate: &Predicate) -> (f64, f64) {
    (-(score / BAND).round(), predicate.ended)
}

/// The most frequent values of one side.
pub(crate) fn common_values(evidence: &Evidence, side: Side) -> Vec<String> {
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
