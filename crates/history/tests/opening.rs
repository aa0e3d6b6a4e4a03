//! A history that is opened: one that is not there, of another version, of somebody else, or damaged.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use unflake_history::sqlite::{Missing, Sqlite};
use unflake_history::store::{Store, StoreError, digest_of};

#[test]
fn a_store_that_is_missing_newer_foreign_or_damaged_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    let open = |path: &Path| Sqlite::open(path, Missing::Refuse).unwrap_err();
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
    drop(Sqlite::open(&path, Missing::Make).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 9).unwrap();
    drop(newer);
    assert!(matches!(open(&path), StoreError::Newer { theirs: 9, .. }));
}

#[test]
fn a_store_of_the_first_version_is_brought_to_this_one_with_all_that_it_has() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.db");
    drop(Sqlite::open(&path, Missing::Make).unwrap());
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "ALTER TABLE import DROP COLUMN installed; PRAGMA user_version = 1; \
         INSERT INTO import(digest, source, first, last) VALUES (x'01', 'unflake', 1, 1); \
         INSERT INTO test VALUES (1, 'test_a', 0, 1); INSERT INTO stream VALUES (1, 'main', ''); \
         INSERT INTO provenance VALUES (1, 1, 'abc', '', ''); \
         INSERT INTO run VALUES (1, 1, 5, 0, 1, 1, NULL);",
    )
    .unwrap();
    drop(old);
    let store = Sqlite::open(&path, Missing::Refuse).unwrap();
    assert_eq!(store.tests().unwrap().len(), 1);
    // Nobody knows what was installed then.
    let passes = store.passes_at("unflake", "abc", &digest_of(b"")).unwrap();
    assert_eq!(passes, []);
    drop(store);
    let now = Connection::open(&path).unwrap();
    let version: i64 = now
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 2);
}

#[test]
fn a_folder_of_ours_is_kept_out_of_repositories() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(".unflake/history.db");
    drop(Sqlite::open(&path, Missing::Make).unwrap());
    let ignored = fs::read_to_string(folder.path().join(".unflake/.gitignore")).unwrap();
    assert!(ignored.ends_with("\n*\n"));
}
