//! A run as one value: read off the stream of events, and written out in several formats.

mod conclusion;
pub(crate) mod github;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod order;
#[cfg(test)]
mod sample;
pub(crate) mod whose;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use unflake_core::blame::Whose;
use unflake_core::cost::Costs;
use unflake_core::event::{CollectionError, Ending, Event, Listing, Note};
use unflake_core::failure::{Fingerprint, incident};
use unflake_core::latent::Latent;
use unflake_core::outcome::Outcome;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Birth, Rung, Trial, VmId};
use unflake_core::verdict::{Finding, Verdict};

use crate::quarantine::Quarantine;
use crate::view::repeat::Invocation;

/// All that is known of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) invocation: Invocation,
    pub(crate) listing: Option<Listing>,
    /// The place of each test in the listing.
    places: HashMap<TestId, usize>,
    pub(crate) collection_errors: Vec<CollectionError>,
    /// The errors of the framework's own session, besides the tests.
    pub(crate) session_errors: Vec<String>,
    /// Failures of a report that no test was found for, and why.
    pub(crate) unmatched: Vec<(String, String)>,
    pub(crate) notes: Vec<Note>,
    /// Tests that may fail.
    pub(crate) quarantine: Quarantine,
    /// State that tests leave changed although none fails for it, the most reachable first.
    pub(crate) latent: Vec<Latent>,
    /// The framework's own final outcome of each test in the suite's run.
    pub(crate) outcomes: HashMap<TestId, SuiteRun>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) vms: BTreeMap<VmId, VmLog>,
    pub(crate) costs: Costs,
    pub(crate) ending: Option<Ending>,
    pub(crate) too_many_failures: bool,
    /// Whether the user wants to see what the reruns cost.
    pub(crate) shows_costs: bool,
    pub(crate) elapsed: Duration,
}

/// The end of a test's run in the suite, by the framework's own count.
#[derive(Debug)]
pub(crate) struct SuiteRun {
    pub(crate) outcome: Outcome,
    pub(crate) duration: Duration,
    pub(crate) vm: VmId,
    pub(crate) message: String,
}

/// The tests that a VM ran, in order.
#[derive(Debug)]
pub(crate) struct VmLog {
    pub(crate) birth: Birth,
    pub(crate) order: Vec<TestId>,
}

/// The number of tests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) tests: usize,
    pub(crate) passed: usize,
    pub(crate) skipped: usize,
    pub(crate) xfailed: usize,
    pub(crate) xpassed: usize,
    pub(crate) not_run: usize,
    pub(crate) flaky: usize,
    pub(crate) nio: usize,
    pub(crate) nio_after_others: usize,
    pub(crate) victim: usize,
    pub(crate) non_deterministic: usize,
    pub(crate) brittle: usize,
    /// Failures by whose they are.
    pub(crate) yours: usize,
    pub(crate) not_yours: usize,
    pub(crate) not_known: usize,
    pub(crate) broken: usize,
    pub(crate) unclear: usize,
    pub(crate) unexamined: usize,
    pub(crate) collection_errors: usize,
    pub(crate) unmatched: usize,
    /// Findings of tests in quarantine, whatever their verdicts; they are counted nowhere else.
    pub(crate) quarantined: usize,
}

impl Counts {
    /// Failures that are not shown to be flaky.
    pub(crate) fn failures(self) -> usize {
        self.nio
            + self.nio_after_others
            + self.victim
            + self.non_deterministic
            + self.brittle
            + self.broken
            + self.unclear
            + self.unexamined
            + self.collection_errors
            + self.unmatched
    }

    /// The numbers of failures by whose they are, if that was asked: `1 yours, 2 not known whose`.
    pub(crate) fn describe_whose(self) -> Option<String> {
        let whose = [
            (self.yours, "yours"),
            (self.not_yours, "not yours"),
            (self.not_known, "not known whose"),
        ];
        let whose = whose.iter().filter(|(count, _)| *count > 0);
        let whose: Vec<String> = whose
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        (!whose.is_empty()).then(|| whose.join(", "))
    }
}

impl Report {
    pub(crate) fn new(invocation: Invocation) -> Self {
        Self {
            invocation,
            listing: None,
            places: HashMap::new(),
            collection_errors: Vec::new(),
            session_errors: Vec::new(),
            unmatched: Vec::new(),
            notes: Vec::new(),
            quarantine: Quarantine::default(),
            latent: Vec::new(),
            outcomes: HashMap::new(),
            findings: Vec::new(),
            vms: BTreeMap::new(),
            costs: Costs::default(),
            ending: None,
            too_many_failures: false,
            shows_costs: false,
            elapsed: Duration::ZERO,
        }
    }

    /// Takes in one event.
    pub(crate) fn read(&mut self, event: Event) {
        match event {
            Event::VmStarted { vm, birth } => {
                let order = Vec::new();
                self.vms.insert(vm, VmLog { birth, order });
            }
            Event::Listed(listing) => {
                let ids = listing.tests.iter().map(|test| test.id.clone());
                self.places.extend(ids.zip(self.tests().len()..));
                if let Some(known) = &mut self.listing {
                    // One more part of the same project.
                    known.tests.extend(listing.tests);
                    known.deselected += listing.deselected;
                } else {
                    self.listing = Some(listing);
                }
            }
            Event::CollectionFailed(error) => self.collection_errors.push(error),
            Event::Unmatched { case, why } => self.unmatched.push((case, why)),
            Event::Noted(note) => self.notes.push(note),
            Event::Latent(latent) => self.latent.push(latent),
            Event::TrialStarted { .. }
            | Event::Searching { .. }
            | Event::Blaming { .. }
            | Event::Detected { .. }
            | Event::CulpritFound { .. } => {}
            Event::Prepared { test, vm } => self.log(vm, test),
            Event::TrialEnded(trial) => self.read_trial(trial),
            Event::SuiteEnded {
                too_many_failures, ..
            } => {
                self.too_many_failures |= too_many_failures;
            }
            Event::SessionFailed { reason, .. } => self.session_errors.push(reason),
            Event::Judged(finding) => {
                let shown = finding.cause.iter().flat_map(|cause| &cause.shown);
                let shown: Vec<&str> = shown.map(|shown| shown.piece.path.as_str()).collect();
                // A test fails for it already.
                self.latent
                    .retain(|latent| !shown.contains(&latent.piece.path.as_str()));
                self.findings.push(finding);
            }
            Event::Ended(ending) => {
                // The report names what ended one part before its time.
                if matches!(self.ending, None | Some(Ending::Completed)) {
                    self.ending = Some(ending);
                }
            }
        }
    }

    /// The first number that no VM has had.
    pub(crate) fn next_vm(&self) -> u32 {
        self.vms.keys().next_back().map_or(0, |last| last.0 + 1)
    }

    /// Merges what the `parts` of a project said: a case of a report belongs to one of them only, and a note that
    /// several parts made is shown once.
    pub(crate) fn settle(&mut self, parts: usize) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (case, _) in &self.unmatched {
            *seen.entry(case.clone()).or_default() += 1;
        }
        let mut kept = HashSet::new();
        self.unmatched.retain(|(case, _)| {
            parts == 1 || seen.get(case) == Some(&parts) && kept.insert(case.clone())
        });
        let mut notes: Vec<Note> = Vec::new();
        for note in self.notes.drain(..) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        self.notes = notes;
    }

    fn read_trial(&mut self, trial: Trial) {
        self.costs.add(&trial);
        self.log(trial.vm, trial.test.clone());
        // A rerun plugin of the project has the last word in plain pytest; our reruns have none.
        if matches!(
            trial.rung,
            Rung::Suite | Rung::OwnRerun | Rung::Report | Rung::Once(_)
        ) && !self.outcomes.contains_key(&trial.test)
            || trial.rung == Rung::OwnRerun
        {
            self.outcomes.insert(
                trial.test,
                SuiteRun {
                    outcome: trial.outcome,
                    duration: trial.duration,
                    vm: trial.vm,
                    message: trial.account.message,
                },
            );
        }
    }

    fn log(&mut self, vm: VmId, test: TestId) {
        if let Some(log) = self.vms.get_mut(&vm) {
            log.order.push(test);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts {
            tests: self.tests().len(),
            collection_errors: self.collection_errors.len(),
            unmatched: self.unmatched.len(),
            ..Counts::default()
        };
        let judged: HashSet<&TestId> = self.findings.iter().map(|one| &one.test).collect();
        for test in self
            .tests()
            .iter()
            .filter(|test| !judged.contains(&test.id))
        {
            match self.outcomes.get(&test.id).map(|run| &run.outcome) {
                None | Some(Outcome::NotRun) => counts.not_run += 1,
                Some(Outcome::Passed) => counts.passed += 1,
                Some(Outcome::Skipped) => counts.skipped += 1,
                Some(Outcome::ExpectedFailure) => counts.xfailed += 1,
                Some(Outcome::UnexpectedPass) => counts.xpassed += 1,
                // A failed test is counted by its verdict.
                Some(
                    Outcome::Failed
                    | Outcome::Errored
                    | Outcome::TimedOut { .. }
                    | Outcome::VmDied { .. },
                ) => {}
            }
        }
        counts.quarantined = self.findings.len() - self.counted().count();
        for finding in self.counted() {
            match finding.verdict {
                Verdict::Flaky(_) => counts.flaky += 1,
                Verdict::Nio(_) => counts.nio += 1,
                Verdict::NioAfterOthers => counts.nio_after_others += 1,
                Verdict::Victim => counts.victim += 1,
                Verdict::NonDeterministic => counts.non_deterministic += 1,
                Verdict::Brittle => counts.brittle += 1,
                Verdict::Broken => counts.broken += 1,
                Verdict::Unclear(_) => counts.unclear += 1,
                Verdict::Unexamined(_) => counts.unexamined += 1,
            }
        }
        for blame in self
            .findings
            .iter()
            .filter_map(|finding| finding.blame.as_deref())
        {
            match &blame.whose {
                Whose::Yours(_) => counts.yours += 1,
                Whose::NotYours(_) => counts.not_yours += 1,
                Whose::NotKnown(_) => counts.not_known += 1,
            }
        }
        counts
    }

    /// The findings that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Finding> + Clone {
        self.quarantine.counted(&self.findings)
    }

    pub(crate) fn tests(&self) -> &[Test] {
        self.listing.as_ref().map_or(&[], |listing| &listing.tests)
    }

    /// The test of this id, with its place.
    pub(crate) fn test(&self, id: &TestId) -> Option<&Test> {
        self.tests().get(*self.places.get(id)?)
    }

    /// The findings with the ones that matter most last, each with those that failed together with it: in the same way
    /// below their tests, and with the same two answers.
    pub(crate) fn incidents(&self) -> Vec<(&Finding, Vec<&Finding>)> {
        let mut incidents: Vec<(&Finding, Vec<&Finding>)> = Vec::new();
        for finding in self.findings_by_weight() {
            let key = incident_of(finding);
            let mut known = incidents.iter_mut();
            let same = known.find(|(first, _)| key.is_some() && incident_of(first) == key);
            match same {
                Some((_, others)) => others.push(finding),
                None => incidents.push((finding, Vec::new())),
            }
        }
        incidents
    }

    /// The findings with the ones that matter most last.
    pub(crate) fn findings_by_weight(&self) -> Vec<&Finding> {
        let weight = |finding: &&Finding| {
            let how = match finding.verdict {
                Verdict::Flaky(_) => 0,
                Verdict::NonDeterministic => 1,
                Verdict::Victim => 2,
                Verdict::Brittle => 3,
                Verdict::Unclear(_) => 5,
                Verdict::Unexamined(_) => 6,
                Verdict::Broken => 7,
                Verdict::NioAfterOthers => 8,
                Verdict::Nio(_) => 9,
            };
            let whose = match finding.blame.as_deref().map(|blame| &blame.whose) {
                Some(Whose::NotYours(_)) => 0,
                Some(Whose::NotKnown(_)) | None => 1,
                Some(Whose::Yours(_)) => 2,
            };
            (whose, how)
        };
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(weight);
        findings
    }
}

/// The key that findings of one incident share.
fn incident_of(finding: &Finding) -> Option<(Fingerprint, &'static str, &'static str)> {
    let blame = finding.blame.as_deref()?;
    let mut failures = finding.trials.iter();
    let first = failures.find(|trial| trial.outcome.is_failure())?;
    let key = incident(&first.outcome, &first.account)?;
    Some((key, finding.verdict.label(), blame.whose.label()))
}

/// A note in words.
pub(crate) fn describe_note(note: &Note) -> String {
    match note {
        Note::OneVm {
            settings,
            is_by_class,
        } => {
            let latent = if *is_by_class {
                "; there each class has its own JVM, so a finding is latent if it needs tests of two classes"
            } else {
                ""
            };
            format!(
                "the tests run one after the other in one JVM, but Surefire has {}{latent}",
                settings.join(" and ")
            )
        }
        Note::Screened { passed, alone } => format!(
            "{passed} of {} tests passed twice on classes that were loaded for them alone, so they got no JVM \
             of their own; --fresh-by exec gives each test its own JVM",
            passed + alone
        ),
        Note::WritesUnseen { why } => {
            format!(
                "unflake cannot show the lines of code that write the state behind the findings: {why}"
            )
        }
        Note::Unexplained { tests, explained } => {
            let first = tests.first().map_or("", TestId::name);
            format!(
                "unflake looked for the state behind {explained} NIO tests, one of each class, and not for the \
                 state behind {} others; the command after `repeat` does so for one of them, such as {first}",
                tests.len()
            )
        }
        Note::StateUnseen => {
            "--latent needs copies of a process, and a JVM cannot be copied: unflake examines only \
             the state behind its findings"
                .to_owned()
        }
        Note::WorkersReplaced { jobs } => format!(
            "the project's options switch on pytest-xdist; --jobs {jobs} replaces its workers"
        ),
        Note::OwnReportLeftOut { report } => {
            format!(
                "with several processes the report {report} is not written; --junit FILE writes one"
            )
        }
        Note::ForkUnavailable { why } => {
            format!("fresh processes are started anew and not copied, because {why}")
        }
        Note::ForkGivenUp { test, why } => {
            format!(
                "the copy of a process gave no answer for {test} ({why}); a new process decides"
            )
        }
        Note::PassedInReport { cases } => {
            let cases = plural(*cases, "test case", "test cases");
            format!(
                "{cases} of the report failed at first and passed later: unflake does not examine them"
            )
        }
        Note::NoBase { why, fetch: None } => {
            format!("failures are not compared with what changed: {why}")
        }
        Note::NoBase {
            why,
            fetch: Some(fetch),
        } => format!("failures are not compared with what changed: {why}; run `{fetch}`"),
        Note::InPlace { why } => {
            format!(
                "the tests run in your own files, and unflake does not undo what they change there: {why}"
            )
        }
        Note::Resumed { orders } => {
            let orders = plural(*orders, "order", "orders");
            format!(
                "this continues a search that was cut off: {orders} did not run again; --afresh runs all"
            )
        }
        Note::BudgetSpent => {
            "the time ran out, so the search is not complete: a larger --budget continues it"
                .to_owned()
        }
        Note::QuarantineUnread { place, why } => {
            format!("no test is excused, because the quarantine at {place} cannot be read ({why})")
        }
        Note::QuarantineOver { tests } => {
            format!("the quarantine has ended for {}", tests.join(", "))
        }
        Note::VmLingered { vm } => {
            format!(
                "the process {vm} did not end by itself after its last test, so unflake killed it"
            )
        }
    }
}

/// Seconds as people read them: `0.012s`, `3.4s`, `2m05s`.
pub(crate) fn seconds(duration: Duration) -> String {
    let total = duration.as_secs_f64();
    if total < 1.0 {
        format!("{total:.3}s")
    } else if total < 60.0 {
        format!("{total:.1}s")
    } else {
        let whole = duration.as_secs();
        format!("{}m{:02}s", whole / 60, whole % 60)
    }
}

/// `1 test`, `2 tests`.
pub(crate) fn plural(count: usize, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{count} {noun}")
}
