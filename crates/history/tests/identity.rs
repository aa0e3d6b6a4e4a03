//! A report counts once, also in a store that an older unflake wrote.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use unflake_history::engine::{self, Missing};
use unflake_history::import::{Columns, Format, Input, Wish, digest_of_report, import};
use unflake_history::run::Provenance;
use unflake_history::store::Store;
use unflake_history::store::source::Appended;

/// A store as it was written when digests were made of Rust's debug output.
const OLD: &str = include_str!("stores/version_4.sql");

/// A report that is in the old store.
struct Report {
    name: &'static str,
    text: &'static str,
    provenance: [&'static str; 5],
    columns: &'static [&'static str],
    format: Option<Format>,
}

/// All that are in it.
const REPORTS: [Report; 3] = [
    Report {
        name: "night.xml",
        text: "<testsuite timestamp='2026-11-17T02:00:00Z'>\
               <testcase classname='shop.Cart' name='total' time='0.2'/>\
               <testcase classname='shop.Cart' name='empty'><failure message='assert 3 == 4'/></testcase>\
               </testsuite>",
        provenance: ["4f1c", "main", "", "linux", "night"],
        columns: &[],
        format: None,
    },
    Report {
        name: "runs.csv",
        text: "test,when,verdict,TR id\nshop.Cart.total,2026-11-17T03:00:00Z,failed,TR7\n\
               shop.Mail.sent,2026-11-17T03:00:01Z,passed,\n",
        provenance: ["", "release \"5\"", "R5", "", ""],
        columns: &["bug=TR id", "time=when"],
        format: Some(Format::Csv),
    },
    Report {
        name: "runs.jsonl",
        text: "{\"test\": \"shop.Mail.sent\", \"time\": \"2026-11-18T03:00:00Z\", \"outcome\": \"passed\"}\n",
        provenance: [""; 5],
        columns: &[],
        format: None,
    },
];

impl Report {
    fn wish(&self) -> Wish {
        let [revision, branch, release, environment, job] = self.provenance.map(ToOwned::to_owned);
        let mut columns = Columns::default();
        for column in self.columns {
            columns.name(column).unwrap();
        }
        Wish {
            provenance: Provenance {
                revision,
                branch,
                release,
                environment,
                job,
            },
            columns,
            format: self.format,
            now: 1_800_000_000_000,
        }
    }

    fn take(&self, store: &mut dyn Store, wish: &Wish) -> Appended {
        let input = Input {
            name: self.name.to_owned(),
            written: None,
            bytes: Box::new(self.text.as_bytes()),
        };
        import(store, input, wish).unwrap().result.unwrap()
    }
}

fn old_store(path: &Path) -> Box<dyn Store> {
    let old = Connection::open(path).unwrap();
    old.execute_batch(OLD).unwrap();
    drop(old);
    engine::open(path, Missing::Refuse).unwrap()
}

#[test]
fn a_report_in_a_store_of_an_older_unflake_is_known() {
    let folder = TempDir::new().unwrap();
    let mut store = old_store(&folder.path().join("history.db"));
    for report in &REPORTS {
        let digest = digest_of_report(report.text.as_bytes(), &report.wish());
        assert!(store.has_import(&digest).unwrap(), "{}", report.name);
        let appended = report.take(&mut *store, &report.wish());
        assert_eq!(appended, Appended::Known, "{}", report.name);
    }
    assert_eq!(store.extent().unwrap().run, 5);
}

#[test]
fn the_same_bytes_of_which_something_else_is_said_are_another_report() {
    let folder = TempDir::new().unwrap();
    let mut store = old_store(&folder.path().join("history.db"));
    let [report, ..] = &REPORTS;
    let mut wish = report.wish();
    wish.provenance.job = "day".to_owned();
    let added = Appended::Added { runs: 2 };
    assert_eq!(report.take(&mut *store, &wish), added);
    wish.format = Some(Format::Junit);
    assert_eq!(report.take(&mut *store, &wish), added);
    assert_eq!(report.take(&mut *store, &wish), Appended::Known);
}
