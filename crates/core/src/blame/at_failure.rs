//! What a look at the failure itself excuses, and what it does not.

use super::tests::{Paper, always, changed, never, touched, unseen};
use super::*;

#[test]
fn what_had_used_nothing_that_changed_when_it_failed_and_passed_since_is_not_yours_without_any_run()
{
    let one_time = Paper {
        at_failure: Some(Intersection::default()),
        ..Paper::new(never, never)
    };
    let (whose, runs) = one_time.ask(changed(), true);
    assert_eq!(whose, Whose::NotYours(Innocence::UntouchedAtFailure));
    assert_eq!(runs, 0);
    for (environment, deletes) in [(vec![".env".to_owned()], false), (Vec::new(), true)] {
        let ground = Ground::Changed {
            environment,
            deletes,
        };
        let (whose, _) = one_time.ask(ground, true);
        assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
    }
    let opened = Paper {
        at_failure: Some(touched()),
        ..one_time
    };
    let (whose, _) = opened.ask(changed(), true);
    assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
}

#[test]
fn what_always_fails_here_and_never_at_the_base_is_not_excused_by_a_look_at_the_failure() {
    let paper = Paper {
        at_failure: Some(Intersection::default()),
        ..Paper::new(always, never)
    };
    let (whose, _) = paper.ask(changed(), false);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}

#[test]
fn a_pass_in_a_copy_of_the_files_makes_no_look_at_the_failure_count() {
    let paper = Paper {
        at_failure: Some(Intersection::default()),
        used: unseen(),
        ..Paper::new(never, never)
    };
    let (whose, _) = paper.ask(changed(), false);
    assert_eq!(whose, Whose::NotKnown(Open::NotSettled));
}

#[test]
fn a_watched_run_that_saw_more_is_believed() {
    let mut inquiry = Inquiry::new(changed(), true);
    inquiry.hear(Heard::Ran {
        side: Side::Here,
        ended: Ended::Passed,
        used: Some(touched()),
    });
    inquiry.hear(Heard::AtFailure(Intersection::default()));
    assert_eq!(inquiry.next(), Step::Recall);
}
