//! The history in one SQLite file: no set-up, safe under several processes, open to tools that people know.
//!
//! Write-ahead logging lets readers go on while one process writes; a source is added in one transaction,
//! which is on the disk when it is acknowledged. Counts are kept in blocks beside the runs (`blocks`).

mod append;
mod blocks;
mod board;
mod evidence;
mod labelled;
mod leftovers;
mod passed;
mod past;
mod revision;
mod rows;
mod runs;
mod schema;
mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::engine::Missing;
use crate::store::StoreError;

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A history in a file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    /// Opens the history at `path`, also where it can only be read.
    pub(crate) fn open(path: &Path, missing: Missing) -> Result<Self, StoreError> {
        if !path.exists() {
            if missing == Missing::Refuse {
                let path = path.to_owned();
                return Err(StoreError::Missing { path });
            }
            make_folder(path).map_err(|source| StoreError::Open {
                path: path.to_owned(),
                source: source.into(),
            })?;
        }
        Self::connect(path).or_else(|error| {
            let is_closed = matches!(error, StoreError::Write { .. } | StoreError::Open { .. });
            // On a disk that cannot be written to there is still something to be read.
            let read_only = is_closed.then(|| Self::connect_to_read(path));
            read_only.and_then(Result::ok).ok_or(error)
        })
    }

    fn connect(path: &Path) -> Result<Self, StoreError> {
        let trouble = |error| translate(path, error);
        let mut connection = Connection::open(path).map_err(trouble)?;
        connection.busy_timeout(PATIENCE).map_err(trouble)?;
        schema::prepare(&mut connection, path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    fn connect_to_read(path: &Path) -> Result<Self, StoreError> {
        let trouble = |error| translate(path, error);
        if append::first::is_unfinished(path) {
            return Err(StoreError::Open {
                path: path.to_owned(),
                source:
                    "an import was killed, and what it left can be undone only where one can write"
                        .into(),
            });
        }
        // Without a log beside it, and with nobody able to write, the file does not change.
        let name = format!("file:{}?immutable=1", escape(path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(name, flags).map_err(trouble)?;
        schema::prepare_to_read(&connection, path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }
}

/// A path in a URI.
fn escape(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23")
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Ok(());
    };
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    if folder.file_name().is_some_and(|name| name == ".unflake") {
        let text = "# Made by unflake: a history belongs to nobody's repository.\n*\n";
        fs::write(folder.join(".gitignore"), text)?;
    }
    Ok(())
}

/// What the database says, in our words.
fn translate(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
            StoreError::Write {
                path,
                source: error.into(),
            }
        }
        // A table that is not there, a value of another type: somebody else's database.
        None
        | Some(
            ErrorCode::NotADatabase
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::Unknown
            | ErrorCode::TypeMismatch,
        ) => StoreError::Damaged {
            path,
            source: error.into(),
        },
        Some(_) => StoreError::Open {
            path,
            source: error.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_store_that_cannot_be_written_to_can_be_read() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a?b#c%d.db");
        drop(Sqlite::open(&path, Missing::Make).unwrap());
        let mut store = Sqlite::connect_to_read(&path).unwrap();
        assert!(store.tests().unwrap().is_empty());
        let label = crate::run::Label {
            time: 0,
            test: crate::run::TestName {
                name: "t".to_owned(),
                copy: 0,
                is_own: true,
            },
            run: None,
            kind: "bug".to_owned(),
            value: String::new(),
            author: String::new(),
        };
        let error = store.append_labels(&[label]).unwrap_err();
        assert!(matches!(error, StoreError::Write { .. }), "{error:?}");
    }

    #[test]
    fn an_old_store_that_cannot_be_written_to_can_be_read() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("history.db");
        drop(Sqlite::open(&path, Missing::Make).unwrap());
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "DROP VIEW runs; DROP TABLE leftover; DROP TABLE passed; DROP TABLE failure; DROP TABLE past; DROP TABLE fingerprint; \
             PRAGMA user_version = 2; INSERT INTO test VALUES (1, 'test_a', 0, 1); \
             INSERT INTO stream VALUES (1, 'main', ''); \
             INSERT INTO provenance VALUES (1, 1, 'abc', '', ''); \
             INSERT INTO run VALUES (1, 1, 5, 1, 1, 1, NULL); PRAGMA journal_mode = delete;",
        )
        .unwrap();
        drop(old);
        let store = Sqlite::connect_to_read(&path).unwrap();
        let runs = store.runs_of(&[1], i64::MIN, i64::MAX).unwrap();
        assert_eq!((runs.len(), runs[0].fingerprint.as_deref()), (1, None));
        assert_eq!(store.leftovers("here").unwrap(), []);
        assert_eq!(store.passed("shop", "unflake").unwrap(), None);
    }
}
