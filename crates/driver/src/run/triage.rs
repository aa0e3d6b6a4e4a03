//! Failures that another command reported, looked into: the fresh rungs of the ladder, and INTERSECT.

use std::fs;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use unflake_core::event::{Ending, Event, Note};
use unflake_core::reported::{Match, Reported, find_test};
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Birth, Fixtures, Rung, Trial, VmId};
use unflake_core::verdict::Doubt;

use crate::git::repository::Repository;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::lab::suspect::Suspect;

/// Reports of another command.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// What is known about each report as a whole.
    pub origins: Vec<Origin>,
    /// The failures in them.
    pub failures: Vec<Reported>,
    /// How many test cases failed at first and passed at last.
    pub passed_later: usize,
    /// All test cases in the order of their reports, which is that in which they ran.
    pub cases: Vec<Reported>,
}

/// Where a report comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// When it was written.
    pub written: SystemTime,
    /// The machine that it names, if it does and it is not this one.
    pub other_machine: Option<String>,
}

impl Session {
    /// Looks into the failures of reports. Whatever happens, no VM is left behind.
    pub fn triage(mut self, reports: &Reports) -> Result<(), RunError> {
        let ending = self
            .check_against()
            .and_then(|()| self.open(true))
            .and_then(|first| self.examine_reports(first, reports));
        self.close(ending)
    }

    fn examine_reports(&mut self, first: VmId, reports: &Reports) -> Result<Ending, Halt> {
        let suspects = self.match_tests(reports);
        let tests = self.tests.iter().filter(|test| {
            let mut named = suspects.iter().map(|(id, _)| id);
            named.any(|id| *id == test.id)
        });
        self.announce(tests.cloned().collect::<Vec<Test>>());
        if reports.passed_later > 0 {
            let cases = reports.passed_later;
            self.note(Note::PassedInReport { cases });
        }
        if !suspects.is_empty() && self.wish.fresh_by != Some(Birth::Exec) {
            self.make_mould(first)?;
        }
        self.suite_vms = vec![first];
        let changed = newest_change(self.wish.project.folder());
        let mut vms = Vec::new();
        for origin in &reports.origins {
            let vm = self.fleet.number_elsewhere();
            let doubt = doubt_about(origin, changed);
            self.doubts.extend(doubt.map(|doubt| (vm, doubt)));
            vms.push(vm);
        }
        for (test, reported) in suspects {
            self.suspect(test, reported, vms[reported.report]);
        }
        self.read_orders(reports, &vms);
        let failures = self.suspects.len();
        let threshold = self.wish.plan.threshold;
        self.too_many_failures = threshold.is_reached(failures, self.tests.len());
        self.tell(Event::SuiteEnded {
            elapsed: Duration::ZERO,
            failures,
            too_many_failures: self.too_many_failures,
        });
        self.climb()?;
        self.blame_all()?;
        Ok(Ending::Completed)
    }

    /// Which tests ran before which, by the reports. A case that is no test of this project now is left out.
    fn read_orders(&mut self, reports: &Reports, vms: &[VmId]) {
        for case in &reports.cases {
            if let Match::Found(tests) = find_test(&self.tests, case) {
                let order = self.suite_orders.entry(vms[case.report]).or_default();
                for test in tests {
                    if !order.contains(&test) {
                        order.push(test);
                    }
                }
            }
        }
    }

    /// The failures that are tests of this project, each once; of the others it is told why not.
    fn match_tests<'r>(&self, reports: &'r Reports) -> Vec<(TestId, &'r Reported)> {
        let mut matched: Vec<(TestId, &Reported)> = Vec::new();
        for reported in &reports.failures {
            let why = match find_test(&self.tests, reported) {
                Match::Found(tests) => {
                    for test in tests {
                        if matched.iter().all(|(known, _)| *known != test) {
                            matched.push((test, reported));
                        }
                    }
                    continue;
                }
                Match::Ambiguous(tests) => {
                    let names: Vec<&str> = tests.iter().map(TestId::name).take(3).collect();
                    format!("it can be any of {}: {}", tests.len(), names.join(", "))
                }
                Match::None => "no test of this project has that name".to_owned(),
            };
            let case = reported.to_string();
            self.tell(Event::Unmatched { case, why });
        }
        matched
    }

    fn suspect(&mut self, test: TestId, reported: &Reported, vm: VmId) {
        let trial = Trial {
            test,
            rung: Rung::Report,
            vm,
            birth: Birth::Elsewhere,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome: reported.outcome.clone(),
            duration: reported.duration,
            cost: Duration::ZERO,
            account: reported.account.clone(),
        };
        self.tell(Event::TrialEnded(trial.clone()));
        self.suspects.push(Suspect::new(trial, None));
    }
}

/// Why a pass here and now says nothing about a failure in a report.
fn doubt_about(origin: &Origin, newest_change: Option<SystemTime>) -> Option<Doubt> {
    if origin.other_machine.is_some() {
        Some(Doubt::OtherMachine)
    } else if newest_change.is_some_and(|changed| changed > origin.written) {
        Some(Doubt::OldReport)
    } else {
        None
    }
}

/// When the project's code last changed, as far as git knows its files.
///
/// Files that git does not track do not count unless they are sources: a test command leaves reports
/// and caches behind.
fn newest_change(folder: &Utf8Path) -> Option<SystemTime> {
    // Without git there is no list of what belongs to the project.
    let repository = Repository::find(folder).ok().flatten()?;
    let tracked = repository.run(&["ls-files", "-z"]).ok()?;
    let others = ["ls-files", "-z", "--others", "--exclude-standard"];
    let others = repository.run(&others).ok()?;
    let names = |list: &[u8]| -> Vec<String> {
        let names = list
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    };
    let mut files = names(&tracked);
    let is_source =
        |name: &String| matches!(Utf8Path::new(name).extension(), Some("py" | "java" | "kt"));
    files.extend(names(&others).into_iter().filter(is_source));
    let times = files.iter().filter_map(|name| {
        let file = fs::metadata(repository.root().join(name)).ok()?;
        file.modified().ok()
    });
    times.max()
}
