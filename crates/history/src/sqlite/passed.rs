//! The files of a project in no repository as they were when all its tests last passed: one for each project.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::Sqlite;
use crate::store::StoreError;

/// A run that passed, and what it ran on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedRun {
    /// When it was, in milliseconds since 1970.
    pub time: i64,
    /// The digest of what was installed.
    pub installed: [u8; 32],
    /// Its tests in their order, by name and copy, and whether they passed: others were left out.
    pub tests: Vec<(String, u32, bool)>,
    /// Its files.
    pub files: Vec<PassedFile>,
}

/// A file of such a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PassedFile {
    /// Its path.
    pub path: String,
    /// The digest of its content.
    pub digest: [u8; 32],
    /// How many bytes it had.
    pub size: u64,
    /// When it had last changed, in nanoseconds since 1970.
    pub changed: i64,
}

impl Sqlite {
    /// Keeps the last run that passed in a folder of a project, in the place of the one before.
    pub fn keep_passed(
        &mut self,
        project: &str,
        source: &str,
        run: &PassedRun,
    ) -> Result<(), StoreError> {
        let tests = serde_json::json!(run.tests).to_string();
        let files = serde_json::json!(run.files).to_string();
        let keep = "INSERT OR REPLACE INTO passed(project, source, time, installed, tests, files) \
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![project, source, run.time, run.installed, tests, files];
        let kept = self.connection.execute(keep, values);
        kept.map(|_| ()).map_err(self.trouble())
    }

    /// The last run that passed in a folder of a project.
    pub fn passed(&self, project: &str, source: &str) -> Result<Option<PassedRun>, StoreError> {
        let ask =
            "SELECT time, installed, tests, files FROM passed WHERE project = ?1 AND source = ?2";
        let mut found = self.read(ask, [project, source], |row| {
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
}
