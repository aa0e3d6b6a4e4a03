//! The history in its file: what goes in comes out, once, whatever happens on the way.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;
use std::thread;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;
use unflake_history::daily::FlakyRule;
use unflake_history::engine::{self, Missing};
use unflake_history::import::{FileReport, Input, Wish, import};
use unflake_history::run::{Label, TestName};
use unflake_history::store::Store;
use unflake_history::store::kept::KeptLabel;
use unflake_history::store::source::Appended;

/// 1 January 2026, in milliseconds.
const NOW: i64 = 1_767_225_600_000;

fn wish() -> Wish {
    Wish {
        now: NOW,
        ..Wish::default()
    }
}

fn input(name: &str, text: &str) -> Input {
    Input {
        name: name.to_owned(),
        written: Some(NOW - 1000),
        bytes: Box::new(Cursor::new(text.as_bytes().to_vec())),
    }
}

fn take(store: &mut dyn Store, name: &str, text: &str) -> FileReport {
    import(store, input(name, text), &wish()).unwrap()
}

fn runs(report: &FileReport) -> u64 {
    match report.result.as_ref().unwrap() {
        Appended::Added { runs } => *runs,
        Appended::Known | Appended::Refused => panic!("{report:?}"),
    }
}

fn new_store(folder: &TempDir) -> Box<dyn Store> {
    engine::open(&folder.path().join("history.db"), Missing::Make).unwrap()
}

/// All counts by test name, day, branch and release: runs, failures, flaky failures.
fn counts(store: &dyn Store, rule: FlakyRule) -> BTreeMap<(String, i32, String), (u32, u32, u32)> {
    let names: BTreeMap<u32, TestName> = store.tests().unwrap().into_iter().collect();
    let streams = store.streams().unwrap();
    let mut counts = BTreeMap::new();
    store
        .visit_daily(rule, &mut |count| {
            let stream = streams
                .iter()
                .find(|one| one.number == count.stream)
                .unwrap();
            let stream = format!("{}/{}", stream.branch, stream.release);
            let key = (names[&count.test].name.clone(), count.day, stream);
            let (runs, failures, flaky) = counts.entry(key).or_insert((0, 0, 0));
            *runs += count.runs;
            *failures += count.failures;
            *flaky += count.flaky;
        })
        .unwrap();
    counts
}

const TABLE: &str = "\
test,time,verdict,release,bug
a,2025-01-01T10:00:00Z,passed,A,
a,2025-01-01T11:00:00Z,failed,A,
a,2025-01-01T12:00:00Z,failed,A,TR7
b,2025-01-02,skipped,A,
b,2025-01-02,ok,B,
";

#[test]
fn a_table_is_counted_by_test_day_and_release() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    assert_eq!(runs(&take(&mut *store, "t.csv", TABLE)), 5);
    let counts = counts(&*store, FlakyRule::Bug);
    let key = |test: &str, day, release: &str| (test.to_owned(), day, format!("/{release}"));
    assert_eq!(counts[&key("a", 20_089, "A")], (3, 2, 1));
    assert_eq!(counts[&key("b", 20_090, "B")], (1, 0, 0));
    assert_eq!(counts.len(), 2, "a skip is no run: {counts:?}");
}

#[test]
fn the_same_file_counts_once_and_another_one_with_the_same_runs_again() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    take(&mut *store, "t.csv", TABLE);
    let again = take(&mut *store, "renamed.csv", TABLE);
    assert_eq!(*again.result.as_ref().unwrap(), Appended::Known);
    let mut elsewhere = wish();
    elsewhere.provenance.job = "nightly".to_owned();
    let other = import(&mut *store, input("t.csv", TABLE), &elsewhere).unwrap();
    assert_eq!(runs(&other), 5, "of another job it is another report");
}

#[test]
fn what_cannot_be_used_is_counted_with_its_reason_and_the_rest_is_taken() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let long = "x".repeat(70_000);
    let name = format!("ten\u{1b}[2J{}", "n".repeat(10_000));
    let text = format!(
        "test,time,verdict,duration\n,2025-01-01,ok,1\na,,ok,1\na,someday,ok,1\na,2125-01-01,ok,1\n\
         a,2025-01-01,,1\na,2025-01-01,maybe,1\na,2025-01-01\n{long},2025-01-01,ok,1\n\
         {name},2025-01-01,ok,NaN\na,2025-01-01,ok,-3\n"
    );
    let report = take(&mut *store, "t.csv", &text);
    assert_eq!(runs(&report), 2);
    let reasons: Vec<(&str, u64, &str)> = report
        .skips
        .iter()
        .map(|(skip, count, example)| (skip.reason(), count, example))
        .collect();
    let expected = [
        ("no test name", 1, "line 2"),
        ("a test name longer than 64 kB", 1, "line 9"),
        ("no time", 1, "line 3"),
        ("a time that cannot be read", 1, "line 4"),
        ("a time in the future", 1, "line 5"),
        ("no verdict", 1, "line 6"),
        ("a verdict that is not known", 1, "line 7"),
        ("another number of fields than the first line", 1, "line 8"),
    ];
    assert_eq!(reasons, expected);
    let kept = store.runs_of(&[1, 2], i64::MIN, i64::MAX).unwrap();
    assert!(kept.len() == 2 && kept.iter().all(|run| run.duration.is_none()));
}

#[test]
fn a_broken_file_adds_nothing_and_others_are_not_lost() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    for (name, text, complaint) in [
        (
            "cut.xml",
            r#"<testsuite><testcase classname="c" name="t"/>"#,
            "ends inside",
        ),
        ("page.xml", "<html></html>", "not JUnit XML"),
        ("empty.csv", "", "it is empty"),
        (
            "other.csv",
            "name,colour\nx,red\n",
            "no column holds the time",
        ),
        ("wide.csv", "\u{feff}", "no column holds"),
        (
            "none.csv",
            "test,time,verdict\nx,y,z\n",
            "there is no run in it that can be used",
        ),
    ] {
        let report = take(&mut *store, name, text);
        let error = report.result.unwrap_err().to_string();
        assert!(error.contains(complaint), "{name}: {error}");
    }
    let wide: Vec<u8> = b"\xff\xfet\0e\0".to_vec();
    let wide = Input {
        name: "wide.csv".to_owned(),
        written: None,
        bytes: Box::new(Cursor::new(wide)),
    };
    let error = import(&mut *store, wide, &wish())
        .unwrap()
        .result
        .unwrap_err();
    assert!(error.to_string().contains("UTF-16"), "{error}");
    assert!(counts(&*store, FlakyRule::Bug).is_empty());
    assert_eq!(runs(&take(&mut *store, "t.csv", TABLE)), 5);
}

#[test]
fn entities_are_not_expanded() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let bomb = r#"<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>
        <testsuite name="s"><testcase classname="c" name="&b;"/></testsuite>"#;
    take(&mut *store, "bomb.xml", bomb);
    let tests = store.tests().unwrap();
    assert!(
        tests.iter().all(|(_, test)| test.name.len() < 10),
        "{tests:?}"
    );
}

#[test]
fn every_attempt_of_a_report_is_kept_and_the_first_one_counts() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let xml = r#"<testsuites><testsuite name="s" timestamp="2025-01-01T10:00:00">
        <testcase classname="c" name="flaky" time="0.5"><flakyFailure message="boom 17" type="E"/></testcase>
        <testcase classname="c" name="broken"><failure message="bad"/><rerunFailure message="bad"/></testcase>
        <testcase classname="c" name="fine" time="NaN"/></testsuite></testsuites>"#;
    assert_eq!(runs(&take(&mut *store, "r.xml", xml)), 5);
    let counts = counts(&*store, FlakyRule::Verdict);
    let of = |test: &str| counts[&(test.to_owned(), 20_089, "/".to_owned())];
    assert_eq!(of("c.flaky"), (1, 1, 1));
    assert_eq!(of("c.broken"), (1, 1, 0));
    assert_eq!(of("c.fine"), (1, 0, 0));
    let kept = store.runs_of(&[1], i64::MIN, i64::MAX).unwrap();
    assert_eq!(kept[0].signature.as_deref(), Some("E: boom #"));
    assert_eq!((kept[0].attempt, kept[1].attempt), (1, 2));
    assert_eq!(kept[1].outcome, "passed");
}

#[test]
fn by_revision_a_failure_is_flaky_if_the_test_passed_there_too() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let table = "test,time,verdict,revision\na,2025-01-01,failed,r1\na,2025-01-02,passed,r1\n\
                 a,2025-01-03,failed,r2\na,2025-01-04,passed,r3\nb,2025-01-05,failed,r4+\nb,2025-01-05,passed,r4+\n";
    take(&mut *store, "t.csv", table);
    let found = counts(&*store, FlakyRule::Revision);
    let flaky: Vec<u32> = found.values().map(|(_, _, flaky)| *flaky).collect();
    assert_eq!(flaky, [1, 0, 0, 0, 0], "{found:?}");
}

#[test]
fn json_lines_are_read_and_bad_lines_left_out() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let text = "{\"test\": \"a\", \"time\": 1735725600, \"result\": \"PASS\", \"duration\": 0.5}\n\n{]\n\
                {\"Test Name\": \"a\", \"time\": \"2025-01-01\", \"outcome\": \"fail\", \"message\": \"x 5\"}\n[1]\n";
    let report = take(&mut *store, "t.ndjson", text);
    assert_eq!((runs(&report), report.skips.total()), (2, 2));
}

#[test]
fn many_runs_are_counted_in_blocks_as_the_view_counts_them() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let mut table = "test,time,verdict,release,bug\n".to_owned();
    for at in 0..60_000_i64 {
        let verdict = if at % 7 == 0 { "failed" } else { "passed" };
        let bug = if at % 21 == 0 { "B" } else { "" };
        let time = 1_700_000_000 + at * 37;
        let (test, release) = (at % 113, at % 3);
        writeln!(table, "t{test},{time},{verdict},R{release},{bug}").unwrap();
    }
    take(&mut *store, "large.csv", &table);
    take(&mut *store, "small.csv", TABLE);
    let ours: u64 = counts(&*store, FlakyRule::Bug)
        .values()
        .map(|(runs, _, _)| u64::from(*runs))
        .sum();
    assert_eq!(ours, 60_004);
    let plain = Connection::open(store.place()).unwrap();
    let blocks: i64 = plain
        .query_row("SELECT count(*) FROM block", [], |row| row.get(0))
        .unwrap();
    assert_eq!(blocks, 1, "60,000 runs are worth a block and 5 are not");
    let view = "SELECT test.name, day, branch || '/' || release, runs, failures, failures - with_bug \
                FROM daily_counts JOIN test ON test.id = test JOIN stream ON stream.id = stream";
    let mut view = plain.prepare(view).unwrap();
    let theirs: BTreeMap<_, _> = view
        .query_map([], |row| {
            let key: (String, i32, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let value: (u32, u32, u32) = (row.get(3)?, row.get(4)?, row.get(5)?);
            Ok((key, value))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(counts(&*store, FlakyRule::Bug), theirs);
}

#[test]
fn several_writers_at_once_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    let write = |writer: usize, path: &Path| {
        let mut store = engine::open(path, Missing::Make).unwrap();
        for file in 0..10 {
            let table =
                format!("test,time,verdict\nw{writer}f{file},2025-01-01,ok\nall,2025-01-01,ok\n");
            assert_eq!(runs(&take(&mut *store, "t.csv", &table)), 2);
        }
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || write(writer, path));
        }
    });
    let store = engine::open(&path, Missing::Refuse).unwrap();
    let counts = counts(&*store, FlakyRule::Bug);
    assert_eq!(counts.len(), 41);
    assert_eq!(counts[&("all".to_owned(), 20_089, "/".to_owned())].0, 40);
}

#[test]
fn labels_are_kept_in_their_order() {
    let folder = TempDir::new().unwrap();
    let mut store = new_store(&folder);
    let label = |kind: &str| Label {
        time: NOW,
        test: TestName {
            name: "a".to_owned(),
            copy: 0,
            is_own: true,
        },
        run: None,
        kind: kind.to_owned(),
        value: "because".to_owned(),
        author: "me".to_owned(),
    };
    let labels = [label("quarantined"), label("resolved")];
    store.append_labels(&labels).unwrap();
    let kept = store.labels().unwrap();
    let kinds: Vec<&str> = kept.iter().map(|label| label.kind.as_str()).collect();
    assert_eq!(kinds, ["quarantined", "resolved"]);
    let test = store.test_by_number(kept[0].test).unwrap();
    assert_eq!(test.as_ref(), Some(&labels[0].test));
    let KeptLabel {
        time,
        test: _,
        run,
        kind,
        value,
        author,
    } = &kept[0];
    let [added, _] = &labels;
    assert_eq!(
        (time, run, kind, value, author),
        (
            &added.time,
            &added.run,
            &added.kind,
            &added.value,
            &added.author
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_order_of_imports_and_the_splitting_of_files_do_not_matter(
        raw in proptest::collection::vec((0_u8..4, 0_u8..5, any::<bool>(), 0_u8..3), 1..60),
        cut in 0_usize..60,
    ) {
        let line = |(test, day, failed, release): &(u8, u8, bool, u8)| {
            let verdict = if *failed { "failed" } else { "passed" };
            format!("t{test},2025-01-0{},{verdict},R{release}\n", day + 1)
        };
        let lines: Vec<String> = raw.iter().map(line).collect();
        let file = |lines: &[String]| format!("test,time,verdict,release\n{}", lines.concat());
        let (first, second) = lines.split_at(cut.min(lines.len()));
        let mut found = Vec::new();
        for files in [vec![lines.as_slice()], vec![first, second], vec![second, first]] {
            let folder = TempDir::new().unwrap();
            let mut store = new_store(&folder);
            // Two halves may be the same bytes: as reports of two jobs they are two reports.
            for (number, part) in files.iter().enumerate() {
                let mut wish = wish();
                wish.provenance.job = number.to_string();
                import(&mut *store, input("t.csv", &file(part)), &wish).unwrap();
            }
            found.push(counts(&*store, FlakyRule::Evidence));
        }
        prop_assert_eq!(&found[0], &found[1]);
        prop_assert_eq!(&found[0], &found[2]);
        for (runs, failures, flaky) in found[0].values() {
            prop_assert!(flaky <= failures && failures <= runs);
        }
    }
}
