//! What earlier runs say about a failure, and what had run before it.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use unflake_history::batch::{Batch, Packer};
use unflake_history::engine::{self, Missing};
use unflake_history::past::{Past, VmPast};
use unflake_history::run::{Ended, More, Provenance, Row, TestName};
use unflake_history::store::evidence::{Evidence, Question};
use unflake_history::store::source::{Conditions, Refused, Source};
use unflake_history::store::{Store, digest_of};

const FINGERPRINT: &str = "1|failed|KeyError||'#'";

/// One run of a test: that which counts, unless something else is said.
#[derive(Clone)]
struct Told {
    test: &'static str,
    revision: &'static str,
    fingerprint: Option<&'static str>,
    time: i64,
    attempt: u32,
    source: &'static str,
    installed: Option<[u8; 32]>,
    is_ours: bool,
    past: Option<Arc<Past>>,
}

fn passed() -> Told {
    Told {
        test: "test_a",
        revision: "base",
        fingerprint: None,
        time: 10,
        attempt: 1,
        source: "unflake",
        installed: Some(digest_of(b"here")),
        is_ours: true,
        past: None,
    }
}

fn failed() -> Told {
    Told {
        fingerprint: Some(FINGERPRINT),
        ..passed()
    }
}

struct Runs {
    told: Told,
    batch: Option<Batch>,
    number: usize,
}

impl Source for Runs {
    fn next_batch(&mut self) -> Option<Batch> {
        self.batch.take()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        Ok(digest_of(&self.number.to_le_bytes()))
    }

    fn name(&self) -> String {
        self.told.source.to_owned()
    }

    fn installed(&self) -> Option<[u8; 32]> {
        self.told.installed
    }

    fn conditions(&self) -> Option<Conditions> {
        self.told.is_ours.then(|| Conditions {
            project: "shop".to_owned(),
            jobs: 2,
            hash_seed: Some("7".to_owned()),
        })
    }
}

fn add(store: &mut dyn Store, told: &[Told]) {
    for (number, told) in told.iter().enumerate() {
        let mut batch = None;
        let mut packer = Packer::new(|full| {
            batch = Some(full);
            Ok::<(), ()>(())
        });
        let test = packer.test(told.test, 0, true);
        let provenance = packer.provenance(&Provenance {
            revision: told.revision.to_owned(),
            branch: "main".to_owned(),
            ..Provenance::default()
        });
        let more = told.fingerprint.map(|fingerprint| {
            Box::new(More {
                fingerprint: Some(fingerprint.to_owned()),
                past: told.past.clone(),
                ..More::default()
            })
        });
        let ended = if more.is_some() {
            Ended::FAILED
        } else {
            Ended::PASSED
        };
        packer
            .push(Row {
                test,
                provenance,
                time: told.time,
                ended,
                attempt: told.attempt,
                duration: None,
                more,
            })
            .unwrap();
        packer.flush().unwrap();
        let mut source = Runs {
            told: told.clone(),
            batch,
            number,
        };
        store.append(&mut source).unwrap();
    }
}

fn name(test: &str) -> TestName {
    TestName {
        name: test.to_owned(),
        copy: 0,
        is_own: true,
    }
}

fn new_store(folder: &TempDir) -> Box<dyn Store> {
    engine::open(&folder.path().join("history.db"), Missing::Make).unwrap()
}

/// What a history of some runs knows, as runs, failures and the last time.
fn known(told: &[Told], names: &[&str]) -> Option<(u32, u32, i64)> {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    add(&mut *store, told);
    let told = |test: &&str| (name(test), FINGERPRINT.to_owned());
    let names: Vec<(TestName, String)> = names.iter().map(told).collect();
    ask(&*store, &names)
}

fn ask(store: &dyn Store, names: &[(TestName, String)]) -> Option<(u32, u32, i64)> {
    let question = Question {
        source: "unflake",
        installed: &digest_of(b"here"),
        names,
        before: 1000,
    };
    let is_wanted = |revision: &str| matches!(revision, "base" | "older");
    let evidence = store.evidence(&question, &is_wanted).unwrap();
    evidence.map(
        |Evidence {
             runs,
             failures,
             last,
         }| (runs, failures, last),
    )
}

#[test]
fn first_runs_of_clean_trees_at_the_base_and_before_it_count() {
    let runs = [
        passed(),
        Told {
            time: 30,
            ..failed()
        },
        Told {
            revision: "older",
            time: 20,
            ..failed()
        },
        Told {
            time: 40,
            ..passed()
        },
    ];
    assert_eq!(known(&runs, &["test_a"]), Some((4, 2, 30)));
    assert_eq!(known(&runs[..1], &["test_a"]), Some((1, 0, 10)));
    assert_eq!(known(&runs, &["test_b"]), None);
    assert_eq!(known(&[], &["test_a"]), None);
}

#[test]
fn what_ran_elsewhere_otherwise_or_later_does_not_count() {
    let other = |change: fn(&mut Told)| {
        let mut told = failed();
        change(&mut told);
        told
    };
    for (what, told) in [
        ("a dirty tree", other(|told| told.revision = "base+")),
        ("nobody knows where", other(|told| told.revision = "")),
        ("no ancestor", other(|told| told.revision = "later")),
        (
            "another folder",
            other(|told| told.source = "unflake in sub"),
        ),
        (
            "another environment",
            other(|told| told.installed = Some(digest_of(b"there"))),
        ),
        (
            "nobody knows with what",
            other(|told| told.installed = None),
        ),
        ("a rerun", other(|told| told.attempt = 2)),
        ("an experiment", other(|told| told.attempt = 0)),
        ("another test", other(|told| told.test = "test_b")),
        ("this very session", other(|told| told.time = 1000)),
        ("without fingerprints", other(|told| told.is_ours = false)),
    ] {
        assert_eq!(
            known(std::slice::from_ref(&told), &["test_a"]),
            None,
            "{what}"
        );
        assert_eq!(
            known(&[passed(), told], &["test_a"]),
            Some((1, 0, 10)),
            "{what}"
        );
    }
}

#[test]
fn a_failure_of_another_kind_is_a_run_that_did_not_fail_so() {
    let other = Told {
        fingerprint: Some("1|failed|ValueError||"),
        time: 50,
        ..failed()
    };
    assert_eq!(known(&[failed(), other], &["test_a"]), Some((2, 1, 10)));
}

#[test]
fn runs_under_an_old_name_count_too() {
    let old = Told {
        test: "test_old",
        time: 50,
        ..failed()
    };
    let runs = [passed(), old];
    assert_eq!(known(&runs, &["test_a", "test_old"]), Some((2, 1, 50)));
}

#[test]
fn under_an_old_name_the_failure_has_an_old_fingerprint() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let old = |fingerprint| Told {
        test: "test_old",
        fingerprint: Some(fingerprint),
        ..failed()
    };
    add(&mut *store, &[old("1|failed|E|test_old:go()|"), failed()]);
    let names = [
        (name("test_a"), "1|failed|E|test_a:go()|".to_owned()),
        (name("test_old"), "1|failed|E|test_old:go()|".to_owned()),
    ];
    assert_eq!(ask(&*store, &names), Some((2, 1, 10)));
}

#[test]
fn a_commit_was_tested_if_it_ran_without_other_changes() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let at = |revision| Told {
        revision,
        ..passed()
    };
    let rerun = Told {
        attempt: 0,
        ..at("only-experiments")
    };
    let elsewhere = Told {
        source: "unflake in sub",
        ..at("elsewhere")
    };
    add(&mut *store, &[at("clean"), at("dirty+"), rerun, elsewhere]);
    let last = |revision| store.first_tested("unflake", revision, 1000).unwrap();
    assert!(last("clean").is_some());
    for other in ["dirty", "only-experiments", "elsewhere", "never"] {
        assert_eq!(last(other), None, "{other}");
    }
    assert_eq!(
        store.first_tested("unflake", "clean", 10).unwrap(),
        None,
        "it was not yet"
    );
}

#[test]
fn what_ran_before_failures_is_kept_once_and_comes_back_in_its_order() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let mut vm = VmPast::default();
    let first = vm.so_far();
    for number in 0..300 {
        vm.push(name(&format!("test_{number}")));
    }
    let (late, again) = (vm.so_far(), vm.so_far());
    vm.push(name("test_a"));
    let after = vm.so_far();
    let with = |past: Option<Arc<Past>>| Told { past, ..failed() };
    let pasts = [Some(first), Some(late), Some(again), Some(after), None];
    add(&mut *store, &pasts.map(with));
    let lengths: Vec<Option<usize>> = (1..=5)
        .map(|run| store.past_of(run).unwrap().map(|tests| tests.len()))
        .collect();
    assert_eq!(lengths, [Some(0), Some(300), Some(300), Some(301), None]);
    let tests = store.past_of(4).unwrap().unwrap();
    assert_eq!(
        (&tests[0], &tests[299]),
        (&name("test_0"), &name("test_299"))
    );
    assert_eq!(tests[300], name("test_a"));
    let plain = Connection::open(store.place()).unwrap();
    let (pasts, conditions): (i64, String) = plain
        .query_row(
            "SELECT (SELECT count(*) FROM past), project || jobs || hash_seed FROM import LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(pasts, 4, "nothing, a stretch, and its two ends");
    assert_eq!(conditions, "shop27");
}
