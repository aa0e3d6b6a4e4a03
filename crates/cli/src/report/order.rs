//! What is known about a test that depends on order, in lines for people.

use unflake_core::order::answers::Ends;
use unflake_core::order::{Culprit, Dependence, Role};
use unflake_core::test::TestId;

use super::{plural, seconds};

/// So many tests are named in one line.
const NAMED: usize = 8;

/// Titles and texts.
pub(crate) fn describe(dependence: &Dependence) -> Vec<(&'static str, String)> {
    let diagnosis = &dependence.diagnosis;
    let mut lines = Vec::new();
    let title = match diagnosis.role {
        Role::Victim => "fails after",
        Role::Brittle => "passes after",
        Role::Random | Role::Broken | Role::Independent => "after",
    };
    for culprit in &diagnosis.culprits {
        lines.push((title, describe_culprit(culprit)));
    }
    if !diagnosis.culprits.is_empty() {
        lines.push(("alone", describe_ends(diagnosis.alone)));
    }
    if !diagnosis.cleaners.is_empty() {
        lines.push(("unless in between", name_some(&diagnosis.cleaners)));
    }
    let runs = plural(dependence.runs as usize, "run", "runs");
    let mut effort = format!("{runs} of it in {}", seconds(dependence.spent));
    if !diagnosis.is_complete {
        effort.push_str("; not every test was tried");
    }
    lines.push(("search", effort));
    lines
}

fn describe_culprit(culprit: &Culprit) -> String {
    let names: Vec<&str> = culprit.tests.iter().map(TestId::name).collect();
    let joint = if culprit.is_ordered {
        " and then "
    } else {
        " together with "
    };
    format!("{} ({})", names.join(joint), describe_ends(culprit.ends))
}

fn describe_ends(ends: Ends) -> String {
    let all = ends.passed + ends.failed;
    match (ends.passed, ends.failed) {
        (0, failed) => format!("failed {failed} of {all} times"),
        (passed, 0) => format!("passed {passed} of {all} times"),
        (_, failed) => format!("failed {failed} of {all} times"),
    }
}

fn name_some(tests: &[TestId]) -> String {
    let names: Vec<&str> = tests.iter().take(NAMED).map(TestId::name).collect();
    let more = tests.len().saturating_sub(NAMED);
    let names = names.join(", ");
    if more == 0 {
        names
    } else {
        format!("{names}, and {more} more")
    }
}
