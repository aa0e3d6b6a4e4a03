//! The first runs of a store, when they are many: each page is written once.
//!
//! With a write-ahead log all of them would be written to the log, read again, and written to the file. A
//! rollback journal keeps what pages held before, and the pages of a new table held nothing. It keeps readers
//! out until the runs are there, so a store that somebody else has open stays with its log.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use crate::batch::Batch;
use crate::store::source::Source;

/// So many batches are awaited before a source counts as large.
const LARGE: usize = 32;

/// The first batches of a source, and whether it is large.
pub(in crate::sqlite) fn begin(source: &mut dyn Source) -> (Vec<Batch>, bool) {
    let batches: Vec<Batch> = std::iter::from_fn(|| source.next_batch())
        .take(LARGE)
        .collect();
    let is_large = batches.len() == LARGE;
    (batches, is_large)
}

/// Takes a rollback journal if the store has no runs and nobody else has it open, and says whether it did.
///
/// After a kill the store is found with that journal, and undoes what is unfinished as it would with its log.
pub(in crate::sqlite) fn leave_log(connection: &Connection) -> rusqlite::Result<bool> {
    let empty = "SELECT NOT EXISTS (SELECT 1 FROM run)";
    if !connection.query_row(empty, [], |row| row.get::<_, bool>(0))? {
        return Ok(false);
    }
    match connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())) {
        Ok(()) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the log, which lets readers go on while somebody writes.
///
/// SQLite does not wait for others here. Where several open a new store at once, one of them gives it its log;
/// a store that others use without one gets it from whoever opens it next.
pub(in crate::sqlite) fn take_log(connection: &Connection) -> rusqlite::Result<()> {
    match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        result => result,
    }
}

/// Whether a rollback journal lies beside the store: what it is to undo is in the pages still.
pub(in crate::sqlite) fn is_unfinished(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    fs::metadata(journal).is_ok_and(|journal| journal.len() > 0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::engine::Missing;
    use crate::run::{Ended, Provenance, Row, TestName};
    use crate::sqlite::Sqlite;
    use crate::store::Store;
    use crate::store::source::{Appended, Refused};

    const BATCHES: usize = LARGE + 8;
    const ROWS: usize = 1000;

    /// Many runs. After most of them it copies what is on the disk, as a kill would leave it.
    struct Many {
        left: usize,
        copy: Option<(PathBuf, PathBuf)>,
    }

    impl Source for Many {
        fn next_batch(&mut self) -> Option<Batch> {
            self.left = self.left.checked_sub(1)?;
            if let Some((from, to)) = self.copy.take_if(|_| self.left == 4) {
                for ending in ["", "-journal"] {
                    fs::copy(beside(&from, ending), beside(&to, ending)).unwrap();
                }
            }
            let is_fresh = self.left == BATCHES - 1;
            let test = TestName {
                name: "t".to_owned(),
                copy: 0,
                is_own: false,
            };
            let row = Row {
                test: 0,
                provenance: 0,
                time: 1_700_000_000_000,
                ended: Ended::PASSED,
                attempt: 1,
                duration: None,
                more: None,
            };
            Some(Batch {
                is_fresh,
                tests: is_fresh.then_some(test).into_iter().collect(),
                provenances: is_fresh.then(Provenance::default).into_iter().collect(),
                rows: vec![row; ROWS],
            })
        }

        fn digest(&mut self) -> Result<[u8; 32], Refused> {
            Ok([7; 32])
        }

        fn name(&self) -> String {
            "many".to_owned()
        }
    }

    fn many() -> Many {
        Many {
            left: BATCHES,
            copy: None,
        }
    }

    fn beside(path: &Path, ending: &str) -> PathBuf {
        PathBuf::from(format!("{}{ending}", path.display()))
    }

    fn make(path: &Path) -> Sqlite {
        let store = Sqlite::open(path, Missing::Make).unwrap();
        // So few pages are kept in memory that most are on the disk before the end.
        store
            .connection
            .pragma_update(None, "cache_size", 20)
            .unwrap();
        store
    }

    fn mode(store: &Sqlite) -> String {
        store
            .connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap()
    }

    fn count(store: &Sqlite) -> usize {
        store
            .connection
            .query_row("SELECT count(*) FROM run", [], |row| row.get(0))
            .unwrap()
    }

    fn added() -> Appended {
        Appended::Added {
            runs: (BATCHES * ROWS) as u64,
        }
    }

    #[test]
    fn a_kill_in_the_first_import_leaves_a_store_without_runs_that_takes_them_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let (path, killed) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let mut source = many();
        source.copy = Some((path.clone(), killed.clone()));
        let mut store = make(&path);
        assert_eq!(store.append(&mut source).unwrap(), added());
        assert_eq!(
            (mode(&store).as_str(), count(&store)),
            ("wal", BATCHES * ROWS)
        );
        assert!(!beside(&path, "-journal").exists());

        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(&killed) > size(&path) / 2, "most was on the disk");
        assert!(size(&beside(&killed, "-journal")) > 0);
        let mut store = Sqlite::open(&killed, Missing::Refuse).unwrap();
        assert_eq!((mode(&store).as_str(), count(&store)), ("wal", 0));
        let check = "PRAGMA integrity_check";
        let check: String = store
            .connection
            .query_row(check, [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        assert_eq!(store.append(&mut many()).unwrap(), added());
        assert_eq!(count(&store), BATCHES * ROWS);
    }

    #[test]
    fn a_store_that_somebody_has_open_or_that_has_runs_keeps_its_log() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        let mut store = make(&path);
        let reader = Sqlite::open(&path, Missing::Refuse).unwrap();
        assert!(!leave_log(&store.connection).unwrap());
        assert_eq!(store.append(&mut many()).unwrap(), added());
        assert_eq!(count(&reader), BATCHES * ROWS);
        drop(reader);
        assert!(!leave_log(&store.connection).unwrap());
        assert_eq!(mode(&store), "wal");
    }

    #[test]
    fn what_a_kill_left_unfinished_is_not_read_where_it_cannot_be_undone() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        drop(make(&path));
        Sqlite::connect_to_read(&path).unwrap();
        fs::write(beside(&path, "-journal"), "pages").unwrap();
        Sqlite::connect_to_read(&path).unwrap_err();
    }
}
