//! Runs, their counts, and what belongs to them.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::labelled::Labelled;
use super::rows::{JOINED, KEPT, each, read, to_kept, to_test};
use super::{blocks, revision};
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Ended, TestName};
use crate::store::kept::{KeptRun, Stream};

pub(super) fn tests(connection: &Connection) -> rusqlite::Result<Vec<(u32, TestName)>> {
    let all = "SELECT id, name, copy, by_framework FROM test ORDER BY id";
    read(connection, all, [], |row| {
        Ok((row.get(0)?, to_test(row, 1)?))
    })
}

pub(super) fn streams(connection: &Connection) -> rusqlite::Result<Vec<Stream>> {
    let all = "SELECT id, branch, release FROM stream ORDER BY id";
    read(connection, all, [], |row| {
        Ok(Stream {
            number: row.get(0)?,
            branch: row.get(1)?,
            release: row.get(2)?,
        })
    })
}

pub(super) fn visit_daily(
    connection: &Connection,
    rule: FlakyRule,
    visit: &mut dyn FnMut(DailyCount),
) -> rusqlite::Result<()> {
    if rule == FlakyRule::Revision {
        return revision::visit(connection, visit);
    }
    // Blocks, the runs after them and the labels are read as of the same moment.
    let moment = connection.unchecked_transaction()?;
    let mut labelled = Labelled::read(&moment, rule)?;
    let mut to_count = |key: blocks::Key, tally: crate::daily::Tally| DailyCount {
        test: key.test,
        day: key.day,
        stream: key.stream,
        runs: tally.runs,
        failures: tally.failures,
        flaky: labelled.take_from(key, tally.flaky(rule)),
    };
    blocks::visit(&moment, |key, tally| visit(to_count(key, tally)))
}

pub(super) fn runs_of(
    connection: &Connection,
    tests: &[u32],
    from: i64,
    to: i64,
) -> rusqlite::Result<Vec<KeptRun>> {
    let mut runs = Vec::new();
    for test in tests {
        let all = format!(
            "SELECT {KEPT} FROM run {JOINED} \
             WHERE run.test = ?1 AND run.time BETWEEN ?2 AND ?3 ORDER BY run.time, run.id"
        );
        runs.extend(read(connection, &all, (test, from, to), to_kept)?);
    }
    runs.sort_by_key(|run| (run.time, run.number));
    Ok(runs)
}

pub(super) fn visit_runs(
    connection: &Connection,
    streams: &[u32],
    from: i64,
    to: i64,
    visit: &mut dyn FnMut(i64, u32, bool),
) -> rusqlite::Result<()> {
    let of: Vec<(u32, u32)> = read(connection, "SELECT id, stream FROM provenance", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let wanted = of.iter().filter(|(_, stream)| streams.contains(stream));
    let wanted: HashSet<u32> = wanted.map(|(provenance, _)| *provenance).collect();
    let all = "SELECT time, test, outcome, provenance FROM run WHERE attempt = 1 AND time BETWEEN ?1 AND ?2";
    each(connection, all, (from, to), |row| {
        let ended = Ended::from_number(row.get(2)?).filter(|ended| ended.counts());
        if let Some(ended) = ended
            && wanted.contains(&row.get(3)?)
        {
            visit(row.get(0)?, row.get(1)?, ended.is_failure());
        }
        Ok(())
    })
}

pub(super) fn revisions(
    connection: &Connection,
    streams: &[u32],
    from: i64,
    to: i64,
) -> rusqlite::Result<Vec<(String, i64)>> {
    let known = "SELECT id, revision, stream FROM provenance WHERE revision <> ''";
    let known: Vec<(u32, String, u32)> = read(connection, known, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let of: HashMap<u32, String> = known
        .into_iter()
        .filter(|(_, _, stream)| streams.contains(stream))
        .map(|(provenance, revision, _)| (provenance, revision))
        .collect();
    if of.is_empty() {
        return Ok(Vec::new());
    }
    // A revision begins with its first run ever, which may be before the range.
    let all = "SELECT provenance, min(time) FROM run WHERE time <= ?1 GROUP BY provenance";
    let mut first: HashMap<&str, i64> = HashMap::new();
    each(connection, all, [to], |row| {
        if let Some(revision) = of.get(&row.get(0)?) {
            let time: i64 = row.get(1)?;
            let known = first.entry(revision).or_insert(time);
            *known = time.min(*known);
        }
        Ok(())
    })?;
    let mut found: Vec<(String, i64)> = first
        .into_iter()
        .filter(|(_, time)| *time >= from)
        .map(|(revision, time)| (revision.to_owned(), time))
        .collect();
    found.sort_by(|one, other| one.1.cmp(&other.1).then_with(|| one.0.cmp(&other.0)));
    Ok(found)
}

pub(super) fn durations(connection: &Connection) -> rusqlite::Result<Vec<(u32, f64)>> {
    // The last runs say enough about how long tests take.
    let all = "SELECT test, avg(duration) / 1e6 FROM run \
               WHERE id > (SELECT max(id) FROM run) - 200000 AND duration IS NOT NULL \
               GROUP BY test ORDER BY test";
    read(connection, all, [], |row| Ok((row.get(0)?, row.get(1)?)))
}
