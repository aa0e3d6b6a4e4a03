//! Nothing is forgiven without evidence, whatever the runs are.

use proptest::prelude::*;

use super::tests::{fails_with, touched, unseen};
use super::*;
use crate::blame::Known;

fn ended() -> impl Strategy<Value = Ended> {
    prop_oneof![
        3 => Just(Ended::Alike),
        3 => Just(Ended::Passed),
        1 => Just(fails_with("other")),
        1 => Just(Ended::NotRun { why: "gone".to_owned() }),
    ]
}

fn used() -> impl Strategy<Value = Option<Intersection>> {
    prop_oneof![
        Just(None),
        Just(Some(Intersection::default())),
        Just(Some(touched())),
        Just(Some(unseen())),
    ]
}

fn known() -> impl Strategy<Value = Option<Known>> {
    let known = (0u32..60, 0u32..60).prop_map(|(runs, failures)| Known {
        runs,
        failures: failures.min(runs),
        last: 0,
    });
    proptest::option::weighted(0.3, known)
}

/// What is there before any run.
#[derive(Clone, Debug)]
struct Planted {
    has_passed: bool,
    environment: Vec<String>,
    /// That of which the base has its own.
    settled: Vec<String>,
    deletes: bool,
    at_failure: Option<Intersection>,
    known: Option<Known>,
    listed: Listed,
    /// After how many steps the time is over, and whether the base can be run.
    cut: usize,
    has_base: bool,
}

fn planted() -> impl Strategy<Value = Planted> {
    let listed = (proptest::bool::weighted(0.9), any::<bool>(), any::<bool>());
    let ground = (
        any::<bool>(),
        proptest::bool::weighted(0.2),
        any::<bool>(),
        any::<bool>(),
    );
    let rest = (0usize..700, proptest::bool::weighted(0.8));
    (ground, listed, used(), known(), rest).prop_map(|(ground, listed, at_failure, known, rest)| {
        Planted {
            has_passed: ground.0,
            environment: if ground.1 {
                vec![".env".to_owned()]
            } else {
                Vec::new()
            },
            settled: ground.3.then(|| ".env".to_owned()).into_iter().collect(),
            deletes: ground.2,
            at_failure,
            known,
            listed: Listed {
                is_listed: listed.0,
                orders_differ: listed.1,
                loses_tests: listed.2,
            },
            cut: rest.0,
            has_base: rest.1,
        }
    })
}

/// What ran, and what came of it.
struct Played {
    whose: Whose,
    here: Vec<(Ended, Option<Intersection>)>,
    base: Vec<Ended>,
}

impl Played {
    fn new(planted: &Planted, script: &[(Ended, Option<Intersection>)]) -> Self {
        let ground = Ground::Changed {
            environment: planted.environment.clone(),
            deletes: planted.deletes,
        };
        let mut inquiry = Inquiry::new(ground, planted.has_passed);
        if let Some(used) = planted.at_failure.clone() {
            inquiry.hear(Heard::AtFailure(used));
        }
        if !planted.has_base {
            inquiry.hear(Heard::BaseUnwanted);
        }
        inquiry.hear(Heard::BaseEnvironment(BaseEnvironment {
            settled: planted.settled.clone(),
            why: None,
        }));
        let (mut here, mut base) = (Vec::new(), Vec::new());
        for step in 0..2000 {
            if step == planted.cut {
                inquiry.hear(Heard::TimeIsOver);
            }
            let heard = match inquiry.next() {
                Step::Conclude(whose) => return Self { whose, here, base },
                Step::Recall => Heard::Recalled(planted.known),
                Step::List => Heard::Listed(planted.listed),
                Step::Run(side) => {
                    let (ended, used) = script[step % script.len()].clone();
                    match side {
                        Side::Here | Side::HereWatched => here.push((ended.clone(), used.clone())),
                        Side::Base | Side::BaseWatched => base.push(ended.clone()),
                        Side::BaseInThisOrder => {}
                    }
                    Heard::Ran { side, ended, used }
                }
            };
            inquiry.hear(heard);
        }
        panic!("it has no end");
    }

    fn failures_here(&self) -> usize {
        let here = self.here.iter();
        here.filter(|(ended, _)| *ended == Ended::Alike).count()
    }

    fn failures_at_base(&self) -> usize {
        let base = self.base.iter();
        base.filter(|ended| **ended == Ended::Alike).count()
    }

    fn has_passed_here(&self, planted: &Planted) -> bool {
        let mut here = self.here.iter();
        planted.has_passed || here.any(|(ended, _)| *ended == Ended::Passed)
    }

    /// Whether it failed here in a way in which it never failed at the base.
    fn fails_anew(&self) -> bool {
        let is_other = |ended: &Ended| matches!(ended, Ended::Otherwise { .. });
        self.here.iter().any(|(ended, _)| is_other(ended)) && !self.base.iter().any(is_other)
    }

    /// Whether the runs hold what the answer rests on.
    fn is_shown(&self, planted: &Planted) -> bool {
        let mut used = self.here.iter().filter_map(|(_, used)| used.as_ref());
        let (here, base) = (self.failures_here(), self.failures_at_base());
        match &self.whose {
            Whose::NotYours(Innocence::AtBase) => {
                let is_watched = used.next().is_some();
                let is_alike = base >= 2 && here <= 6 * base.max(1);
                let is_known = is_watched && is_alike && !self.fails_anew();
                is_known
                    && planted.listed.is_listed
                    && planted.environment.len() <= planted.settled.len()
            }
            Whose::NotYours(Innocence::Untouched) => {
                let is_seen = self.here.iter().any(|(ended, used)| {
                    *ended == Ended::Alike && used.as_ref().is_some_and(Intersection::is_disjoint)
                });
                let passes_there = base == 0 && self.base.contains(&Ended::Passed);
                let Listed {
                    orders_differ,
                    loses_tests,
                    ..
                } = planted.listed;
                let ended = |ended: &Ended| matches!(ended, Ended::Alike | Ended::Passed);
                let is_lost = self.base.len() >= 3 && !self.base.iter().any(ended);
                // Without a base nobody knows its order: there nothing may be gone.
                let is_same_order = if is_lost || !planted.has_base {
                    !planted.deletes
                } else {
                    !orders_differ && !loses_tests
                };
                let has_passed = self.has_passed_here(planted) || passes_there;
                is_seen && is_same_order && has_passed && !self.fails_anew()
            }
            Whose::NotYours(Innocence::UntouchedAtFailure) => {
                let at_failure = planted.at_failure.as_ref();
                at_failure.is_some_and(Intersection::is_disjoint)
                    && planted.has_passed
                    && !planted.deletes
                    && planted.environment.is_empty()
                    && used.all(|used| used.touches.is_empty())
            }
            Whose::NotYours(Innocence::InHistory(known)) => {
                planted.known == Some(*known) && known.failures > 0 && self.here.len() >= 10
            }
            Whose::NotYours(Innocence::NothingChanged) => false,
            Whose::Yours(Guilt::NewTest) => !planted.listed.is_listed,
            Whose::Yours(Guilt::FailsMore | Guilt::Exposed) => here > 0,
            Whose::NotKnown(_) => true,
        }
    }
}

proptest! {
    /// Whatever the runs are and whenever the time is over: the evidence is looked for here in the runs themselves.
    #[test]
    fn no_sequence_of_runs_leads_to_a_forgiven_failure_without_evidence(
        planted in planted(),
        script in proptest::collection::vec((ended(), used()), 1..400),
    ) {
        let played = Played::new(&planted, &script);
        prop_assert!(played.is_shown(&planted), "{:?}", played.whose);
    }
}
