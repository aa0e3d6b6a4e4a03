//! What runs of clean trees say about a failure: how often the test failed so before the change.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::rows::{each, read};
use crate::store::evidence::{Evidence, Question};

/// First runs of a test in one environment, by revision, of trees without other changes. Failures of imports without a
/// project have no fingerprints, and their passes alone would say too much.
const RUNS: &str = "SELECT provenance.revision, run.time, fingerprint.text FROM import \
                    CROSS JOIN run ON run.id BETWEEN import.first AND import.last \
                    JOIN provenance ON provenance.id = run.provenance \
                    LEFT JOIN failure ON failure.run = run.id \
                    LEFT JOIN fingerprint ON fingerprint.id = failure.fingerprint \
                    WHERE import.source = ?1 AND import.installed = ?2 AND import.project IS NOT NULL \
                    AND run.test = ?3 AND run.time < ?4 AND run.attempt = 1 \
                    AND run.outcome IN (0, 1, 2, 5, 7, 8) \
                    AND provenance.revision <> '' AND provenance.revision NOT LIKE '%+'";

/// How a test fared in the suite's own runs at the revisions that `is_wanted`, without other changes, in the same
/// folder, with the same installed. `None` if there is no such run.
pub(super) fn evidence(
    connection: &Connection,
    question: &Question<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> rusqlite::Result<Option<Evidence>> {
    let mut wanted: HashMap<String, bool> = HashMap::new();
    let mut found = Evidence {
        runs: 0,
        failures: 0,
        last: 0,
    };
    let mut last_run = i64::MIN;
    let mut last_failure = None;
    for (name, asked) in question.names {
        let number = "SELECT id FROM test WHERE name = ?1 AND copy = ?2 AND by_framework";
        let numbers: Vec<i64> = read(connection, number, (&name.name, name.copy), |row| {
            row.get(0)
        })?;
        for number in numbers {
            let Question {
                source,
                installed,
                before,
                ..
            } = question;
            each(
                connection,
                RUNS,
                params![source, installed, number, before],
                |row| {
                    let revision: String = row.get(0)?;
                    let is_wanted = wanted
                        .entry(revision)
                        .or_insert_with_key(|revision| is_wanted(revision));
                    if !*is_wanted {
                        return Ok(());
                    }
                    let time: i64 = row.get(1)?;
                    found.runs += 1;
                    last_run = last_run.max(time);
                    let fingerprint: Option<String> = row.get(2)?;
                    if fingerprint.as_deref() == Some(asked) {
                        found.failures += 1;
                        last_failure = last_failure.max(Some(time));
                    }
                    Ok(())
                },
            )?;
        }
    }
    found.last = last_failure.unwrap_or(last_run);
    Ok((found.runs > 0).then_some(found))
}

/// When a suite was first run at a revision, without other changes, in the same folder and before a time.
pub(super) fn first_tested(
    connection: &Connection,
    source: &str,
    revision: &str,
    before: i64,
) -> rusqlite::Result<Option<i64>> {
    let first = "SELECT min(run.time) FROM import \
                CROSS JOIN run ON run.id BETWEEN import.first AND import.last \
                JOIN provenance ON provenance.id = run.provenance \
                WHERE import.source = ?1 AND provenance.revision = ?2 AND run.time < ?3 \
                AND run.attempt = 1 AND run.outcome IN (0, 1, 2, 5, 7, 8)";
    let found = read(
        connection,
        first,
        params![source, revision, before],
        |row| row.get(0),
    )?;
    Ok(found.into_iter().next().flatten())
}
