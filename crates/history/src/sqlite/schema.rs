//! The tables, and the version of their format.

use std::path::Path;

use rusqlite::{Connection, Row, TransactionBehavior};

use super::append::first;
use super::translate;
use crate::run::{ENDINGS, Ended};
use crate::store::StoreError;

/// The newest format that we know.
const VERSION: i64 = 4;

/// The number that tells our files from other SQLite databases: "unfl".
const APPLICATION: i64 = 0x756e_666c;

const TABLES: &str = "
-- What tests are called. A name that a framework itself gave is by_framework.
CREATE TABLE test(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, copy INTEGER NOT NULL, by_framework INTEGER NOT NULL,
    UNIQUE(name, copy, by_framework)
);
-- Branch and release together; what is not known is empty.
CREATE TABLE stream(
    id INTEGER PRIMARY KEY, branch TEXT NOT NULL, release TEXT NOT NULL, UNIQUE(branch, release)
);
-- Where runs come from.
CREATE TABLE provenance(
    id INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES stream(id), revision TEXT NOT NULL,
    environment TEXT NOT NULL, job TEXT NOT NULL, UNIQUE(stream, revision, environment, job)
);
-- What failures of the same kind have in common, and one of their messages.
CREATE TABLE signature(
    id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, example TEXT NOT NULL
);
CREATE TABLE outcome(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, is_pass INTEGER NOT NULL, is_failure INTEGER NOT NULL
);
-- What was added, by the digest of its bytes: nothing is added twice. Its runs are first..last. installed: the
-- digest of the language, the framework and the packages that they ran with, if it is known. Runs of our own have the
-- name of their project, the number of their VMs, and the seed of Python's hashes if it was fixed; their failures have
-- fingerprints.
CREATE TABLE import(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, source TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, installed BLOB, project TEXT, jobs INTEGER, hash_seed TEXT
);
-- time: milliseconds since 1970. duration: microseconds. attempt: 1 is the run itself, 2 and up are reruns
-- after it, 0 is an experiment that says nothing about how often the test fails.
CREATE TABLE run(
    id INTEGER PRIMARY KEY, test INTEGER NOT NULL, time INTEGER NOT NULL, outcome INTEGER NOT NULL,
    provenance INTEGER NOT NULL, attempt INTEGER NOT NULL, duration INTEGER
);
-- What is known of few runs only.
CREATE TABLE detail(
    run INTEGER PRIMARY KEY, rung TEXT, vm INTEGER, signature INTEGER, bug TEXT, verdict TEXT
);
-- What was said later about a test, or one of its runs.
CREATE TABLE label(
    id INTEGER PRIMARY KEY, time INTEGER NOT NULL, test INTEGER NOT NULL, run INTEGER, kind TEXT NOT NULL,
    value TEXT NOT NULL, author TEXT NOT NULL
);
-- Counts of runs first..last by test, day and stream, packed: made from the runs, and made again if lost.
CREATE TABLE block(first INTEGER PRIMARY KEY, last INTEGER NOT NULL, counts BLOB NOT NULL);
";

/// Which failures they are, and what ran before them: what version 2 had not.
const FAILURES: &str = "
-- Which failure it is: failures with the same text are the same.
CREATE TABLE fingerprint(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
-- Tests that had run in a VM, by their numbers with commas between them, after those of the past before it.
CREATE TABLE past(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, before INTEGER, tests TEXT NOT NULL
);
-- What is known of failures only. past: what had run before it in its VM.
CREATE TABLE failure(run INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL, past INTEGER);
";

/// What is known of folders, and not of runs: what version 3 had not.
const FOLDERS: &str = "
-- What runs left behind in a folder of a machine: files that last changed between two times, in nanoseconds since 1970; one
-- file if there is a path.
CREATE TABLE leftover(
    id INTEGER PRIMARY KEY, place TEXT NOT NULL, path TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL
);
-- The last run of a project in no repository in which all tests passed: its tests, and its files by their digests, as JSON.
CREATE TABLE passed(
    project TEXT NOT NULL, source TEXT NOT NULL, time INTEGER NOT NULL, installed BLOB NOT NULL, tests TEXT NOT NULL,
    files TEXT NOT NULL, PRIMARY KEY(project, source)
);
";

const VIEWS: &str = "
-- For people.
CREATE VIEW runs AS
SELECT run.id, test.name AS test, test.copy,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.time / 1000.0, 'unixepoch') AS time,
    outcome.name AS outcome, run.attempt, run.duration / 1e6 AS seconds, stream.branch, stream.release,
    provenance.revision, provenance.environment, provenance.job, detail.rung, detail.vm,
    signature.text AS signature, detail.bug, detail.verdict, import.source, fingerprint.text AS fingerprint
FROM run JOIN test ON test.id = run.test JOIN outcome ON outcome.id = run.outcome
JOIN provenance ON provenance.id = run.provenance JOIN stream ON stream.id = provenance.stream
JOIN import ON run.id BETWEEN import.first AND import.last
LEFT JOIN detail ON detail.run = run.id LEFT JOIN signature ON signature.id = detail.signature
LEFT JOIN failure ON failure.run = run.id LEFT JOIN fingerprint ON fingerprint.id = failure.fingerprint;
CREATE VIEW daily_counts AS
SELECT run.test AS test, run.time / 86400000 - (run.time % 86400000 < 0) AS day, provenance.stream AS stream,
    count(*) AS runs, sum(outcome.is_failure) AS failures,
    sum(outcome.is_failure AND detail.bug IS NOT NULL) AS with_bug
FROM run JOIN outcome ON outcome.id = run.outcome JOIN provenance ON provenance.id = run.provenance
LEFT JOIN detail ON detail.run = run.id
WHERE run.attempt = 1 AND (outcome.is_pass OR outcome.is_failure)
GROUP BY run.test, day, provenance.stream;
";

/// What version 2 has and version 1 had not.
const SINCE_1: &str = "ALTER TABLE import ADD COLUMN installed BLOB";

/// What version 3 has and version 2 had not, beside [`FAILURES`]. The views are made anew.
const SINCE_2: &str = "
ALTER TABLE import ADD COLUMN project TEXT;
ALTER TABLE import ADD COLUMN jobs INTEGER;
ALTER TABLE import ADD COLUMN hash_seed TEXT;
DROP VIEW IF EXISTS runs;
DROP VIEW IF EXISTS daily_counts;
";

/// In the place of [`FAILURES`] where an old history can only be read.
const NO_FAILURES: &str = "
CREATE TEMP TABLE fingerprint(id INTEGER PRIMARY KEY, text TEXT);
CREATE TEMP TABLE failure(run INTEGER PRIMARY KEY, fingerprint INTEGER, past INTEGER);
";

/// The same for [`FOLDERS`].
const NO_FOLDERS: &str = "
CREATE TEMP TABLE leftover(id INTEGER PRIMARY KEY, place TEXT, path TEXT, first INTEGER, last INTEGER);
CREATE TEMP TABLE passed(project TEXT, source TEXT, time INTEGER, installed BLOB, tests TEXT, files TEXT);
";

/// Makes the tables in a new file, and brings an old one to our version.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let trouble = |error| translate(path, error);
    match check(connection, path)? {
        Some(VERSION) => return tune(connection).map_err(trouble),
        Some(_) => return raise(connection, path),
        None => {}
    }
    // Larger pages suit rows that are only ever added.
    connection
        .pragma_update(None, "page_size", 8192)
        .map_err(trouble)?;
    tune(connection).map_err(trouble)?;
    // Two processes may be here at once: the second finds the tables made.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(trouble)?;
    if check(&transaction, path)?.is_none() {
        make_tables(&transaction).map_err(trouble)?;
    }
    transaction.commit().map_err(trouble)
}

/// Brings a history of an older version to ours.
fn raise(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let trouble = |error| translate(path, error);
    tune(connection).map_err(trouble)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(trouble)?;
    // Another process may have done it meanwhile.
    let version = check(&transaction, path)?;
    if version != Some(VERSION) {
        if version == Some(1) {
            transaction.execute_batch(SINCE_1).map_err(trouble)?;
        }
        if matches!(version, Some(1 | 2)) {
            for part in [SINCE_2, FAILURES, VIEWS] {
                transaction.execute_batch(part).map_err(trouble)?;
            }
        }
        transaction.execute_batch(FOLDERS).map_err(trouble)?;
        transaction
            .pragma_update(None, "user_version", VERSION)
            .map_err(trouble)?;
    }
    transaction.commit().map_err(trouble)
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    for part in [TABLES, FAILURES, FOLDERS, VIEWS] {
        connection.execute_batch(part)?;
    }
    for (number, word) in (0_i64..).zip(ENDINGS) {
        let ended = Ended::from_number(number).expect("the word has this number");
        let add = "INSERT INTO outcome VALUES (?1, ?2, ?3, ?4)";
        connection.execute(add, (number, word, ended.is_pass(), ended.is_failure()))?;
    }
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// The version of a history of ours; `None` if it is empty.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<Option<i64>, StoreError> {
    let trouble = |error| translate(path, error);
    // By one statement: between two of them another process may have made the tables.
    let state = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) \
                 FROM pragma_application_id, pragma_user_version";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (application, version, tables): (i64, i64, i64) =
        connection.query_row(state, [], read).map_err(trouble)?;
    if application == APPLICATION && version > VERSION {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            theirs: version,
            ours: VERSION,
        });
    }
    if application == APPLICATION {
        return Ok(Some(version));
    }
    if application != 0 || tables > 0 {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            source: "it is a database of another program".into(),
        });
    }
    Ok(None)
}

/// Makes an old history that can only be read look as if it had been brought to our version.
pub(super) fn prepare_to_read(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let trouble = |error| translate(path, error);
    match check(connection, path)? {
        Some(VERSION) | None => Ok(()),
        Some(version) => {
            if version < 3 {
                connection.execute_batch(NO_FAILURES).map_err(trouble)?;
            }
            connection.execute_batch(NO_FOLDERS).map_err(trouble)
        }
    }
}

fn tune(connection: &Connection) -> rusqlite::Result<()> {
    // A log can be taken outside a transaction only. A store that was left without it gets it here.
    first::take_log(connection)?;
    // An acknowledged source survives also a loss of power, and so does the end of a rollback journal.
    connection.pragma_update(None, "synchronous", "extra")?;
    // 64 MB of pages.
    connection.pragma_update(None, "cache_size", -65536)
}
