//! What the technique concludes from planted sequences of runs.

use super::*;
use crate::blame::Known;
use crate::change::ChangeKind;
use crate::failure::Fingerprint;
use crate::intersect::{How, Touch, Unknown};

pub(super) fn changed() -> Ground {
    Ground::Changed {
        environment: Vec::new(),
        deletes: false,
    }
}

pub(super) fn touched() -> Intersection {
    Intersection {
        touches: vec![Touch {
            path: "shop/cart.py".to_owned(),
            kind: ChangeKind::Modified,
            function: Some("total".to_owned()),
            lines: Vec::new(),
            how: How::Ran,
        }],
        unknowns: Vec::new(),
    }
}

pub(super) fn unseen() -> Intersection {
    Intersection {
        touches: Vec::new(),
        unknowns: vec![Unknown::NotWatched],
    }
}

/// A test on paper: how each of its runs ends, and what they use.
pub(super) struct Paper {
    pub(super) here: fn(u32) -> Ended,
    pub(super) base: fn(u32) -> Ended,
    pub(super) in_this_order: fn(u32) -> Ended,
    pub(super) used: Intersection,
    /// What the base used that may be none of its own.
    pub(super) shared: Intersection,
    pub(super) is_listed: bool,
    pub(super) orders_differ: bool,
    pub(super) known: Option<Known>,
    pub(super) at_failure: Option<Intersection>,
}

impl Paper {
    pub(super) fn new(here: fn(u32) -> Ended, base: fn(u32) -> Ended) -> Self {
        Self {
            here,
            base,
            in_this_order: base,
            used: touched(),
            shared: Intersection::default(),
            is_listed: true,
            orders_differ: false,
            known: None,
            at_failure: None,
        }
    }

    /// Lets the technique ask until it concludes; how many runs that took.
    pub(super) fn ask(&self, ground: Ground, has_passed: bool) -> (Whose, u32) {
        let mut inquiry = Inquiry::new(ground, has_passed);
        if let Some(used) = self.at_failure.clone() {
            inquiry.hear(Heard::AtFailure(used));
        }
        let mut counts = [0; 3];
        for _ in 0..5000 {
            let heard = match inquiry.next() {
                Step::Conclude(whose) => return (whose, counts.iter().sum()),
                Step::Recall => Heard::Recalled(self.known),
                Step::List => Heard::Listed(Listed {
                    is_listed: self.is_listed,
                    orders_differ: self.orders_differ,
                    loses_tests: false,
                }),
                Step::Run(side) => {
                    let used = Some(self.used.clone());
                    let (at, ended, used) = match side {
                        Side::Here => (0, self.here, None),
                        Side::HereWatched => (0, self.here, used),
                        Side::Base => (1, self.base, None),
                        Side::BaseWatched => (1, self.base, Some(self.shared.clone())),
                        Side::BaseInThisOrder => (2, self.in_this_order, None),
                    };
                    counts[at] += 1;
                    let ended = ended(counts[at]);
                    Heard::Ran { side, ended, used }
                }
            };
            inquiry.hear(heard);
        }
        panic!("it has no end");
    }
}

pub(super) fn always(_: u32) -> Ended {
    Ended::Alike
}

pub(super) fn never(_: u32) -> Ended {
    Ended::Passed
}

pub(super) fn every_third(run: u32) -> Ended {
    if run.is_multiple_of(3) {
        Ended::Alike
    } else {
        Ended::Passed
    }
}

fn otherwise(_: u32) -> Ended {
    fails_with("no module _speed")
}

pub(super) fn fails_with(message: &str) -> Ended {
    Ended::Otherwise {
        message: message.to_owned(),
        print: Fingerprint::of_text("ImportError", message, ""),
    }
}

fn not_run(_: u32) -> Ended {
    Ended::NotRun {
        why: "its file is not there".to_owned(),
    }
}

#[test]
fn a_leak_of_the_change_is_yours_although_it_passes_alone() {
    let (whose, runs) = Paper::new(always, never).ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
    assert_eq!(runs, 9, "four on either side, and one that is watched");
}

#[test]
fn a_coin_of_the_change_is_yours() {
    let (whose, _) = Paper::new(every_third, never).ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}

#[test]
fn an_old_leak_is_not_yours() {
    let (whose, runs) = Paper::new(always, always).ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
    assert_eq!(
        runs, 10,
        "four on either side, and one on each that is watched"
    );
}

#[test]
fn an_old_coin_is_not_yours() {
    let (whose, _) = Paper::new(every_third, every_third).ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
}

#[test]
fn a_failure_that_used_nothing_that_changed_is_not_yours() {
    let paper = Paper {
        used: Intersection::default(),
        ..Paper::new(always, never)
    };
    let (whose, runs) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::Untouched));
    assert_eq!(runs, 1);
    let (whose, runs) = paper.ask(changed(), false);
    assert_eq!(whose, Whose::NotYours(Innocence::Untouched));
    assert_eq!(runs, 2);
}

#[test]
fn a_test_that_is_gone_may_have_done_what_another_needs() {
    let paper = Paper {
        used: Intersection::default(),
        orders_differ: true,
        in_this_order: always,
        ..Paper::new(always, never)
    };
    let (whose, _) = paper.ask(changed(), false);
    assert_eq!(whose, Whose::Yours(Guilt::Exposed));
    for (deletes, is_forgiven) in [(true, false), (false, true)] {
        let ground = Ground::Changed {
            environment: Vec::new(),
            deletes,
        };
        let mut inquiry = Inquiry::new(ground, true);
        inquiry.hear(Heard::Recalled(None));
        inquiry.hear(Heard::BaseCannotRun {
            why: "no compiler".to_owned(),
        });
        inquiry.hear(Heard::Ran {
            side: Side::Here,
            ended: Ended::Alike,
            used: Some(Intersection::default()),
        });
        let untouched = Step::Conclude(Whose::NotYours(Innocence::Untouched));
        assert_eq!(inquiry.next() == untouched, is_forgiven);
    }
}

#[test]
fn a_passing_run_that_used_nothing_that_changed_proves_nothing() {
    let paper = Paper {
        used: Intersection::default(),
        ..Paper::new(never, never)
    };
    let (whose, _) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
}

#[test]
fn what_was_not_seen_is_no_evidence() {
    let paper = Paper {
        used: unseen(),
        ..Paper::new(always, never)
    };
    let (whose, _) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotKnown(Open::Unseen));
}

#[test]
fn a_test_that_the_base_does_not_list_is_yours() {
    let paper = Paper {
        is_listed: false,
        ..Paper::new(every_third, not_run)
    };
    let (whose, _) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::NewTest));
}

#[test]
fn a_base_that_fails_otherwise_or_not_at_all_tells_nothing() {
    for base in [otherwise, not_run] {
        let (whose, _) = Paper::new(always, base).ask(changed(), true);
        assert!(
            matches!(whose, Whose::NotKnown(Open::BaseCannotRun { .. })),
            "{whose:?}"
        );
    }
}

#[test]
fn an_order_that_breaks_the_base_too_was_exposed_by_the_change() {
    let exposed = Paper {
        in_this_order: always,
        orders_differ: true,
        ..Paper::new(always, never)
    };
    let (whose, _) = exposed.ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::Exposed));
    let other = Paper {
        orders_differ: true,
        ..Paper::new(always, never)
    };
    let (whose, _) = other.ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}

#[test]
fn without_a_base_nothing_is_known() {
    let (whose, runs) = Paper::new(always, never).ask(Ground::None(Open::NoRepository), true);
    assert_eq!(whose, Whose::NotKnown(Open::NoRepository));
    assert_eq!(runs, 0);
    let (whose, _) = Paper::new(always, never).ask(Ground::Unchanged, true);
    assert_eq!(whose, Whose::NotYours(Innocence::NothingChanged));
}

#[test]
fn a_failure_at_the_base_excuses_nobody_while_no_run_here_was_watched() {
    let mut inquiry = Inquiry::new(changed(), false);
    loop {
        inquiry.hear(match inquiry.next() {
            Step::Conclude(whose) => {
                assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
                return;
            }
            Step::Recall => Heard::Recalled(None),
            Step::List => Heard::Listed(Listed {
                is_listed: true,
                orders_differ: false,
                loses_tests: false,
            }),
            Step::Run(side) => Heard::Ran {
                side,
                ended: Ended::Alike,
                used: None,
            },
        });
    }
}

/// Seven of ten runs fail, each at the next of three lines; the seventh place is another on either side.
fn at_one_of_three_lines(run: u32) -> Ended {
    match (run % 10, run % 3) {
        (0..=2, _) => Ended::Passed,
        (_, 0) => Ended::Alike,
        (_, 1) => fails_with("the second line"),
        _ => fails_with("the third line"),
    }
}

fn at_one_of_three_lines_shifted(run: u32) -> Ended {
    at_one_of_three_lines(run + 13)
}

#[test]
fn a_test_that_fails_at_one_of_several_lines_on_both_sides_is_not_yours() {
    let paper = Paper::new(at_one_of_three_lines, at_one_of_three_lines_shifted);
    let (whose, runs) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
    assert!(runs < 150, "{runs}");
}

/// One of ten runs fails alike, and four otherwise.
fn rarely_in_one_of_two_ways(run: u32) -> Ended {
    match run % 10 {
        3 => Ended::Alike,
        1 | 5 | 7 | 9 => fails_with("the second line"),
        _ => Ended::Passed,
    }
}

/// Four of ten runs fail alike, and four otherwise: more than three times as often as above in the one way, and not in
/// both ways together.
fn often_in_both_ways(run: u32) -> Ended {
    match run % 10 {
        0 | 2 | 4 | 6 => Ended::Alike,
        1 | 5 | 7 | 9 => fails_with("the second line"),
        _ => Ended::Passed,
    }
}

#[test]
fn a_failure_that_comes_more_often_is_not_excused_by_another_one_that_does_not() {
    let paper = Paper::new(often_in_both_ways, rarely_in_one_of_two_ways);
    let (whose, _) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
}

/// The first five runs fail at another line than the one that is asked about.
fn at_another_line_first(run: u32) -> Ended {
    if run <= 5 {
        fails_with("the second line")
    } else {
        at_one_of_three_lines(run)
    }
}

#[test]
fn a_base_that_fails_at_another_line_at_first_is_not_given_up() {
    let paper = Paper::new(at_one_of_three_lines, at_another_line_first);
    let (whose, _) = paper.ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
}
