//! The examination of failures that another command reported: the fresh rungs of the ladder, and INTERSECT.

use std::fs;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::event::{Ending, Event, Note};
use unflake_core::reported::{Match, Reported, find_test, part_of};
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Account, Birth, Fixtures, Part, Rung, Trial, VmId};
use unflake_core::verdict::Doubt;

use crate::git::repository::Repository;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::lab::suspect::Suspect;

/// Reports of another command.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// The known facts about each report as a whole.
    pub origins: Vec<Origin>,
    /// The failures in them.
    pub failures: Vec<Reported>,
    /// The number of test cases that failed at first and passed later.
    pub passed_later: usize,
    /// All test cases in the order of their reports, which is that in which they ran.
    pub cases: Vec<Reported>,
}

/// The origin of a report.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The time at which it was written.
    pub written: SystemTime,
    /// The machine that it names, if it does and it is not this one.
    pub other_machine: Option<String>,
    /// The folder in which it lies.
    pub folder: Utf8PathBuf,
    /// The time at which its tests began, as it says itself.
    pub began: Option<String>,
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
        let mut vms: Vec<VmId> = Vec::new();
        for (place, origin) in reports.origins.iter().enumerate() {
            let mut before = reports.origins[..place].iter();
            let joined = before.position(|one| one.folder == origin.folder);
            let joined = joined.filter(|_| self.reports_by_class());
            let vm = joined.map_or_else(|| self.fleet.number_elsewhere(), |joined| vms[joined]);
            let doubt = doubt_about(origin, changed);
            self.doubts.extend(doubt.map(|doubt| (vm, doubt)));
            vms.push(vm);
        }
        for (test, reported) in suspects {
            let parts = self.parts_of(&test, reports);
            let account = Account {
                parts,
                ..reported.account.clone()
            };
            self.suspect(test, reported, account, vms[reported.report]);
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

    /// Whether each test class has a report of its own, and all of a folder ran in one VM: Surefire does so.
    fn reports_by_class(&self) -> bool {
        let (_, is_forked_by_class) = self.home.project.differences();
        self.home.project.runs_by_class() && !is_forked_by_class
    }

    /// The reports in the order in which their tests ran: by what they say, or else by the suite's own order.
    fn turns(&self, reports: &Reports) -> Vec<usize> {
        let mut began: Vec<Option<&str>> = Vec::new();
        began.extend(reports.origins.iter().map(|origin| origin.began.as_deref()));
        let is_told = began.iter().all(Option::is_some);
        let mut first = vec![usize::MAX; began.len()];
        for case in &reports.cases {
            if let Match::Found(tests) = find_test(&self.tests, case) {
                let places = tests.iter().filter_map(|test| self.places.get(test));
                let place = places.min().copied().unwrap_or(usize::MAX);
                first[case.report] = first[case.report].min(place);
            }
        }
        let mut turns: Vec<usize> = (0..began.len()).collect();
        turns.sort_by_key(|report| (began[*report].filter(|_| is_told), first[*report]));
        turns
    }

    /// Reads from the reports which tests ran before which. A case that is no test of this project now is left out.
    fn read_orders(&mut self, reports: &Reports, vms: &[VmId]) {
        let turns = self.turns(reports);
        let cases = turns.iter().flat_map(|turn| {
            let cases = reports.cases.iter();
            cases.filter(move |case| case.report == *turn)
        });
        for case in cases {
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

    /// The failures that are tests of this project, each once. For the others, the reason is reported.
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

    /// The parts of a test that failed, each of which Surefire reports by itself.
    fn parts_of(&self, test: &TestId, reports: &Reports) -> Vec<Part> {
        let is_it = |reported: &&Reported| matches!(find_test(&self.tests, reported), Match::Found(tests) if tests.contains(test));
        let own = reports.failures.iter().filter(is_it);
        own.filter_map(|reported| part_of(test, reported)).collect()
    }

    fn suspect(&mut self, test: TestId, reported: &Reported, account: Account, vm: VmId) {
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
            account,
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

/// The last time that the project's code changed, as far as git knows its files.
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
