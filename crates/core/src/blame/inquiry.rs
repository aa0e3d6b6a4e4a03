//! The technique that finds out whose a failure is: it hears how a failing test fares here and at the base, and says what
//! to try next.

mod looks;
mod pairs;

use std::collections::BTreeMap;

use super::agreement::Recalled;
use super::question::{BaseEnvironment, Ended, Ground, Heard, Listed, Side, Step};
use super::runs::{Runs, add_missing, partner};
use super::two_sample::{Pairs, fails_more_here};
use super::{Guilt, Innocence, Open, Whose};
use crate::failure::Fingerprint;
use crate::intersect::Intersection;
use crate::sequential::Tally;

/// How many pairs of runs are made at the most.
const MOST_PAIRS: u32 = 300;
/// After how many pairs without any failure nothing more is expected.
const HOPELESS: u32 = 30;
/// How many runs at the base may all fail otherwise, or not come about, before the base is given up.
const GIVEN_UP: u32 = 3;
/// How many runs are made here alone, where the base cannot be run.
const MOST_ALONE: u32 = 20;
/// How many runs at the base in this run's order tell that it is the order.
const EXPOSING: u32 = 4;
/// In which pairs the base begins, by their numbers: digits of pi after the first pair.
const BASE_BEGINS: u64 = 0x243F_6A88_85A3_08D2;

/// The question about one failing test.
#[derive(Clone, Debug)]
pub struct Inquiry {
    ground: Ground,
    /// Whether it has passed here, in whatever order.
    has_passed: bool,
    /// What the failure itself had used, if the system saw that and a rerun has passed.
    at_failure: Option<Intersection>,
    recalled: Recalled,
    listed: Option<Listed>,
    is_over: bool,
    cannot_run: Option<Open>,
    base_environment: BaseEnvironment,
    here: Runs,
    base: Runs,
    exposing: Runs,
    /// Of the pairs: how the last run on either side ended, until its partner has run.
    waiting_here: Option<Ended>,
    waiting_base: Option<Ended>,
    /// Pairs in which all that speaks against guilt counts.
    for_guilt: Pairs,
    /// Pairs in which every failure here speaks against innocence, and at the base only those count that were seen here.
    for_innocence: Pairs,
    /// Pairs in which only the failure that is asked about counts, on both sides.
    alike: Pairs,
    /// What its runs here used, all together.
    used: Intersection,
    /// Whether it failed alike in a run that used nothing that changed.
    is_untouched: bool,
    /// How many runs here were watched, and how many of them failed alike.
    watched: Tally,
    /// How many runs at the base were watched.
    watched_at_base: u32,
    /// In which other ways it failed here while it was watched.
    strange: BTreeMap<Fingerprint, String>,
}

impl Inquiry {
    /// A new question about a test of which so much is known; `has_passed` if some rerun of it passed here.
    pub fn new(ground: Ground, has_passed: bool) -> Self {
        Self {
            ground,
            has_passed,
            at_failure: None,
            recalled: Recalled::NotYet,
            listed: None,
            is_over: false,
            cannot_run: None,
            base_environment: BaseEnvironment::default(),
            here: Runs::default(),
            base: Runs::default(),
            exposing: Runs::default(),
            waiting_here: None,
            waiting_base: None,
            for_guilt: Pairs::default(),
            for_innocence: Pairs::default(),
            alike: Pairs::default(),
            used: Intersection::default(),
            is_untouched: false,
            watched: Tally::default(),
            watched_at_base: 0,
            strange: BTreeMap::new(),
        }
    }

    /// Takes in what was asked for.
    pub fn hear(&mut self, heard: Heard) {
        match heard {
            // The system sees less than a watched run does, so it takes a pass of a rerun: what always fails may have asked
            // for something without opening it, and what passes in a copy of the files only may depend on the place.
            Heard::AtFailure(used) if self.has_passed && self.here.total() == 0 => {
                self.at_failure = Some(used);
            }
            Heard::AtFailure(_) => {}
            Heard::Listed(listed) => self.listed = Some(listed),
            Heard::BaseCannotRun { why } => self.cannot_run = Some(Open::BaseCannotRun { why }),
            Heard::BaseTooSlow { why } => self.cannot_run = Some(Open::BaseTooSlow { why }),
            Heard::BaseEnvironment(environment) => self.base_environment = environment,
            Heard::BaseIsDigests => self.cannot_run = Some(Open::NoRepository),
            Heard::BaseUnwanted => self.cannot_run = Some(Open::NotAsked),
            Heard::Recalled(known) => self.recalled = Recalled::of(known),
            Heard::TimeIsOver => self.is_over = true,
            Heard::Ran { side, ended, used } => self.hear_run(side, ended, used),
        }
    }

    /// What to do next.
    pub fn next(&self) -> Step {
        match &self.ground {
            Ground::None(open) => Step::Conclude(Whose::NotKnown(open.clone())),
            Ground::Unchanged => Step::Conclude(Whose::NotYours(Innocence::NothingChanged)),
            Ground::Changed {
                environment,
                deletes,
            } => self.compare(environment, *deletes),
        }
    }

    /// What its runs here and at the base were, and what they used.
    pub fn evidence(&self) -> (Tally, Tally, &Intersection, Option<&str>) {
        let otherwise = (self.base.otherwise > 0).then_some(self.base.trouble.as_str());
        (self.here.tally(), self.base.tally(), &self.used, otherwise)
    }

    /// Whether it has both passed and failed alike in the order of this run.
    pub fn is_mixed(&self) -> bool {
        self.here.passed > 0 && self.here.alike > 0
    }

    fn compare(&self, environment: &[String], deletes: bool) -> Step {
        if environment.is_empty() && !deletes && self.is_untouched_at_failure() {
            return Step::Conclude(Whose::NotYours(Innocence::UntouchedAtFailure));
        }
        if self.recalled == Recalled::NotYet {
            return Step::Recall;
        }
        if let Some(open) = self.no_base() {
            return self.without_base(open, deletes);
        }
        let listed = match self.listed {
            None if self.is_over => return Step::Conclude(Whose::NotKnown(Open::Budget)),
            None => return Step::List,
            Some(listed) if !listed.is_listed => {
                return Step::Conclude(Whose::Yours(Guilt::NewTest));
            }
            Some(listed) => listed,
        };
        if self.wants_watching() {
            return Step::Run(Side::HereWatched);
        }
        if self.has_same_order() && self.is_untouched_shown() {
            return self.acquit(Innocence::Untouched);
        }
        if fails_more_here(self.for_guilt) {
            return self.accuse(listed.orders_differ);
        }
        self.weigh(environment)
    }

    /// Whether the failures on both sides, or those in the history, excuse it.
    fn weigh(&self, environment: &[String]) -> Step {
        let pairs = self.for_guilt.runs();
        let may_match = self.unmatched().is_some() && pairs < HOPELESS && !self.is_over;
        if let Some(known) = self.recalled.agreed(&self.here).filter(|_| !may_match) {
            return self.acquit(Innocence::InHistory(known));
        }
        let may_agree = !self.is_over && self.recalled.may_agree(&self.here);
        let is_seen = self.watched.runs() > 0;
        if is_seen && self.is_as_frequent_there() && !may_match {
            let step = self.excuse_by_base(environment);
            let has_moved = matches!(
                step,
                Step::Conclude(Whose::NotKnown(Open::EnvironmentMoved { .. }))
            );
            if !has_moved || !may_agree {
                return step;
            }
        }
        let is_at_end = self.is_in_vain() || pairs >= MOST_PAIRS || self.is_given_up();
        if self.is_over {
            Step::Conclude(Whose::NotKnown(Open::Budget))
        } else if is_at_end && may_agree {
            Step::Run(Side::Here)
        } else if is_at_end {
            Step::Conclude(Whose::NotKnown(self.recalled.unsettled(&self.here)))
        } else {
            Step::Run(self.side_of_next(pairs))
        }
    }

    /// Which side of a pair runs next. Now the one begins and now the other: a test that fails every second time would
    /// else always fail on the same side.
    fn side_of_next(&self, pairs: u32) -> Side {
        // Where nothing that changed was used, it takes no more than a pass there.
        let asks_base = self.is_untouched && self.base.total() == 0;
        let base_begins = asks_base || BASE_BEGINS >> (pairs % u64::BITS) & 1 == 1;
        match (&self.waiting_here, &self.waiting_base) {
            (Some(_), _) => Side::Base,
            (None, None) if base_begins => Side::Base,
            (None, Some(_) | None) => Side::Here,
        }
    }

    /// What the failures at the base say, if they suffice.
    fn excuse_by_base(&self, environment: &[String]) -> Step {
        // Only a run that is watched shows that it was one of the base.
        if self.watched_at_base > 0 {
            return self.at_base(environment);
        }
        match (self.is_over, self.is_given_up()) {
            (true, _) => Step::Conclude(Whose::NotKnown(Open::Budget)),
            (false, true) => Step::Conclude(Whose::NotKnown(Open::NotSettled)),
            (false, false) => Step::Run(Side::BaseWatched),
        }
    }

    /// Whether runs do not come about any more, although some did.
    fn is_given_up(&self) -> bool {
        self.here.not_run > GIVEN_UP || self.base.not_run > GIVEN_UP + self.base.total()
    }

    /// It is not the change's doing, unless the change has another failure hidden behind the old one.
    fn acquit(&self, innocence: Innocence) -> Step {
        Step::Conclude(match self.unmatched() {
            Some(message) => Whose::NotKnown(Open::AnotherFailure {
                message: message.to_owned(),
            }),
            None => Whose::NotYours(innocence),
        })
    }

    fn hear_run(&mut self, side: Side, ended: Ended, used: Option<Intersection>) {
        let tells_use = used.is_some();
        match side {
            Side::Here | Side::HereWatched => {
                self.has_passed |= ended == Ended::Passed;
                if let Some(used) = used {
                    self.hear_used(&ended, used);
                }
            }
            Side::Base | Side::BaseWatched | Side::BaseInThisOrder => {
                if let Some(used) = used {
                    self.watched_at_base += 1;
                    add_missing(&mut self.used.unknowns, used.unknowns);
                }
            }
        }
        match side {
            Side::Here => {
                self.here.add(&ended);
                // Where pairs are in vain, later runs here get no partner: to pair the first that fails would be to
                // select it.
                if !self.is_in_vain() {
                    self.waiting_here = partner(ended, self.waiting_here.take());
                }
            }
            Side::Base => {
                self.base.add(&ended);
                self.waiting_base = partner(ended, self.waiting_base.take());
            }
            Side::BaseInThisOrder => self.exposing.add(&ended),
            Side::HereWatched => {
                self.here.not_run += u32::from(!tells_use);
                if let Ended::Otherwise { message, print } = ended {
                    self.strange.insert(print, message);
                }
            }
            Side::BaseWatched => {
                self.base.not_run += u32::from(!tells_use);
                if let Ended::Otherwise { message, print } = ended {
                    self.base.others.insert(print, message);
                }
            }
        }
        self.join_pair();
    }

    /// Whether the base, as far as it was listed, runs the same tests before it.
    fn has_same_order(&self) -> bool {
        let differs = |listed: &Listed| listed.orders_differ || listed.loses_tests;
        !self.listed.as_ref().is_some_and(differs)
    }

    /// Why the base tells nothing, if it does not.
    fn no_base(&self) -> Option<Open> {
        let is_strange = self.base.otherwise >= GIVEN_UP
            && self.base.total() == self.base.otherwise
            && !self
                .base
                .others
                .keys()
                .any(|print| self.has_failed_so(print));
        let is_missing = self.base.not_run >= GIVEN_UP && self.base.total() == 0;
        let why = || self.base.trouble.clone();
        let is_lost = is_strange || is_missing;
        let cannot_run = self.cannot_run.clone();
        cannot_run.or_else(|| is_lost.then(|| Open::BaseCannotRun { why: why() }))
    }

    /// Without a base only the history can tell, and a run that used nothing that changed; that takes one that fails.
    /// Where a file is gone, nobody knows what its tests did for others.
    fn without_base(&self, open: Open, deletes: bool) -> Step {
        if let Some(known) = self.recalled.agreed(&self.here) {
            return self.acquit(Innocence::InHistory(known));
        }
        let is_same_order = self.has_same_order() && !deletes;
        let may_be_untouched = self.has_passed && self.used.is_disjoint() && is_same_order;
        if may_be_untouched && self.is_untouched_shown() {
            return self.acquit(Innocence::Untouched);
        }
        let watched = self.watched.runs() + self.here.not_run;
        if may_be_untouched && watched < MOST_ALONE && !self.is_over {
            return Step::Run(Side::HereWatched);
        }
        if !self.is_over && self.recalled.may_agree(&self.here) {
            return Step::Run(Side::Here);
        }
        Step::Conclude(Whose::NotKnown(open))
    }

    /// It fails more often here. Does it go through the change, or is it the order that the change has made?
    fn accuse(&self, orders_differ: bool) -> Step {
        let is_exposed = self.exposing.alike * 2 > self.exposing.total();
        if is_exposed && self.exposing.total() >= EXPOSING {
            return Step::Conclude(Whose::Yours(Guilt::Exposed));
        }
        let tried = self.exposing.total() + self.exposing.not_run;
        if orders_differ && tried < EXPOSING && !self.is_over {
            return Step::Run(Side::BaseInThisOrder);
        }
        Step::Conclude(
            if self.used.touches.is_empty() && !self.used.has_generated() {
                Whose::NotKnown(Open::Unseen)
            } else {
                Whose::Yours(Guilt::FailsMore)
            },
        )
    }

    fn at_base(&self, environment: &[String]) -> Step {
        let BaseEnvironment { settled, why } = &self.base_environment;
        let moved = environment.iter().filter(|file| !settled.contains(file));
        let mut files: Vec<String> = moved.cloned().collect();
        let why = why.clone().filter(|_| !files.is_empty());
        files.extend(self.used.shared_with_base());
        if files.is_empty() {
            self.acquit(Innocence::AtBase)
        } else {
            Step::Conclude(Whose::NotKnown(Open::EnvironmentMoved { files, why }))
        }
    }
}

#[cfg(test)]
#[path = "at_failure.rs"]
mod at_failure;
#[cfg(test)]
#[path = "environment_tests.rs"]
mod environment_tests;
#[cfg(test)]
#[path = "plain_runs.rs"]
mod plain_runs;
#[cfg(test)]
#[path = "property.rs"]
mod property;
#[cfg(test)]
#[path = "remembered.rs"]
mod remembered;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
