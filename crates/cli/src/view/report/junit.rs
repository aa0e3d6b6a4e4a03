//! The JUnit XML report: Surefire's words for flaky and rerun attempts, written as nextest does.
//!
//! Most consumers know only `failure` and `error`, so a test carries one of these exactly if it
//! counts as a failure of the run.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestRerun, TestSuite};
use unflake_core::outcome::Outcome;
use unflake_core::policy::Policy;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::Trial;
use unflake_core::verdict::Finding;

use super::{Report, SuiteRun, order, whose};
use crate::quarantine::{describe, is_yours};

/// The report as XML.
pub(crate) fn write(
    report: &Report,
    policy: Policy,
) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new("unflake");
    suite.set_time(report.elapsed);
    for test in report.tests() {
        if let Some(run) = report.outcomes.get(&test.id) {
            suite.add_test_case(to_case(report, test, run, policy));
        }
    }
    for error in &report.collection_errors {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status
            .set_message("collection failure")
            .set_description(error.text.as_str());
        suite.add_test_case(TestCase::new(error.place.as_str(), status));
    }
    for (case, why) in &report.unmatched {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status
            .set_message("unmatched failure")
            .set_description(why.as_str());
        suite.add_test_case(TestCase::new(case.as_str(), status));
    }
    for error in &report.session_errors {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status
            .set_message("session failure")
            .set_description(error.as_str());
        suite.add_test_case(TestCase::new("test session", status));
    }
    let flakes = report.counts().flaky;
    suite
        .extra
        .insert("flakes".into(), flakes.to_string().into());
    let mut xml = quick_junit::Report::new("unflake");
    xml.set_time(report.elapsed).add_test_suite(suite);
    xml.to_string()
}

fn to_case(report: &Report, test: &Test, run: &SuiteRun, policy: Policy) -> TestCase {
    let finding = report
        .findings
        .iter()
        .find(|finding| finding.test == test.id);
    let quarantined = report.quarantine.of(&test.id);
    let is_within_limit = policy.is_within_limit(report.counted());
    // A test in quarantine reads as a success with its failures, as a forgiven one does; its verdict stands beside.
    let is_forgiven = finding.is_some_and(|finding| {
        let is_excused = quarantined.is_some() && !is_yours(finding);
        is_excused || policy.forgives(finding) && is_within_limit
    });
    let mut status = match finding {
        Some(finding) => to_status(finding, is_forgiven),
        None if run.outcome.is_failure() => TestCaseStatus::non_success(kind(&run.outcome)),
        None => match run.outcome {
            Outcome::Skipped | Outcome::ExpectedFailure => TestCaseStatus::skipped(),
            Outcome::Passed
            | Outcome::UnexpectedPass
            | Outcome::NotRun
            | Outcome::Failed
            | Outcome::Errored
            | Outcome::TimedOut { .. }
            | Outcome::VmDied { .. } => TestCaseStatus::success(),
        },
    };
    if matches!(status, TestCaseStatus::Skipped { .. }) {
        let is_expected = run.outcome == Outcome::ExpectedFailure;
        status.set_type(if is_expected {
            "pytest.xfail"
        } else {
            "pytest.skip"
        });
        status.set_message(run.message.as_str());
    }
    let (class, name) = split(&test.id);
    let mut case = TestCase::new(name, status);
    case.set_classname(class).set_time(run.duration);
    case.extra.insert("file".into(), test.file.as_str().into());
    case.extra
        .insert("line".into(), test.line.to_string().into());
    case.add_property(Property::new("unflake.id", test.id.name()));
    if let Some(finding) = finding {
        case.add_property(Property::new("unflake.verdict", finding.verdict.label()));
        if let Some(quarantined) = quarantined {
            case.add_property(Property::new("unflake.quarantine", describe(quarantined)));
        }
        case.add_property(Property::new("unflake.meaning", finding.verdict.meaning()));
        case.add_property(Property::new("unflake.attempts", attempts(finding)));
        let order = order::describe_lines(finding).join("; ");
        if !order.is_empty() {
            case.add_property(Property::new("unflake.order", order));
        }
        if let Some(blame) = &finding.blame {
            case.add_property(Property::new("unflake.whose", blame.whose.label()));
            case.add_property(Property::new("unflake.because", blame.whose.because()));
            let answer = whose::answer(finding).into_iter();
            let lines: Vec<String> = answer.chain(whose::evidence(blame)).collect();
            case.add_property(Property::new("unflake.changes", lines.join("; ")));
        }
        let repeat = report.invocation.repeat(report, finding);
        case.add_property(Property::new("unflake.repeat", repeat));
        let first = finding.trials.first().filter(|_| !is_forgiven);
        if let Some(first) = first.filter(|first| !first.account.output.is_empty()) {
            case.set_system_out(first.account.output.as_str());
        }
    }
    case
}

/// A failure that is forgiven reads as a success with `flakyFailure`s, all others as a failure with
/// `rerunFailure`s.
fn to_status(finding: &Finding, is_forgiven: bool) -> TestCaseStatus {
    let failed = |trial: &&Trial| trial.outcome.is_failure() && !trial.rung.is_for_blame();
    if is_forgiven {
        let mut status = TestCaseStatus::success();
        status.add_reruns(finding.trials.iter().filter(failed).map(to_rerun));
        return status;
    }
    let mut failures = finding.trials.iter().filter(failed);
    let Some(first) = failures.next().or(finding.trials.first()) else {
        return TestCaseStatus::non_success(NonSuccessKind::Failure);
    };
    let mut status = TestCaseStatus::non_success(kind(&first.outcome));
    let message = if finding.verdict.is_flaky() {
        format!("flaky: {}", first.account.message)
    } else {
        first.account.message.clone()
    };
    status.set_message(message).set_type(first.outcome.label());
    status.set_description(first.account.text.as_str());
    status.add_reruns(failures.map(to_rerun));
    status
}

fn to_rerun(trial: &Trial) -> TestRerun {
    let mut rerun = TestRerun::new(kind(&trial.outcome));
    rerun
        .set_time(trial.duration)
        .set_message(trial.account.message.as_str())
        .set_type(format!(
            "{} ({})",
            trial.outcome.label(),
            trial.rung.label()
        ))
        .set_stack_trace(trial.account.text.as_str());
    if !trial.account.output.is_empty() {
        rerun.set_system_out(trial.account.output.as_str());
    }
    rerun
}

fn kind(outcome: &Outcome) -> NonSuccessKind {
    if *outcome == Outcome::Failed {
        NonSuccessKind::Failure
    } else {
        NonSuccessKind::Error
    }
}

/// All attempts in a line, the passes too, for which the dialect has no element.
fn attempts(finding: &Finding) -> String {
    let one = |trial: &Trial| {
        let seconds = Duration::as_secs_f64(&trial.duration);
        let (rung, outcome) = (trial.rung.label(), trial.outcome.label());
        format!(
            "{rung} {outcome} {seconds:.3}s {} {}",
            trial.vm,
            trial.birth.label()
        )
    };
    finding
        .trials
        .iter()
        .filter(|trial| !trial.rung.is_for_blame())
        .map(one)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The `classname` and `name` that the framework itself writes: for `tests/a.py::T::t[x]` they are `tests.a.T` and `t[x]`,
/// for `shop.CartTest#total` the class and the method.
fn split(test: &TestId) -> (String, &str) {
    if let Some((class, method)) = test.class_and_method() {
        return (class.to_owned(), method);
    }
    let id = test.name();
    let (plain, parameters) = id.find('[').map_or((id, ""), |at| id.split_at(at));
    let (class, name_length) = match plain.rsplit_once("::") {
        Some((class, name)) => (class, name.len() + parameters.len()),
        None => (plain, id.len()),
    };
    let (file, inside) = class.split_once("::").unwrap_or((class, ""));
    let file = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
    let inside = inside.split("::").filter(|part| !part.is_empty());
    let dotted = std::iter::once(file.as_str()).chain(inside);
    let dotted = dotted.collect::<Vec<_>>().join(".");
    (dotted, &id[id.len() - name_length..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::report::sample;

    #[test]
    fn the_whole_report_reads_well() {
        insta::assert_snapshot!(write(&sample::report(), Policy::DEFAULT).unwrap());
    }

    #[test]
    fn ids_are_split_as_the_frameworks_do() {
        for (id, class, name) in [
            ("tests/a.py::t", "tests.a", "t"),
            ("tests/a.py::T::t[x::y/z]", "tests.a.T", "t[x::y/z]"),
            ("lib.pyx/test_a.py::t", "lib.pyx.test_a", "t"),
            ("README.md", "README.md", "README.md"),
            ("shop.CartTest#total", "shop.CartTest", "total"),
            (
                "shop.CartTest$Inner#t(int)[1]",
                "shop.CartTest$Inner",
                "t(int)[1]",
            ),
            ("test_a.py::t[a#b]", "test_a", "t[a#b]"),
        ] {
            let test = TestId::new(id);
            assert_eq!(split(&test), (class.to_owned(), name), "{id}");
        }
    }
}
