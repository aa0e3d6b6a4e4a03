//! What the technique concludes where the history knows the failure.

use super::super::Known;
use super::tests::{Paper, always, changed, every_third, never, touched};
use super::*;

fn every_eleventh(run: u32) -> Ended {
    if run.is_multiple_of(11) {
        Ended::Alike
    } else {
        Ended::Passed
    }
}

#[test]
fn a_rare_flake_that_the_history_knows_is_not_yours_and_one_that_fails_often_now_is() {
    let known = Some(Known {
        runs: 500,
        failures: 10,
        last: 0,
    });
    let rare = Paper {
        known,
        ..Paper::new(never, never)
    };
    let (whose, runs) = rare.ask(changed(), true);
    assert!(matches!(whose, Whose::NotYours(Innocence::InHistory(_))));
    assert_eq!(
        runs,
        61 + 8,
        "31 passes exclude a tenth; some more are watched"
    );
    let often = Paper {
        known,
        ..Paper::new(every_third, never)
    };
    let (whose, _) = often.ask(changed(), true);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}

#[test]
fn a_test_that_fails_much_more_often_than_the_history_knows_is_not_excused_by_it() {
    let known = Known {
        runs: 1000,
        failures: 1,
        last: 0,
    };
    let paper = Paper {
        known: Some(known),
        ..Paper::new(every_eleventh, never)
    };
    let (whose, _) = paper.ask(changed(), true);
    assert!(!matches!(whose, Whose::NotYours(_)), "{whose:?}");
    let rare = Paper {
        known: Some(known),
        ..Paper::new(never, never)
    };
    let (whose, runs) = rare.ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::InHistory(known)));
    assert!(runs > 200, "{runs} runs");
}

#[test]
fn what_no_number_of_reruns_excludes_is_too_rare() {
    let known = Known {
        runs: 100_000,
        failures: 1,
        last: 0,
    };
    let paper = Paper {
        known: Some(known),
        ..Paper::new(never, never)
    };
    let (whose, runs) = paper.ask(changed(), true);
    let needs = None;
    assert_eq!(whose, Whose::NotKnown(Open::TooRare { known, needs }));
    assert_eq!(runs, 60 + 8, "as without a history");
}

#[test]
fn a_failure_that_the_history_knows_is_not_yours_where_the_environment_moved() {
    let known = Known {
        runs: 60,
        failures: 20,
        last: 0,
    };
    let ground = Ground::Changed {
        environment: vec!["requirements.txt".to_owned()],
        deletes: false,
    };
    let paper = Paper {
        known: Some(known),
        ..Paper::new(every_third, every_third)
    };
    let (whose, _) = paper.ask(ground.clone(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::InHistory(known)));
    let often = Paper {
        known: Some(Known {
            failures: 2,
            ..known
        }),
        ..Paper::new(always, always)
    };
    let (whose, _) = often.ask(ground, true);
    assert!(matches!(
        whose,
        Whose::NotKnown(Open::EnvironmentMoved { .. })
    ));
}

#[test]
fn a_coin_that_the_history_knows_needs_no_base() {
    let known = Known {
        runs: 6,
        failures: 2,
        last: 0,
    };
    let ask = |ends: fn(u32) -> Ended| {
        let mut inquiry = Inquiry::new(changed(), true);
        inquiry.hear(Heard::Recalled(Some(known)));
        inquiry.hear(Heard::BaseUnwanted);
        let mut runs = 0;
        while let Step::Run(side) = inquiry.next() {
            runs += 1;
            inquiry.hear(Heard::Ran {
                side,
                ended: ends(runs),
                used: (side == Side::HereWatched).then(touched),
            });
        }
        inquiry.next()
    };
    let known = Step::Conclude(Whose::NotYours(Innocence::InHistory(known)));
    assert_eq!(ask(every_third), known);
    let open = Step::Conclude(Whose::NotKnown(Open::NotAsked));
    assert_eq!(ask(always), open, "two of six there, and always here");
}
