//! The files of a project in no repository as they were when all its tests last passed: one for each project.

use rusqlite::{Connection, params};

use super::rows;
use crate::store::folder::PassedRun;

/// Keeps the last run that passed in a folder of a project, in the place of the one before.
pub(super) fn keep(
    connection: &mut Connection,
    project: &str,
    source: &str,
    run: &PassedRun,
) -> rusqlite::Result<()> {
    let tests = serde_json::json!(run.tests).to_string();
    let files = serde_json::json!(run.files).to_string();
    let keep = "INSERT OR REPLACE INTO passed(project, source, time, installed, tests, files) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![project, source, run.time, run.installed, tests, files];
    let kept = connection.execute(keep, values);
    kept.map(|_| ())
}

/// The last run that passed in a folder of a project.
pub(super) fn read(
    connection: &Connection,
    project: &str,
    source: &str,
) -> rusqlite::Result<Option<PassedRun>> {
    let ask = "SELECT time, installed, tests, files FROM passed WHERE project = ?1 AND source = ?2";
    let mut found = rows::read(connection, ask, [project, source], |row| {
        let (tests, files): (String, String) = (row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, row.get(1)?, tests, files))
    })?;
    let Some((time, installed, tests, files)) = found.pop() else {
        return Ok(None);
    };
    // What cannot be read is no evidence.
    let read = serde_json::from_str(&tests)
        .ok()
        .zip(serde_json::from_str(&files).ok());
    Ok(read.map(|(tests, files)| PassedRun {
        time,
        installed,
        tests,
        files,
    }))
}
