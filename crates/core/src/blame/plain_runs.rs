//! What watching, turns, and other ways of failing do to an answer.

use super::tests::{Paper, always, changed, fails_with, touched};
use super::*;
use crate::intersect::Unknown;

#[test]
fn a_new_way_of_failing_is_not_excused_by_an_old_one() {
    let often = |run: u32| {
        if run.is_multiple_of(2) {
            fails_with("closed twice")
        } else {
            Ended::Alike
        }
    };
    let mostly = |run: u32| {
        if run.is_multiple_of(3) {
            Ended::Passed
        } else {
            Ended::Alike
        }
    };
    let (whose, _) = Paper::new(often, mostly).ask(changed(), true);
    let message = "closed twice".to_owned();
    assert_eq!(whose, Whose::NotKnown(Open::AnotherFailure { message }));
    let seldom = |run: u32| {
        if run.is_multiple_of(5) {
            fails_with("closed twice")
        } else {
            Ended::Alike
        }
    };
    let (whose, _) = Paper::new(seldom, seldom).ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
}

#[test]
fn what_fails_every_second_time_fails_on_both_sides() {
    let mut inquiry = Inquiry::new(changed(), true);
    inquiry.hear(Heard::Recalled(None));
    let listed = Listed {
        is_listed: true,
        orders_differ: false,
        loses_tests: false,
    };
    inquiry.hear(Heard::Listed(listed));
    let mut runs = 0;
    let whose = loop {
        match inquiry.next() {
            Step::Conclude(whose) => break whose,
            Step::Run(side) => {
                let is_watched = matches!(side, Side::HereWatched | Side::BaseWatched);
                runs += u32::from(!is_watched);
                inquiry.hear(Heard::Ran {
                    side,
                    ended: if runs % 2 == 0 {
                        Ended::Alike
                    } else {
                        Ended::Passed
                    },
                    used: is_watched.then(touched),
                });
            }
            Step::Recall | Step::List => unreachable!("both were told"),
        }
    };
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
}

#[test]
fn a_failure_at_the_base_that_read_what_the_runs_here_left_proves_nothing() {
    let path = "/home/ann/.cache/prices".to_owned();
    let paper = Paper {
        shared: Intersection {
            touches: Vec::new(),
            unknowns: vec![Unknown::Outside(path.clone())],
        },
        ..Paper::new(always, always)
    };
    let (whose, _) = paper.ask(changed(), true);
    let files = vec![path];
    let moved = Open::EnvironmentMoved { files, why: None };
    assert_eq!(whose, Whose::NotKnown(moved));
}

#[test]
fn watching_that_breaks_a_test_accuses_and_acquits_nobody() {
    let mut inquiry = Inquiry::new(changed(), true);
    inquiry.hear(Heard::Recalled(None));
    let listed = Listed {
        is_listed: true,
        orders_differ: false,
        loses_tests: false,
    };
    inquiry.hear(Heard::Listed(listed));
    let whose = loop {
        let (side, is_watched) = match inquiry.next() {
            Step::Conclude(whose) => break whose,
            Step::Run(side) => (side, matches!(side, Side::HereWatched | Side::BaseWatched)),
            Step::Recall | Step::List => unreachable!("both were told"),
        };
        let fails = is_watched || side == Side::Here;
        inquiry.hear(Heard::Ran {
            side,
            ended: if fails { Ended::Alike } else { Ended::Passed },
            used: is_watched.then(touched),
        });
    };
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}
