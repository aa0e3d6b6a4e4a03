//! A history that is opened: one that is not there, of another version, of somebody else, or damaged.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use unflake_history::engine::{self, Missing};
use unflake_history::run::TestName;
use unflake_history::store::evidence::Question;
use unflake_history::store::folder::Left;
use unflake_history::store::folder::{PassedFile, PassedRun};
use unflake_history::store::{StoreError, digest_of};

#[test]
fn a_store_that_is_missing_newer_foreign_or_damaged_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    let open = |path: &Path| engine::open(path, Missing::Refuse).unwrap_err();
    assert!(matches!(open(&path), StoreError::Missing { .. }));
    fs::write(
        &path,
        "no database, but long enough to be looked at".repeat(50),
    )
    .unwrap();
    assert!(matches!(open(&path), StoreError::Damaged { .. }));
    fs::remove_file(&path).unwrap();
    let foreign = Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE mine(x)").unwrap();
    drop(foreign);
    assert!(matches!(open(&path), StoreError::Damaged { .. }));
    fs::remove_file(&path).unwrap();
    drop(engine::open(&path, Missing::Make).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 9).unwrap();
    drop(newer);
    assert!(matches!(open(&path), StoreError::Newer { theirs: 9, .. }));
}

#[test]
fn a_store_of_the_first_version_is_brought_to_this_one_with_all_that_it_has() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    drop(engine::open(&path, Missing::Make).unwrap());
    let old = Connection::open(&path).unwrap();
    to_version_2(&old);
    old.execute_batch(
        "ALTER TABLE import DROP COLUMN installed; PRAGMA user_version = 1; \
         INSERT INTO import(digest, source, first, last) VALUES (x'01', 'unflake', 1, 1); \
         INSERT INTO test VALUES (1, 'test_a', 0, 1); INSERT INTO stream VALUES (1, 'main', ''); \
         INSERT INTO provenance VALUES (1, 1, 'abc', '', ''); \
         INSERT INTO run VALUES (1, 1, 5, 0, 1, 1, NULL);",
    )
    .unwrap();
    drop(old);
    let store = engine::open(&path, Missing::Refuse).unwrap();
    assert_eq!(store.tests().unwrap().len(), 1);
    // Nobody knows what was installed then.
    let question = Question {
        source: "unflake",
        installed: &digest_of(b""),
        names: &[(kept_name(), String::new())],
        before: 100,
    };
    assert_eq!(store.evidence(&question, &|_| true).unwrap(), None);
    drop(store);
    assert_eq!(version(&path), 4);
}

/// Takes away what version 4 has and version 3 had not.
fn to_version_3(store: &Connection) {
    store
        .execute_batch("DROP TABLE leftover; DROP TABLE passed; PRAGMA user_version = 3;")
        .unwrap();
}

/// Takes away what later versions have and version 2 had not.
fn to_version_2(store: &Connection) {
    to_version_3(store);
    store
        .execute_batch(
            "DROP VIEW runs; DROP TABLE failure; DROP TABLE past; DROP TABLE fingerprint; \
             ALTER TABLE import DROP COLUMN project; ALTER TABLE import DROP COLUMN jobs; \
             ALTER TABLE import DROP COLUMN hash_seed; PRAGMA user_version = 2; \
             CREATE VIEW runs AS SELECT 1 AS id;",
        )
        .unwrap();
}

fn version(path: &Path) -> i64 {
    let store = Connection::open(path).unwrap();
    store
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// A store of version 2 with a failure in it.
fn old_store(path: &Path) {
    drop(engine::open(path, Missing::Make).unwrap());
    let old = Connection::open(path).unwrap();
    to_version_2(&old);
    old.execute_batch(
        "INSERT INTO import(digest, source, first, last) VALUES (x'01', 'unflake', 1, 1); \
         INSERT INTO test VALUES (1, 'test_a', 0, 1); INSERT INTO stream VALUES (1, 'main', ''); \
         INSERT INTO provenance VALUES (1, 1, 'abc', '', ''); \
         INSERT INTO signature VALUES (1, 'assert # == #', 'assert 3 == 4'); \
         INSERT INTO run VALUES (1, 1, 5, 1, 1, 1, NULL); \
         INSERT INTO detail VALUES (1, 'suite', 0, 1, NULL, 'flaky');",
    )
    .unwrap();
    let installed = "UPDATE import SET installed = ?1";
    old.execute(installed, [digest_of(b"")]).unwrap();
}

#[test]
fn a_store_of_the_second_version_is_brought_to_this_one_and_its_failures_stay_as_they_were() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    old_store(&path);
    let store = engine::open(&path, Missing::Refuse).unwrap();
    let kept = store.runs_of(&[1], i64::MIN, i64::MAX).unwrap();
    assert_eq!(kept[0].signature.as_deref(), Some("assert # == #"));
    assert_eq!(kept[0].fingerprint, None);
    assert_eq!(store.past_of(1).unwrap(), None);
    // Nobody knows which failure it was: it is no evidence.
    let question = Question {
        source: "unflake",
        installed: &digest_of(b""),
        names: &[(
            kept_name(),
            "1|failed|AssertionError||assert # == #".to_owned(),
        )],
        before: 100,
    };
    assert_eq!(store.evidence(&question, &|_| true).unwrap(), None);
    assert!(store.first_tested("unflake", "abc", 100).unwrap().is_some());
    drop(store);
    assert_eq!(version(&path), 4);
    let view = Connection::open(&path).unwrap();
    let words: (String, Option<String>) = view
        .query_row("SELECT signature, fingerprint FROM runs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(words, ("assert # == #".to_owned(), None));
}

#[test]
fn a_store_of_the_third_version_is_brought_to_this_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    drop(engine::open(&path, Missing::Make).unwrap());
    let old = Connection::open(&path).unwrap();
    to_version_3(&old);
    old.execute("INSERT INTO test VALUES (1, 'test_a', 0, 1)", [])
        .unwrap();
    drop(old);
    let mut store = engine::open(&path, Missing::Refuse).unwrap();
    assert_eq!(store.tests().unwrap().len(), 1);
    assert_eq!(store.leftovers("here").unwrap(), []);
    let left = Left {
        path: Some("report.xml".to_owned()),
        first: 5,
        last: 5,
    };
    store
        .add_leftovers("here", std::slice::from_ref(&left))
        .unwrap();
    assert_eq!(store.leftovers("here").unwrap(), [left]);
    assert_eq!(store.leftovers("there").unwrap(), []);
    assert_eq!(store.passed("shop", "unflake").unwrap(), None);
    for time in [5, 6] {
        let file = PassedFile {
            path: "shop.py".to_owned(),
            digest: digest_of(b""),
            size: 0,
            changed: 7,
        };
        let run = PassedRun {
            time,
            installed: digest_of(b"here"),
            tests: vec![("test_a".to_owned(), 0, true)],
            files: vec![file],
        };
        store.keep_passed("shop", "unflake", &run).unwrap();
        assert_eq!(store.passed("shop", "unflake").unwrap(), Some(run));
    }
    drop(store);
    assert_eq!(version(&path), 4);
}

fn kept_name() -> TestName {
    TestName {
        name: "test_a".to_owned(),
        copy: 0,
        is_own: true,
    }
}

#[test]
fn a_folder_of_ours_is_kept_out_of_repositories() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(".unflake/history.db");
    drop(engine::open(&path, Missing::Make).unwrap());
    let ignored = fs::read_to_string(folder.path().join(".unflake/.gitignore")).unwrap();
    assert!(ignored.ends_with("\n*\n"));
}
