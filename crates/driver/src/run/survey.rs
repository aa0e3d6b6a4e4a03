//! The reach of INTERSECT in a project: the things that each test file uses, compared with what changed.
//!
//! For evaluation only (the applicability experiment of Eloussi 2015, 4.4): no test needs to fail for
//! it, and it gives no verdict.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::{Duration, Instant, SystemTime};

use unflake_core::change::Change;
use unflake_core::intersect::{Intersection, intersect};
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, VmId};

use crate::blame::comparison::watch;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::protocol::messages::Listed;
use crate::usage::facts::Facts;
use crate::usage::kernel::Watch;
use crate::vm::event::Happening;

/// The time limit of a test in a surveyed file.
const LIMIT: Duration = Duration::from_secs(60);

/// The relation of one test file to the changes.
#[derive(Debug)]
pub struct FileSurvey {
    /// The test file.
    pub file: String,
    /// The number of its tests that ran.
    pub tests: usize,
    /// Held against the changed blocks.
    pub by_block: Intersection,
    /// Held against the changed files as wholes.
    pub by_file: Intersection,
}

impl Session {
    /// Runs every test file by itself, watched, and holds what it used against what changed.
    pub fn survey(mut self) -> Result<Vec<FileSurvey>, RunError> {
        self.survey_files().map_err(|halt| match halt {
            Halt::Interrupted => RunError::Interrupted,
            Halt::Error(error) => error,
        })
    }

    fn survey_files(&mut self) -> Result<Vec<FileSurvey>, Halt> {
        self.check_against()?;
        let first = self.open(true)?;
        self.finish(first)?;
        let mut files: Vec<String> = self.tests.iter().map(|test| test.file.clone()).collect();
        files.dedup();
        let mut found = Vec::new();
        for file in files {
            found.extend(self.survey_file(&file)?);
        }
        Ok(found)
    }

    fn survey_file(&mut self, file: &str) -> Result<Option<FileSurvey>, Halt> {
        let Some(difference) = self.difference() else {
            return Ok(None);
        };
        let began = SystemTime::now();
        let setup = self.wish.project.setup(self.listed());
        let Some(start) = self.wish.project.start_alone(&setup, &TestId::new(file)) else {
            return Ok(None);
        };
        let others = difference.changes.iter().map(|change| &change.file);
        let others = others.filter(|file| !file.is_python());
        let others = others.map(|file| file.path.as_str());
        let eye = Watch::begin(&difference.root, others);
        let vm = self.spawn(watch(start))?;
        let tests = self.await_list(vm)?;
        for (place, test) in tests.iter().enumerate() {
            let asked = self.ask(test.name.to_id(), Rung::Fresh, vm, Instant::now());
            let next = tests.get(place + 1).map(|next| next.name.to_id());
            self.rerun(&asked, next.as_ref(), place > 0, Some(LIMIT))?;
        }
        let facts = Facts::read(&self.fleet.folder().join(format!("{}.usage", vm.0)));
        let opened = eye.as_ref().and_then(Watch::opened);
        self.leave(Some(vm))?;
        let Ok(facts) = facts else { return Ok(None) };
        let mut usage = facts.to_usage(&difference.ground(began));
        usage.is_kernel_watched = opened.is_some();
        for path in opened.into_iter().flatten() {
            usage.files.entry(path).or_default().is_read = true;
        }
        let rules = self
            .wish
            .against
            .as_ref()
            .map(|against| against.rules.clone());
        let rules = rules.unwrap_or_default();
        let whole = difference.changes.iter().map(|change| Change {
            source: None,
            ..change.clone()
        });
        let whole: Vec<Change> = whole.collect();
        Ok(Some(FileSurvey {
            file: file.to_owned(),
            tests: tests.len(),
            by_block: intersect(&difference.changes, &usage, &rules),
            by_file: intersect(&whole, &usage, &rules),
        }))
    }

    /// The tests that a VM lists; none if it cannot.
    fn await_list(&mut self, vm: VmId) -> Result<Vec<Listed>, Halt> {
        loop {
            match self.next(None)? {
                Happening::Parsed(parsed, _) if parsed == vm => self.fleet.collect(vm, None),
                Happening::Ready(ready, collected) if ready == vm => return Ok(collected.tests),
                Happening::Ended(ended, _) if ended == vm => return Ok(Vec::new()),
                unrelated => drop(unrelated),
            }
        }
    }
}
