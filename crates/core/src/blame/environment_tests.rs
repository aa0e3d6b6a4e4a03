//! What the environment of the base has to do with the answer, and a base that is not ready in the time.

use super::*;
use crate::change::ChangeKind;
use crate::intersect::{How, Touch};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The answer where these files shape the environment, the base has its own of some of them, and the test always fails
/// here.
fn ask(moved: &[&str], settled: &[&str], base: &Ended) -> Whose {
    let ground = Ground::Changed {
        environment: names(moved),
        deletes: false,
    };
    let mut inquiry = Inquiry::new(ground, false);
    inquiry.hear(Heard::BaseEnvironment(BaseEnvironment {
        settled: names(settled),
        why: Some("no such version".to_owned()),
    }));
    for _ in 0..100 {
        inquiry.hear(match inquiry.next() {
            Step::Conclude(whose) => return whose,
            Step::Recall => Heard::Recalled(None),
            Step::List => Heard::Listed(Listed {
                is_listed: true,
                orders_differ: false,
                loses_tests: false,
            }),
            Step::Run(side) => Heard::Ran {
                side,
                ended: match side {
                    Side::Here | Side::HereWatched => Ended::Alike,
                    Side::Base | Side::BaseWatched | Side::BaseInThisOrder => base.clone(),
                },
                used: Some(Intersection {
                    touches: vec![Touch {
                        path: "requirements.txt".to_owned(),
                        kind: ChangeKind::Modified,
                        function: None,
                        lines: Vec::new(),
                        how: How::CannotRuleOut,
                    }],
                    unknowns: Vec::new(),
                }),
            },
        });
    }
    panic!("it has no end");
}

fn moved(files: &[&str], why: Option<&str>) -> Whose {
    Whose::NotKnown(Open::EnvironmentMoved {
        files: names(files),
        why: why.map(ToOwned::to_owned),
    })
}

#[test]
fn a_failure_at_the_base_proves_nothing_where_the_environment_moved() {
    let files = ["requirements.txt", ".env"];
    let why = Some("no such version");
    assert_eq!(ask(&files, &[], &Ended::Alike), moved(&files, why));
    let whose = ask(&files, &[], &Ended::Passed);
    assert_eq!(whose, Whose::Yours(Guilt::FailsMore));
}

#[test]
fn a_failure_there_counts_only_if_the_base_has_its_own_of_all_that_moved() {
    let files = ["requirements.txt", ".env"];
    let whose = ask(&files, &["requirements.txt"], &Ended::Alike);
    assert_eq!(whose, moved(&[".env"], Some("no such version")));
    let whose = ask(&files, &files, &Ended::Alike);
    assert_eq!(whose, Whose::NotYours(Innocence::AtBase));
}

#[test]
fn a_base_that_was_not_ready_in_the_time_tells_that() {
    let ground = Ground::Changed {
        environment: Vec::new(),
        deletes: false,
    };
    let mut inquiry = Inquiry::new(ground, false);
    let why = "its setup `make` had not ended after 2 s".to_owned();
    inquiry.hear(Heard::Recalled(None));
    inquiry.hear(Heard::BaseTooSlow { why: why.clone() });
    inquiry.hear(Heard::TimeIsOver);
    let whose = Whose::NotKnown(Open::BaseTooSlow { why });
    assert_eq!(whose.because(), "budget");
    assert_eq!(inquiry.next(), Step::Conclude(whose));
}
