//! What is known about a test that depends on order, in lines for people.

use std::fmt::Write;

use unflake_core::order::answers::Ends;
use unflake_core::order::{Culprit, Dependence, Role};
use unflake_core::state::{Cause, Piece, Place, Shown};
use unflake_core::test::TestId;
use unflake_core::verdict::{Finding, Verdict};

use super::{plural, seconds};

/// The most tests that are named in one line.
const NAMED: usize = 8;

/// The tests that a finding depends on, and the state behind it: titles and texts.
pub(crate) fn describe(finding: &Finding) -> Vec<(&'static str, String)> {
    let dependence = finding.dependence.iter();
    let mut lines: Vec<_> = dependence
        .flat_map(|one| describe_dependence(one))
        .collect();
    let passes_alone = finding.verdict != Verdict::Brittle;
    let cause = finding.cause.iter();
    lines.extend(cause.flat_map(|cause| describe_cause(cause, passes_alone)));
    lines
}

/// The titles and texts of [`describe`] as lines, for reports that have no titles.
pub(crate) fn describe_lines(finding: &Finding) -> Vec<String> {
    let lines = describe(finding).into_iter();
    lines
        .map(|(title, text)| format!("{title}: {text}"))
        .collect()
}

fn describe_dependence(dependence: &Dependence) -> Vec<(&'static str, String)> {
    let diagnosis = &dependence.diagnosis;
    let mut lines = Vec::new();
    let title = match diagnosis.role {
        Role::Victim if dependence.by_import => "fails if imported",
        Role::Brittle if dependence.by_import => "passes if imported",
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
        lines.push((
            "unless this runs in between",
            name_some(&diagnosis.cleaners),
        ));
    }
    if dependence.needs_suite {
        let text = "only when the whole suite is imported, not with these tests by themselves";
        lines.push(("seen", text.to_owned()));
    }
    let runs = plural(dependence.runs as usize, "run", "runs");
    let mut effort = format!("{runs} of this test in {}", seconds(dependence.spent));
    if !diagnosis.is_complete {
        effort.push_str("; not every test was tried");
    }
    lines.push(("search", effort));
    lines
}

/// The state behind it: what was shown, or what is left to suspect.
fn describe_cause(cause: &Cause, passes_alone: bool) -> Vec<(&'static str, String)> {
    let verb = if passes_alone { "pass" } else { "fail" };
    let mut lines = Vec::new();
    for (at, shown) in cause.shown.iter().enumerate() {
        let what = describe_shown(shown);
        let text = match (cause.is_joint, at + 1 == cause.shown.len()) {
            (false, _) if is_set_up(&shown.piece) => {
                format!("{what}; setting it up anew makes the test {verb}")
            }
            (false, _) => format!("{what}; putting it back makes the test {verb}"),
            (true, false) => what,
            (true, true) => format!("{what}; putting all of these back makes the test {verb}"),
        };
        lines.push(("state", text));
    }
    if cause.shown.is_empty() {
        let text = if cause.changed == 0 {
            "no change was seen; it may be in state that unflake cannot look into".to_owned()
        } else {
            let changed = plural(cause.changed, "change was", "changes were");
            format!("{changed} seen, but putting back those that can be put back does not help")
        };
        lines.push(("state", text));
        for suspect in &cause.suspects {
            lines.push(("suspect", describe_shown(suspect)));
        }
        for unseen in cause.unseen.iter().take(UNSEEN) {
            lines.push(("not looked into", unseen.clone()));
        }
    }
    lines
}

/// The most things that are listed as not looked into.
const UNSEEN: usize = 4;

fn describe_shown(shown: &Shown) -> String {
    let piece = &shown.piece;
    let absent = "(not there)".to_owned();
    let before = piece.before.as_ref().unwrap_or(&absent);
    let after = piece.after.as_ref().unwrap_or(&absent);
    let mut text = format!("{}: {before} → {after}", name_piece(piece));
    if piece.is_mock {
        text.push_str(" (a mock that was not undone)");
    }
    if let Some(place) = &shown.place {
        let Place {
            file,
            line,
            function,
        } = place;
        let done = if is_set_up(piece) {
            "set up"
        } else {
            "written"
        };
        let _ = write!(text, ", {done} at {file}:{line} ({function})");
    }
    text
}

/// Whether it is a fixture that has come alive: what happened to what it stands for cannot be told.
fn is_set_up(piece: &Piece) -> bool {
    piece.kind == "fixture" && piece.before.is_none()
}

/// The name of a piece: its kind and its path, which may begin with the kind.
fn name_piece(piece: &Piece) -> String {
    let Piece { kind, path, .. } = piece;
    if path
        .strip_prefix(kind)
        .is_some_and(|rest| rest.starts_with(' '))
    {
        path.clone()
    } else {
        format!("{kind} {path}")
    }
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

pub(crate) fn name_some(tests: &[TestId]) -> String {
    let names: Vec<&str> = tests.iter().take(NAMED).map(TestId::name).collect();
    let more = tests.len().saturating_sub(NAMED);
    let names = names.join(", ");
    if more == 0 {
        names
    } else {
        format!("{names}, and {more} more")
    }
}
