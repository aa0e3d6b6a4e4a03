//! The end of a search for order dependence: each finding once more in new interpreters, with the state
//! behind it.

use std::time::Instant;

use unflake_core::event::{Event, Stage};
use unflake_core::nio::Setting;
use unflake_core::order::{Dependence, Role};
use unflake_core::state::Cause;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::verdict::{Doubt, Reason, Verdict};

use crate::cause::find::{Family, Reach};
use crate::lab::lane::Manner;
use crate::lab::session::{Halt, Session, if_listed};
use crate::lab::suspect::Suspect;
use crate::order::search::{Found, Search};

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
        let mut families: Vec<(Family, Vec<Found>)> = Vec::new();
        for (test, found) in search.found {
            let Some(own) = family_of(&test, &found) else {
                let cause = self.cause_of_import(&test, &found, search.deadline)?;
                self.conclude_one(test, found, cause, None);
                continue;
            };
            match families.iter_mut().find(|(family, _)| family.is_like(&own)) {
                Some((family, all)) => {
                    family.tests.push(test);
                    all.push(found);
                }
                None => families.push((own, vec![found])),
            }
        }
        let total = families.iter().map(|(family, _)| family.tests.len()).sum();
        let mut done = 0;
        for (family, all) in families {
            self.tell(Event::Searching {
                stage: Stage::Showing(family.tests[0].clone()),
                done,
                total,
            });
            done += family.tests.len();
            self.conclude_family(&family, all, search.deadline)?;
        }
        Ok(())
    }

    /// Shows what the same culprits do to several tests, and looks for the state behind it. Where VMs
    /// that have collected nothing else do not show it, those that have collected all may.
    fn conclude_family(
        &mut self,
        family: &Family,
        all: Vec<Found>,
        deadline: Option<Instant>,
    ) -> Result<(), Halt> {
        let alone = self.run_in_new_interpreters(&[], family, family.passes_alone)?;
        let after = self.run_in_new_interpreters(&family.culprits, family, !family.passes_alone)?;
        let mut shown = (family.without_tests(family.reach), Vec::new());
        let mut other = (family.without_tests(Reach::Suite), Vec::new());
        for (test, mut found) in family.tests.iter().zip(all) {
            let ends = found.dependence.diagnosis.culprits[0].ends;
            let is_mixed = ends.passed > 0 && ends.failed > 0;
            let passes = [&alone, &after].map(|trials| {
                let own = trials.iter().rfind(|trial| trial.test == *test);
                own.and_then(|trial| trial.outcome.passed())
            });
            let is_shown = passes[0] == Some(family.passes_alone)
                && (is_mixed || passes[1] == Some(!family.passes_alone));
            let (part, founds) = if is_shown { &mut shown } else { &mut other };
            if is_shown || family.reach == Reach::Suite {
                let own = alone
                    .iter()
                    .chain(&after)
                    .filter(|trial| trial.test == *test);
                // The trials with their whole text come first.
                found.trials = own.cloned().chain(found.trials).collect();
            }
            found.dependence.needs_suite = family.reach == Reach::Suite;
            part.tests.push(test.clone());
            founds.push(found);
        }
        let (family_shown, founds) = shown;
        // The answer for which the budget was given is known; the state behind it takes longer.
        let is_wanted = deadline.is_none_or(|deadline| Instant::now() < deadline);
        let causes = if is_wanted {
            self.find_causes(&family_shown)?
        } else {
            Vec::new()
        };
        let causes = causes.into_iter().chain(std::iter::repeat(None));
        for ((test, found), cause) in family_shown.tests.into_iter().zip(founds).zip(causes) {
            self.conclude_one(test, found, cause, None);
        }
        let (family_other, founds) = other;
        if family.reach == Reach::Tests && !founds.is_empty() {
            return self.conclude_family(&family_other, founds, deadline);
        }
        for (test, found) in family_other.tests.into_iter().zip(founds) {
            self.conclude_one(test, found, None, Some(Doubt::OnlyInForks));
        }
        Ok(())
    }

    /// The state behind a dependence on files that are imported; `None` if it is on tests, or on none.
    fn cause_of_import(
        &mut self,
        test: &TestId,
        found: &Found,
        deadline: Option<Instant>,
    ) -> Result<Option<Cause>, Halt> {
        let Dependence {
            diagnosis,
            by_import: true,
            ..
        } = &found.dependence
        else {
            return Ok(None);
        };
        let culprit = diagnosis.culprits.first();
        let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let Some(culprit) = culprit.filter(|_| !is_over) else {
            return Ok(None);
        };
        let family = Family {
            culprits: culprit.tests.clone(),
            tests: vec![test.clone()],
            passes_alone: diagnosis.role == Role::Victim,
            by_import: true,
            reach: Reach::Tests,
        };
        Ok(self.find_causes(&family)?.pop().flatten())
    }

    /// Tells the verdict about a test.
    fn conclude_one(
        &mut self,
        test: TestId,
        found: Found,
        cause: Option<Cause>,
        doubt: Option<Doubt>,
    ) {
        let Found { dependence, trials } = found;
        let is_cut = dependence.is_cut && dependence.diagnosis.culprits.is_empty();
        let verdict = match (doubt, dependence.diagnosis.role) {
            (Some(doubt), _) => Verdict::Unclear(doubt),
            (None, Role::Independent) => return,
            (None, _) if is_cut => Verdict::Unexamined(Reason::Cut),
            (None, Role::Victim) => Verdict::Victim,
            (None, Role::Brittle) => Verdict::Brittle,
            (None, Role::Random) => Verdict::NonDeterministic,
            (None, Role::Broken) => Verdict::Broken,
        };
        let dependence = Some(Box::new(dependence));
        self.add_suspect(test, trials, dependence, cause.map(Box::new));
        self.judge(self.suspects.len() - 1, verdict, None);
    }

    fn add_suspect(
        &mut self,
        test: TestId,
        trials: Vec<Trial>,
        dependence: Option<Box<Dependence>>,
        cause: Option<Box<Cause>>,
    ) {
        self.suspects.push(Suspect {
            dependence,
            cause,
            ..Suspect::of(test, trials)
        });
    }

    /// Runs the tests of a family after others in a new interpreter: all in one, and where one of them
    /// does not end there as it is said to, it in one of its own.
    ///
    /// Gives the trial of each that counts, if it could be run.
    fn run_in_new_interpreters(
        &mut self,
        before: &[TestId],
        family: &Family,
        passes: bool,
    ) -> Result<Vec<Trial>, Halt> {
        let reach = family.reach;
        let mut trials = self.run_in_new_interpreter(before, &family.tests, reach)?;
        if family.tests.len() > 1 {
            trials.retain(|trial| trial.outcome.passed() == Some(passes));
            for test in &family.tests {
                if !trials.iter().any(|trial| trial.test == *test) {
                    let own = std::slice::from_ref(test);
                    trials.extend(self.run_in_new_interpreter(before, own, reach)?);
                }
            }
        }
        Ok(trials)
    }

    /// Runs tests after others in a new interpreter, with all files as they were at the start.
    fn run_in_new_interpreter(
        &mut self,
        before: &[TestId],
        tests: &[TestId],
        reach: Reach,
    ) -> Result<Vec<Trial>, Halt> {
        let order = [before, tests].concat();
        let trials = if_listed(self.run_anew(order, reach))?.unwrap_or_default();
        Ok(trials.into_iter().skip(before.len()).collect())
    }

    fn run_anew(&mut self, order: Vec<TestId>, reach: Reach) -> Result<Vec<Trial>, Halt> {
        let mut lanes = [self.open_lane_for(&order, reach)?];
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

/// A test and the first of its sets of culprits; `None` if it has none that are tests.
fn family_of(test: &TestId, found: &Found) -> Option<Family> {
    let Dependence {
        diagnosis,
        by_import: false,
        ..
    } = &found.dependence
    else {
        return None;
    };
    let culprit = diagnosis.culprits.first()?;
    Some(Family {
        culprits: culprit.tests.clone(),
        tests: vec![test.clone()],
        passes_alone: diagnosis.role == Role::Victim,
        by_import: false,
        reach: Reach::Tests,
    })
}
