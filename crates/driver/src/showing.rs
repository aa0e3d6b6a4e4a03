//! The end of a search for order dependence: each finding once more in new interpreters, with the state
//! behind it.

use std::time::Instant;

use unflake_core::event::{Event, Stage};
use unflake_core::nio::Setting;
use unflake_core::order::{Dependence, Role};
use unflake_core::state::Cause;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::verdict::{Blame, Doubt, Reason, Verdict};

use crate::lane::Manner;
use crate::ordering::{Found, Search};
use crate::session::{Halt, Session, Suspect, if_listed};

impl Session {
    /// Shows each dependence in new interpreters, and tells the verdicts.
    pub(crate) fn conclude(&mut self, search: Search, named: &[TestId]) -> Result<(), Halt> {
        let open = search.book.suspects(&self.tests).into_iter();
        let open = open.chain(search.book.never_passed(&self.tests));
        let is_wanted = |test: &TestId| named.is_empty() || named.contains(test);
        let open = open.filter(|test| is_wanted(test) && !search.found.contains_key(test));
        for test in open.collect::<Vec<TestId>>() {
            self.add_suspect(test, Vec::new(), None, None);
            let last = self.suspects.len() - 1;
            self.judge(last, Verdict::Unexamined(Reason::Cut), None);
        }
        let deadline = search.deadline;
        for (test, found) in search.found {
            let Found {
                dependence,
                mut trials,
            } = found;
            let mut cause = None;
            let diagnosis = &dependence.diagnosis;
            let mut verdict = match diagnosis.role {
                Role::Victim => Verdict::Victim,
                Role::Brittle => Verdict::Brittle,
                Role::Random => Verdict::NonDeterministic,
                Role::Broken => Verdict::Broken(Blame::NotAsked),
                Role::Independent => continue,
            };
            if dependence.is_cut && diagnosis.culprits.is_empty() {
                verdict = Verdict::Unexamined(Reason::Cut);
            }
            self.tell(Event::Searching {
                stage: Stage::Showing(test.clone()),
                done: 0,
                total: 1,
            });
            if let Some(culprit) = diagnosis.culprits.first()
                && !dependence.by_import
            {
                let after = [&culprit.tests[..], std::slice::from_ref(&test)].concat();
                let alone = if_listed(self.run_in_new_interpreter(vec![test.clone()]))?;
                let after = if_listed(self.run_in_new_interpreter(after))?;
                let [alone, after] = [alone, after].map(Option::unwrap_or_default);
                let ends = |trials: &[Trial]| {
                    let own = trials.iter().rfind(|trial| trial.test == test);
                    own.map(|trial| trial.outcome.is_pass())
                };
                let is_victim = diagnosis.role == Role::Victim;
                let is_mixed = culprit.ends.passed > 0 && culprit.ends.failed > 0;
                let is_shown = ends(&alone) == Some(is_victim)
                    && (is_mixed || ends(&after) == Some(!is_victim));
                if is_shown {
                    let tests = culprit.tests.clone();
                    // What a budget was given for is known; the state behind it takes longer.
                    let is_wanted = deadline.is_none_or(|deadline| Instant::now() < deadline);
                    if is_wanted {
                        let found = if_listed(self.find_cause(&tests, &test, is_victim))?;
                        cause = found.flatten();
                    }
                } else {
                    verdict = Verdict::Unclear(Doubt::OnlyInForks);
                }
                let own = alone
                    .into_iter()
                    .chain(after)
                    .filter(|trial| trial.test == test);
                trials = own.chain(trials).collect(); // Those with their whole text first.
            }
            let dependence = Some(Box::new(dependence));
            self.add_suspect(test, trials, dependence, cause.map(Box::new));
            self.judge(self.suspects.len() - 1, verdict, None);
        }
        Ok(())
    }

    fn add_suspect(
        &mut self,
        test: TestId,
        trials: Vec<Trial>,
        dependence: Option<Box<Dependence>>,
        cause: Option<Box<Cause>>,
    ) {
        self.suspects.push(Suspect {
            test,
            worker: None,
            trials,
            used: None,
            left_behind: Vec::new(),
            dependence,
            cause,
            is_judged: false,
        });
    }

    /// Runs tests once in a new interpreter, with all files as they were at the start.
    fn run_in_new_interpreter(&mut self, order: Vec<TestId>) -> Result<Vec<Trial>, Halt> {
        let mut lanes = [self.open_another_lane(None)?];
        let manner = Manner {
            is_apart: false,
            ..Manner::once(Setting::Ordered)
        };
        let trials = self.run_each(&mut lanes, &[order], manner)?;
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        Ok(trials.into_iter().flatten().collect())
    }
}
