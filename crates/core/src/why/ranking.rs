//! Our own ranking: which difference between passing and failing runs explains the failure best.
//!
//! A predicate counts by how much more often it holds in failing runs, so one that holds in nine of ten
//! still counts. A source of non-determinism outranks plain calls, what a call did outranks that it was
//! made at all, and of what is equally strong the first to end comes first: an inner call ends before the
//! calls around it, and a cause before what follows from it. All that is said of one place is one finding.

use std::collections::{HashMap, HashSet};

use crate::sequential::{Tally, chance_of};
use crate::why::difference::{Difference, Part, Spot, common_values, spread};
use crate::why::ledger::{Evidence, Ledger, Side, Sides};
use crate::why::predicate::{Claim, Held, Place, Predicate, Thresholds};
use crate::why::split::median;
use crate::why::trace::Kind;

/// The least strength of a difference that is shown.
const WEAKEST: f64 = 0.5;
/// The highest probability of showing a difference by chance; a difference above it is not shown.
const BY_CHANCE: f64 = 0.05;
/// The distance of scores below which they count as equal.
const BAND: f64 = 0.05;
/// The number of equally strong claims that pure chance is expected to make; a claim above it is doubtful.
const BY_CHANCE_AMONG_ALL: f64 = 0.5;
/// The factor of a doubtful claim's score.
const DOUBTFUL: f64 = 0.4;
/// The factor of the score of two claims together, compared with one claim.
const PAIR: f64 = 0.8;
/// The strength from which on a claim tells nearly all failing from nearly all passing runs.
const SURE: f64 = 0.9;
/// The addition to the score of an order whose effect was seen: a thread that comes too early finds something else.
const EFFECT: f64 = 0.1;

impl Ledger {
    /// The differences at calls of these methods, or of all, the likeliest cause first.
    pub fn rank(&self, methods: &[String]) -> Vec<Difference> {
        let wanted = self.wanted(methods);
        let mut ranked = self.best_of_each_site(&wanted);
        ranked.extend(self.find_pair(&wanted).map(|pair| Finding {
            score: pair.strength * PAIR,
            predicate: pair.first,
            also: Some(pair.second),
            origin: None,
            wait: None,
            alike: Vec::new(),
            folded: 0,
            row: pair.row,
        }));
        ranked.sort_by(|one, two| {
            let [one_key, two_key] = [one, two].map(|found| key(found.score, &found.predicate));
            let by_score = one_key.0.total_cmp(&two_key.0);
            let by_end = by_score.then(one_key.1.total_cmp(&two_key.1));
            by_end.then(one.predicate.line.cmp(&two.predicate.line))
        });
        self.fold_orders(&mut ranked);
        self.fold_rounding(&mut ranked);
        let source = ranked
            .iter()
            .position(|found| self.is_certain_source(found));
        let told = ranked.iter().enumerate().map(|(at, found)| {
            let follows =
                source.filter(|source| self.may_follow(found, &ranked[*source]) && *source < at);
            let mut told = self.tell(found, follows.map(|source| source + 1));
            if let Some(order) = follows.map(|source| &ranked[source].predicate)
                && order.is_order()
                && !found.predicate.is_order()
            {
                told.category = self.thread_category(order);
            }
            told
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
            let predicates = self.predicates(row, Thresholds::Best);
            let has_effect = self.has_effect(&predicates);
            for predicate in predicates {
                let Some(score) = self.score(&predicate, varying, has_effect) else {
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
                origin: None,
                wait: None,
                alike: Vec::new(),
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
            let is_call = kind != Kind::Leftover && !self.is_extreme(row.epoch.site);
            kind.is_source() && is_call && row.values.len() > 1
        };
        let mut rows: Vec<&Evidence> = self.evidence.iter().filter(is_varying).collect();
        rows.sort_by(|one, two| one.mean_end().total_cmp(&two.mean_end()));
        let mut known = HashSet::new();
        rows.retain(|row| known.insert(row.epoch.site));
        rows.iter()
            .map(|row| self.spot(&row.epoch.into()))
            .collect()
    }

    /// Whether it is a source of non-determinism, or an order, which is what the scheduler decides, that tells
    /// all failing runs from all passing ones.
    fn is_certain_source(&self, found: &Finding) -> bool {
        let kind = self.sites[found.predicate.place.site as usize].kind;
        let is_source = kind.is_source() || found.origin.is_some() || found.predicate.is_order();
        is_source && kind != Kind::Leftover && self.is_certain(&found.predicate)
    }

    /// Whether a finding differs in the same runs as a source that ended before it.
    fn may_follow(&self, found: &Finding, source: &Finding) -> bool {
        let kind = self.sites[found.predicate.place.site as usize].kind;
        !kind.is_source()
            && self.is_certain(&found.predicate)
            && found.predicate.ended >= source.predicate.ended
    }

    pub(crate) fn is_certain(&self, predicate: &Predicate) -> bool {
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

    /// Whether a call returned something else in nearly all failing runs.
    fn has_effect(&self, predicates: &[Predicate]) -> bool {
        predicates.iter().any(|one| {
            one.is_about_result() && one.strength(self.runs).0 >= SURE && one.tells_among_reached()
        })
    }

    /// The score by which a predicate explains the failures, if `varying` epochs vary; `None` if it does not explain
    /// them. `has_effect` says whether its call also returns something else in failing runs.
    fn score(&self, predicate: &Predicate, varying: u32, has_effect: bool) -> Option<f64> {
        let (strength, holds) = predicate.strength(self.runs);
        if strength < WEAKEST {
            return None;
        }
        if predicate.claim != Claim::Reached && !predicate.tells_among_reached() {
            return None;
        }
        let kind = self.sites[predicate.place.site as usize].kind;
        if self.is_apart && kind == Kind::Time && predicate.is_about_result() {
            return None;
        }
        let hits = |held: Held| if holds { held.yes } else { held.no };
        let tally = |held: Held, side: Side| Tally {
            hits: hits(held),
            misses: self.runs[side as usize].saturating_sub(hits(held)),
        };
        let passing = tally(predicate.passing, Side::Passing);
        let chance = chance_of(passing, tally(predicate.failing, Side::Failing));
        let choices = predicate.choices(self.runs);
        let is_of_many = matches!(
            predicate.claim,
            Claim::OneOf { .. } | Claim::Contains { .. }
        );
        if chance > BY_CHANCE || (is_of_many && chance * choices > BY_CHANCE) {
            return None;
        }
        let by_doubt = if chance * choices * f64::from(varying) > BY_CHANCE_AMONG_ALL {
            DOUBTFUL
        } else {
            1.0
        };
        let by_claim = match (&predicate.claim, holds) {
            (Claim::Reached, _) => 0.5,
            (Claim::Slow(_) | Claim::Fast(_), _) => 0.8,
            // Another value than all passing runs have: as telling, but it names no value.
            (Claim::Returns(_), false) | (Claim::OneOf { .. } | Claim::Contains { .. }, _) => 0.95,
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
        let by_effect = if has_effect && predicate.is_order() && strength >= SURE {
            EFFECT
        } else {
            0.0
        };
        let by_kind = self.weight(predicate) + by_effect;
        Some(strength * by_claim * by_kind * by_doubt)
    }

    /// The likelihood that a call of this kind is a cause: a call that can differ each time, whatever the project
    /// does, is likelier than one that follows from it.
    fn weight(&self, predicate: &Predicate) -> f64 {
        let kind = self.sites[predicate.place.site as usize].kind;
        let is_order = matches!(predicate.claim, Claim::After(_));
        let is_time = matches!(predicate.claim, Claim::Slow(_) | Claim::Fast(_));
        match kind {
            // A thread that starts others is ahead of them, or not, also in runs that pass.
            Kind::Start if is_order => 0.7,
            // A thread is ahead of one that it started, or not; threads that did not start each other race.
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
        let values = self.values_of(found);
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
            origin: found.origin.as_ref().map(|place| self.spot(place)),
            wait: found.wait.as_ref().map(|place| self.spot(place)),
            alike: found.alike.iter().map(|place| self.spot(place)).collect(),
            follows,
            folded: found.folded,
        }
    }

    /// The most frequent values of passing and of failing runs.
    pub(crate) fn values_of(&self, found: &Finding) -> Sides<Vec<String>> {
        let evidence = &self.evidence[found.row];
        [Side::Passing, Side::Failing].map(|side| common_values(evidence, side))
    }

    /// For an order: the call of the other thread.
    fn other(&self, predicate: &Predicate) -> Option<Spot> {
        match &predicate.claim {
            Claim::After(place) => Some(self.spot(place)),
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::OneOf { .. }
            | Claim::Contains { .. }
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_)
            | Claim::Slow(_)
            | Claim::Fast(_) => None,
        }
    }
}

/// The best that is said of a place, and how well it explains the failures.
pub(crate) struct Finding {
    score: f64,
    pub(crate) predicate: Predicate,
    pub(crate) also: Option<Predicate>,
    /// The order of a collection that it comes from.
    pub(crate) origin: Option<Place>,
    /// For an order: the wait before it that was too short.
    pub(crate) wait: Option<Place>,
    /// For an order: other calls of the same two threads that came in another order.
    pub(crate) alike: Vec<Place>,
    pub(crate) folded: usize,
    row: usize,
}

/// Strong ones first, and of equally strong ones those that end first.
fn key(score: f64, predicate: &Predicate) -> (f64, f64) {
    (-(score / BAND).round(), predicate.ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::category::Category;
    use crate::why::tests::{Pen, ledger};

    /// A line, what is called there, what came back, and in which thread and when.
    type Told<'a> = (u32, &'a str, Kind, &'a str, (u32, u64));

    fn run(calls: &[Told<'_>]) -> crate::why::trace::Trace {
        let mut pen = Pen::new();
        pen.thread("main/test_alert.py:2#1", Some(0));
        pen.thread("main/test_alert.py:2#2", Some(0));
        for (line, callee, kind, value, (thread, start)) in calls {
            pen.timed((*line, callee, *kind), value, *thread, (*start, 1_000));
        }
        pen.done()
    }

    #[test]
    fn several_orders_of_a_set_that_go_with_failing_are_one_claim() {
        let heading = |at: usize| {
            let orders = ["red, blue", "red, green", "blue, red", "green, red"];
            let order = orders[at % 2 + if at < 12 { 0 } else { 2 }];
            let first = if at < 12 { "True" } else { "False" };
            run(&[
                (1, "set.__iter__", Kind::Unordered, order, (0, 10_000)),
                (2, "str.startswith", Kind::Plain, first, (0, 20_000)),
            ])
        };
        let ranked = ledger(
            (0..12).map(heading).collect(),
            (12..24).map(heading).collect(),
        )
        .rank(&[]);
        assert_eq!(ranked[0].spot.site.line, 1, "{ranked:#?}");
        let Claim::OneOf { values, among } = &ranked[0].claim else {
            panic!("{:?}", ranked[0].claim);
        };
        assert_eq!((values.len(), *among), (2, 4));
        assert_eq!(ranked[1].follows, Some(1));
    }

    #[test]
    fn values_that_are_all_different_are_no_claim_however_well_they_separate() {
        let draw = |at: usize| {
            let text = format!("'{at}'");
            run(&[(1, "uuid.uuid4", Kind::Randomness, &text, (0, 10_000))])
        };
        let [passing, failing] = [0, 10].map(|first| (first..first + 10).map(draw).collect());
        assert!(ledger(passing, failing).rank(&[]).is_empty());
    }

    #[test]
    fn a_rounding_takes_the_place_of_the_order_that_it_comes_from() {
        let total = |at: usize, is_failing: bool| {
            let orders = ["a, b, c", "b, a, c", "c, a, b", "a, c, b"];
            let order = orders[at % 2 + if is_failing { 2 } else { 0 }];
            let sum = if is_failing {
                "0.6000000000000001"
            } else {
                "0.6"
            };
            run(&[
                (5, "set.__iter__", Kind::Unordered, order, (0, 10_000)),
                (5, "sum", Kind::Plain, sum, (0, 20_000)),
                (9, "total", Kind::Plain, sum, (0, 30_000)),
            ])
        };
        let passing = (0..12).map(|at| total(at, false)).collect();
        let failing = (0..12).map(|at| total(at, true)).collect();
        let ranked = ledger(passing, failing).rank(&[]);
        let told: Vec<_> = ranked
            .iter()
            .map(|one| one.spot.site.callee.as_str())
            .collect();
        assert_eq!(told, ["sum", "total"], "{ranked:#?}");
        assert_eq!(ranked[0].category, Some(Category::FloatingPoint));
        let origin = ranked[0].origin.as_ref().unwrap();
        assert_eq!(origin.site.callee, "set.__iter__");
        assert_eq!(ranked[1].follows, Some(1));
    }

    #[test]
    fn an_order_whose_effect_is_seen_comes_before_one_without() {
        // Two letters are delivered; the reader finds one of them if the first is late.
        let letters = |is_late: bool| {
            let (first, read) = if is_late {
                (90_000, "['b']")
            } else {
                (10_000, "['a', 'b']")
            };
            run(&[
                (11, "list.append", Kind::Plain, "None", (1, first)),
                (11, "list.append", Kind::Plain, "None", (2, 20_000)),
                (12, "read_all", Kind::Plain, read, (0, 50_000)),
            ])
        };
        let passing = (0..10).map(|_| letters(false)).collect();
        let failing = (0..10).map(|_| letters(true)).collect();
        let ranked = ledger(passing, failing).rank(&[]);
        assert_eq!(ranked[0].spot.site.line, 12, "{ranked:#?}");
        assert_eq!(ranked[0].other.as_ref().unwrap().site.line, 11);
        assert_eq!(ranked[0].category, Some(Category::AsyncWait));
    }
}
