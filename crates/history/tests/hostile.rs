//! Files and stores that are broken, strange or hostile: a clear answer, and nothing lost.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;

use tempfile::TempDir;
use unflake_history::daily::FlakyRule;
use unflake_history::engine::{self, Missing};
use unflake_history::import::{FileReport, Input, Wish, import};
use unflake_history::store::source::Appended;
use unflake_history::store::{Store, StoreError};

/// 2 February 2025, noon.
const NOW: i64 = 1_738_497_600_000;

fn open(folder: &TempDir) -> Box<dyn Store> {
    engine::open(&folder.path().join("history.db"), Missing::Make).unwrap()
}

fn take(store: &mut dyn Store, name: &str, bytes: impl Read + Send + 'static) -> FileReport {
    let input = Input {
        name: name.to_owned(),
        written: Some(NOW - 1000),
        bytes: Box::new(bytes),
    };
    let wish = Wish {
        now: NOW,
        ..Wish::default()
    };
    import(store, input, &wish).unwrap()
}

fn reasons(report: &FileReport) -> Vec<(&'static str, u64)> {
    let all = report.skips.iter();
    all.map(|(skip, count, _)| (skip.reason(), count)).collect()
}

#[test]
fn a_reports_times_may_be_missing_and_those_that_cannot_be_are_left_out() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let xml = "<testsuites><testsuite><testcase classname='c' name='missing'/></testsuite>\
        <testsuite timestamp='2125-01-01T00:00:00'><testcase classname='c' name='future'/></testsuite>\
        <testsuite timestamp='teatime'><testcase classname='c' name='none'/></testsuite>\
        <testsuite timestamp='2025-01-01T00:00:00'><testcase classname='c' name='nan' time='NaN'/></testsuite></testsuites>";
    let report = take(&mut *store, "r.xml", Cursor::new(xml));
    assert_eq!(
        *report.result.as_ref().unwrap(),
        Appended::Added { runs: 2 }
    );
    let expected = [
        ("a time that cannot be read", 1),
        ("a time in the future", 1),
    ];
    assert_eq!(reasons(&report), expected);
    let kept = store.runs_of(&[1, 2], i64::MIN, i64::MAX).unwrap();
    let times: Vec<(i64, Option<i64>)> = kept.iter().map(|run| (run.time, run.duration)).collect();
    assert_eq!(times, [(1_735_689_600_000, None), (NOW - 1000, None)]);
}

#[test]
fn durations_that_are_no_numbers_are_unknown_and_the_runs_are_kept() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let mut table = "test,time,verdict,duration\n".to_owned();
    for duration in ["1.5", "NaN", "inf", "-1", "1e300", "soon"] {
        writeln!(table, "t,2025-01-01,ok,{duration}").unwrap();
    }
    writeln!(table, "t,2125-01-01,ok,1").unwrap();
    let report = take(&mut *store, "t.csv", Cursor::new(table));
    assert_eq!(reasons(&report), [("a time in the future", 1)]);
    let lines = "{\"test\": \"t\", \"time\": \"2025-01-02\", \"verdict\": \"ok\", \"duration\": \"NaN\"}\n\
                 {\"test\": \"t\", \"time\": \"2125-01-02\", \"verdict\": \"ok\"}\n";
    let report = take(&mut *store, "t.ndjson", Cursor::new(lines));
    assert_eq!(reasons(&report), [("a time in the future", 1)]);
    let kept = store.runs_of(&[1], i64::MIN, i64::MAX).unwrap();
    let durations: Vec<Option<i64>> = kept.iter().map(|run| run.duration).collect();
    let unknown = [None; 6];
    assert_eq!(durations[0], Some(1_500_000));
    assert_eq!(durations[1..], unknown);
}

#[test]
fn a_bomb_of_entities_is_text_that_is_cut_and_loses_no_run() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    // A billion laughs: each entity is ten of the one before.
    let mut bomb = "<!DOCTYPE a [<!ENTITY e0 'lol'>".to_owned();
    for at in 1..10 {
        let ten = format!("&e{};", at - 1).repeat(10);
        write!(bomb, "<!ENTITY e{at} '{ten}'>").unwrap();
    }
    let xml = format!(
        "{bomb}]><testsuite timestamp='2025-01-01T00:00:00'><testcase name='a'><failure message='&e9;'>&e9;\
         </failure></testcase><testcase name='b'/></testsuite>"
    );
    let report = take(&mut *store, "r.xml", Cursor::new(xml));
    assert_eq!(
        *report.result.as_ref().unwrap(),
        Appended::Added { runs: 2 }
    );
    let kept = store.runs_of(&[1], i64::MIN, i64::MAX).unwrap();
    let example = kept[0].example.as_deref().unwrap();
    assert!(
        example.contains("&e9;") && !example.contains("lol"),
        "{example}"
    );
}

#[test]
fn names_of_ten_kilobytes_and_with_control_characters_are_kept_as_they_are() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let long = "x".repeat(10_000);
    let xml = format!(
        "<testsuite timestamp='2025-01-01T00:00:00'><testcase name='{long}'/><testcase name='a&#27;[2J&#10;b'/></testsuite>"
    );
    take(&mut *store, "r.xml", Cursor::new(xml));
    let line = "{\"test\": \"bell\\u0007\", \"time\": \"2025-01-01\", \"verdict\": \"ok\"}\n";
    take(&mut *store, "r.ndjson", Cursor::new(line));
    let names: Vec<String> = store
        .tests()
        .unwrap()
        .into_iter()
        .map(|(_, test)| test.name)
        .collect();
    assert_eq!(names, [long.as_str(), "a\u{1b}[2J\nb", "bell\u{7}"]);
}

#[test]
fn a_table_in_another_code_loses_the_lines_that_cannot_be_read_and_no_others() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let latin = b"test,time,verdict\ncaf\xe9,2025-01-01,ok\nplain,2025-01-01,ok\n";
    let report = take(&mut *store, "t.csv", Cursor::new(latin.to_vec()));
    assert_eq!(
        *report.result.as_ref().unwrap(),
        Appended::Added { runs: 1 }
    );
    assert_eq!(reasons(&report), [("not UTF-8", 1)]);
}

#[test]
fn lines_without_an_end_are_passed_over() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    for (name, head, last) in [
        ("t.csv", "test,time,verdict\n", "a,2025-01-01,ok\n"),
        (
            "t.ndjson",
            "",
            "{\"test\": \"a\", \"time\": \"2025-01-02\", \"verdict\": \"ok\"}\n",
        ),
    ] {
        let endless = io::repeat(b'x').take(20 * 1024 * 1024);
        let bytes = Cursor::new(head)
            .chain(endless)
            .chain(Cursor::new("\n"))
            .chain(Cursor::new(last));
        let report = take(&mut *store, name, bytes);
        assert_eq!(
            *report.result.as_ref().unwrap(),
            Appended::Added { runs: 1 },
            "{name}"
        );
        assert_eq!(
            reasons(&report),
            [("longer than 1 MB, or a quote that is not closed", 1)]
        );
    }
}

#[test]
fn a_file_that_stops_coming_adds_nothing() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let mut table = "test,time,verdict\n".to_owned();
    for at in 0..50_000 {
        writeln!(table, "t{at},2025-01-01,ok").unwrap();
    }
    let report = take(&mut *store, "t.csv", Cursor::new(table).chain(Broken));
    let error = report.result.unwrap_err().to_string();
    assert!(error.contains("the disk is gone"), "{error}");
    assert!(store.tests().unwrap().is_empty());
}

#[test]
fn a_store_whose_pages_are_damaged_is_named_and_nothing_is_made_up() {
    let folder = TempDir::new().unwrap();
    let mut store = open(&folder);
    let mut table = "test,time,verdict\n".to_owned();
    for at in 0..60_000 {
        writeln!(table, "t{},2025-01-01,ok", at % 500).unwrap();
    }
    take(&mut *store, "t.csv", Cursor::new(table));
    let path = PathBuf::from(store.place());
    drop(store);
    let whole = fs::read(&path).unwrap();
    // Everything after the page that says what the file is; then each eighth of the file by itself.
    let eighth = whole.len() / 8;
    let mut spans: Vec<_> = (0..8).map(|at| at * eighth..(at + 1) * eighth).collect();
    spans[0] = 8192..whole.len();
    for (at, span) in spans.into_iter().enumerate() {
        let mut damaged = whole.clone();
        damaged[span].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let mut runs = 0;
        let read = engine::open(&path, Missing::Refuse).and_then(|store| {
            store.tests()?;
            store.visit_daily(FlakyRule::Bug, &mut |count| runs += u64::from(count.runs))
        });
        match read {
            Ok(()) => assert!(at > 0 && runs == 60_000, "span {at}: {runs}"),
            Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}"),
        }
        assert_eq!(
            fs::read(&path).unwrap(),
            damaged,
            "a damaged store is not touched"
        );
    }
}
