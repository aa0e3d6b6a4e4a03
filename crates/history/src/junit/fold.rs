//! What several runs of one test case come to, in the order in which the report tells of them.

use std::mem;

use super::{Case, CaseFailure, CaseOutcome};

/// Adds to `held` what a later element says about the same test case.
///
/// The last run decides. A skip says nothing: it neither passed nor failed. And no tool runs a test again
/// because it has passed: a name that passes more than once may be that of several tests, as where
/// parameters are left out of it. Then a pass says nothing about the failure beside it.
pub(super) fn fold(held: &mut Case, mut next: Case) {
    next.elements += held.elements;
    next.line = held.line.or(next.line);
    let properties = mem::take(&mut next.properties);
    next.properties = mem::take(&mut held.properties);
    for property in properties {
        if !next.properties.contains(&property) {
            next.properties.push(property);
        }
    }
    let has_passed = held.passes > 0;
    next.passes += held.passes;
    let mut failures = mem::take(&mut held.other_failures);
    match next.outcome {
        CaseOutcome::Skipped => keep(held, &mut next),
        // A body that failed, and a tear-down that failed after it: the body matters more.
        CaseOutcome::Errored if held.outcome == CaseOutcome::Failed => {
            let mut error = take_failure(&mut next);
            if held.account.output.is_empty() {
                held.account.output = mem::take(&mut error.account.output);
            }
            failures.push(error);
            keep(held, &mut next);
        }
        CaseOutcome::Passed if has_passed && held.outcome.is_failure() => keep(held, &mut next),
        CaseOutcome::Passed
            if has_passed && held.outcome == CaseOutcome::Flaky && held.elements > 1 =>
        {
            if let Some(failure) = failures.pop() {
                put_failure(&mut next, failure);
            }
        }
        CaseOutcome::Passed | CaseOutcome::Failed | CaseOutcome::Errored | CaseOutcome::Flaky => {
            if held.outcome.is_failure() {
                failures.push(take_failure(held));
            }
        }
    }
    failures.append(&mut next.other_failures);
    next.other_failures = failures;
    settle(&mut next);
    *held = next;
}

/// A pass after failures is a flaky case.
pub(super) fn settle(case: &mut Case) {
    if case.outcome == CaseOutcome::Passed && !case.other_failures.is_empty() {
        case.outcome = CaseOutcome::Flaky;
    }
}

/// The failure that `case` is about; the case is then about a pass.
pub(super) fn take_failure(case: &mut Case) -> CaseFailure {
    CaseFailure {
        outcome: mem::replace(&mut case.outcome, CaseOutcome::Passed),
        duration: case.duration.take(),
        kind: mem::take(&mut case.kind),
        account: mem::take(&mut case.account),
    }
}

/// The way back.
fn put_failure(case: &mut Case, failure: CaseFailure) {
    case.outcome = failure.outcome;
    case.duration = failure.duration;
    case.kind = failure.kind;
    case.account = failure.account;
}

/// Lets `next` be about the run that `held` is about.
fn keep(held: &mut Case, next: &mut Case) {
    next.outcome = held.outcome;
    next.duration = held.duration;
    next.kind = mem::take(&mut held.kind);
    next.account = mem::take(&mut held.account);
}
