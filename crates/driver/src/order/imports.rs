//! Tests that end otherwise because other test files were imported, whatever ran.
//!
//! A VM of the whole suite has imported all test files before the first test runs, so no order of tests
//! shows it. Here new interpreters collect only some files, and run the one test.

use std::time::Instant;

use unflake_core::nio::Setting;
use unflake_core::order::answers::Answers;
use unflake_core::order::orders::by_file;
use unflake_core::order::work::Work;
use unflake_core::order::{Case, Dependence, Role, Scope, Step, next_step};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::lab::lane::Manner;
use crate::lab::session::{Halt, Session};

impl Session {
    /// The other test files whose import makes a test end otherwise; `None` if there are none.
    ///
    /// `passes` is how it ends when all are imported. The culprits of the result are files.
    pub(crate) fn find_imports(
        &mut self,
        test: &TestId,
        passes: bool,
    ) -> Result<Option<(Dependence, Vec<Trial>)>, Halt> {
        let began = Instant::now();
        let own = self.file_of(test).to_owned();
        let files = by_file(&self.tests)
            .into_iter()
            .map(|file| file[0].file.clone());
        let others: Vec<TestId> = files
            .filter(|file| *file != own)
            .map(|file| TestId::new(&file))
            .collect();
        let alone = self.run_among(&[], test)?;
        let is_other = |trial: &Trial| {
            let outcome = &trial.outcome;
            (outcome.is_pass() || outcome.is_failure()) && outcome.is_pass() != passes
        };
        if others.is_empty() || !alone.as_ref().is_some_and(is_other) {
            return Ok(None);
        }
        let leads = [others.clone()];
        let case = Case {
            others: &others,
            leads: &leads,
            guesses: &[],
            hints: &[],
            width: 1,
            shares: false,
            scope: Scope::First,
            // The start of the interpreter is all that counts.
            patience: Work::START,
            price: &|_| Work::START,
        };
        let mut answers = Answers::default();
        let mut shown: Vec<Trial> = Vec::new();
        let mut take = |answers: &mut Answers, files: &[TestId], trial: Option<Trial>| match trial {
            Some(trial) => {
                answers.note(files, &trial.outcome);
                let mut known = shown.iter().map(|one| one.outcome.is_pass());
                if !known.any(|is_pass| is_pass == trial.outcome.is_pass()) {
                    shown.push(trial);
                }
            }
            None => answers.note(files, &Outcome::NotRun),
        };
        take(&mut answers, &[], alone);
        let diagnosis = loop {
            match next_step(&case, &answers) {
                Step::Conclude(diagnosis) => break diagnosis,
                Step::Run(sets) => {
                    for files in sets {
                        let trial = self.run_among(&files, test)?;
                        take(&mut answers, &files, trial);
                    }
                }
            }
        };
        if !matches!(diagnosis.role, Role::Victim | Role::Brittle) {
            return Ok(None);
        }
        let dependence = Dependence {
            diagnosis,
            runs: answers.runs(),
            spent: began.elapsed(),
            is_cut: false,
            by_import: true,
            needs_suite: false,
        };
        Ok(Some((dependence, shown)))
    }

    /// Runs a test in a new interpreter that has collected it and these files, and nothing else; `None`
    /// if it does not list it.
    fn run_among(&mut self, files: &[TestId], test: &TestId) -> Result<Option<Trial>, Halt> {
        let workspace = self.new_workspace()?;
        let tests = std::slice::from_ref(test);
        let Some(lane) = self.open_lane_among(workspace, files, tests)? else {
            return Ok(None);
        };
        let mut lanes = [lane];
        let manner = Manner {
            is_apart: false,
            ..Manner::once(Setting::Ordered)
        };
        let trials = self.run_each(&mut lanes, &[vec![test.clone()]], manner)?;
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        Ok(trials.into_iter().flatten().next())
    }
}
