//! A run on paper, with fixed times, for the snapshots of every report.

use std::time::Duration;

use camino::Utf8Path;
use clap::Parser;
use unflake_core::blame::{Base, Blame, Guilt, Innocence, Whose};
use unflake_core::change::{ChangeKind, Lines};
use unflake_core::event::{CollectionError, Ending, Event, Listing, Note};
use unflake_core::intersect::{How, Intersection, Touch, Unknown};
use unflake_core::outcome::Outcome;
use unflake_core::sequential::Tally;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Account, Birth, Fixtures, Rung, Trial, VmId};
use unflake_core::verdict::{Finding, Flakiness, Verdict};

use super::Report;
use crate::flags::args::RunArgs;
use crate::view::repeat::Invocation;

const CHANCE: &str = "tests/test_net.py::test_chance[<a|b>]";
const BROKEN: &str = "tests/test_cart.py::test_total";
const SKIPPED: &str = "tests/test_cart.py::test_windows";

/// A flaky test with a hostile name, a broken one, a skipped one and a collection error.
pub(crate) fn report() -> Report {
    let typed = RunArgs::parse_from(["run", "--jobs", "1", "--", "-v"]);
    let mut report = Report::new(Invocation::new(&typed, Utf8Path::new("/home/user/shop")));
    for event in events() {
        report.read(event);
    }
    report.elapsed = Duration::from_millis(4200);
    report
}

fn events() -> Vec<Event> {
    let chance = [
        trial(CHANCE, Rung::Suite, 0, Outcome::Failed),
        trial(CHANCE, Rung::Immediate, 0, Outcome::Passed),
        trial(CHANCE, Rung::Look, 2, Outcome::Passed),
    ];
    let broken = [
        trial(BROKEN, Rung::Suite, 0, Outcome::Failed),
        trial(BROKEN, Rung::Immediate, 0, Outcome::Failed),
        trial(BROKEN, Rung::Fresh, 3, Outcome::Failed),
    ];
    let skipped = trial(SKIPPED, Rung::Suite, 0, Outcome::Skipped);
    let mut events = vec![
        Event::VmStarted {
            vm: VmId(0),
            birth: Birth::Exec,
        },
        Event::Listed(listing()),
        Event::CollectionFailed(CollectionError {
            place: "tests/test_gone.py".to_owned(),
            text: "E   ModuleNotFoundError: No module named 'gone'".to_owned(),
        }),
        Event::Noted(Note::ForkUnavailable {
            why: "1 more thread is alive".to_owned(),
        }),
    ];
    let trials = chance.iter().chain(&broken).chain([&skipped]);
    events.extend(trials.cloned().map(Event::TrialEnded));
    let flaky = Verdict::Flaky(Flakiness::NonBursty);
    events.push(judged(CHANCE, flaky, &chance));
    events.push(judged(BROKEN, Verdict::Broken, &broken));
    events.push(Event::Ended(Ending::Completed));
    events
}

fn listing() -> Listing {
    let tests = [(CHANCE, 7), (BROKEN, 21), (SKIPPED, 30)];
    Listing {
        framework: "pytest 9.2.0".to_owned(),
        language: "Python 3.11.7".to_owned(),
        root: "/home/user/shop".to_owned(),
        tests: tests
            .map(|(id, line)| Test {
                id: TestId::new(id),
                file: id.split("::").next().unwrap_or_default().to_owned(),
                line,
            })
            .to_vec(),
        deselected: 0,
        jobs: 1,
        replay: Vec::new(),
        options: vec!["-v".to_owned()],
        installed: None,
        hash_seed: Some(41),
    }
}

fn trial(id: &str, rung: Rung, vm: u32, outcome: Outcome) -> Trial {
    let failed = outcome.is_failure();
    let words = |text: &str| {
        if failed {
            text.to_owned()
        } else {
            String::new()
        }
    };
    Trial {
        test: TestId::new(id),
        rung,
        vm: VmId(vm),
        birth: if vm == 2 { Birth::Fork } else { Birth::Exec },
        before: 0,
        fixtures: Fixtures::AsInPlainRun,
        is_watched: false,
        outcome,
        duration: Duration::from_millis(12),
        cost: Duration::from_millis(20 * u64::from(vm + 1)),
        account: Account {
            message: words("assert 6 == 2 \u{1b}[2J"),
            text: words(
                "    def test():\n>       assert 6 == 2\n\ntests/test.py:9: AssertionError",
            ),
            output: words("--- Captured stdout call ---\n```rolling```"),
            ..Account::default()
        },
    }
}

fn judged(id: &str, verdict: Verdict, trials: &[Trial]) -> Event {
    Event::Judged(Finding {
        test: TestId::new(id),
        verdict,
        trials: trials.to_vec(),
        blame: Some(Box::new(if id == BROKEN {
            guilt()
        } else {
            Blame {
                whose: Whose::NotYours(Innocence::AtBase),
                intersection: Intersection::default(),
                here: Tally {
                    hits: 9,
                    misses: 31,
                },
                at_base: Tally {
                    hits: 11,
                    misses: 29,
                },
                ..guilt()
            }
        })),
        left_behind: Vec::new(),
        is_latent: false,
        dependence: None,
        cause: None,
    })
}

fn guilt() -> Blame {
    let touch = |path: &str, function: Option<&str>, how| Touch {
        path: path.to_owned(),
        kind: ChangeKind::Modified,
        function: function.map(ToOwned::to_owned),
        lines: vec![
            Lines {
                first: 12,
                last: 14,
            },
            Lines {
                first: 20,
                last: 20,
            },
        ],
        how,
    };
    Blame {
        whose: Whose::Yours(Guilt::FailsMore),
        base: Some(Base {
            commit: Some("5f3c0a1d9e7b4c2a8f6e1d0b3a9c8e7f5d4b2a10".to_owned()),
            what: "where the branch left origin/main".to_owned(),
        }),
        changed_files: 3,
        intersection: Intersection {
            touches: vec![
                touch("shop/cart.py", Some("Cart.total"), How::Ran),
                touch("shop/<prices>.py", None, How::Imported),
            ],
            unknowns: vec![Unknown::Process("make assets".to_owned())],
        },
        here: Tally { hits: 4, misses: 0 },
        at_base: Tally { hits: 0, misses: 4 },
        otherwise: None,
        polluters: Vec::new(),
    }
}
