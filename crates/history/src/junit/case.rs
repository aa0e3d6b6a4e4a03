//! One `testcase` element.

use std::io::BufRead;
use std::time::Duration;

use unflake_core::trial::Account;

use super::excerpt::Excerpt;
use super::fold::{settle, take_failure};
use super::markup::{Element, Markup, Piece};
use super::{Case, CaseFailure, CaseOutcome, JunitError};

/// Reads to the end of a `testcase` element that was just opened.
pub(super) fn read<R: BufRead>(
    markup: &mut Markup<R>,
    mut element: Element,
) -> Result<Case, JunitError> {
    let mut output = Excerpt::default();
    let mut case = to_case(&mut element);
    let is_called_flaky = element.take("flaky").is_some_and(|flaky| flaky == "true");
    while let Piece::Open(child) = markup.next(&mut Excerpt::default())? {
        match child.name.as_str() {
            "failure" => blame(&mut case, read_told(markup, child, CaseOutcome::Failed)?),
            "error" => blame(&mut case, read_told(markup, child, CaseOutcome::Errored)?),
            "skipped" => blame(&mut case, read_told(markup, child, CaseOutcome::Skipped)?),
            "rerunFailure" | "flakyFailure" => {
                let failure = read_told(markup, child, CaseOutcome::Failed)?;
                case.other_failures.push(failure);
            }
            "rerunError" | "flakyError" => {
                let failure = read_told(markup, child, CaseOutcome::Errored)?;
                case.other_failures.push(failure);
            }
            "system-out" | "system-err" => push_line(&mut output, &markup.text()?),
            "properties" => read_properties(markup, &mut case.properties)?,
            _ => markup.skip()?,
        }
    }
    // A failure may have brought some already.
    push_line(&mut output, &case.account.output);
    case.account.output = output.into_text();
    if is_called_flaky && case.outcome.is_failure() {
        let failure = take_failure(&mut case);
        case.other_failures.push(failure);
    }
    settle(&mut case);
    case.passes = usize::from(matches!(
        case.outcome,
        CaseOutcome::Passed | CaseOutcome::Flaky
    ));
    Ok(case)
}

fn to_case(element: &mut Element) -> Case {
    // Googletest and CTest have no element for a disabled test.
    let status = element.take("status");
    let is_disabled = matches!(status.as_deref(), Some("notrun" | "disabled"));
    Case {
        suites: Vec::new(),
        classname: element.take("classname").unwrap_or_default(),
        name: element.take("name").unwrap_or_default(),
        file: element.take("file"),
        // A line that is not a number is one that we do not know.
        line: element.take("line").and_then(|line| line.parse().ok()),
        outcome: if is_disabled {
            CaseOutcome::Skipped
        } else {
            CaseOutcome::Passed
        },
        timestamp: element.take("timestamp"),
        duration: element.take("time").as_deref().and_then(to_duration),
        kind: String::new(),
        account: Account::default(),
        other_failures: Vec::new(),
        elements: 1,
        passes: 0,
        properties: Vec::new(),
    }
}

/// Adds what an element of the case says: a failed body before a failed set-up or tear-down, before a
/// skip, before nothing.
fn blame(case: &mut Case, mut told: CaseFailure) {
    if case.outcome == told.outcome && told.outcome.is_failure() {
        // Googletest writes a `failure` for every failed expectation of one run.
        let mut text = Excerpt::default();
        push_line(&mut text, &case.account.text);
        push_line(&mut text, &told.account.text);
        case.account.text = text.into_text();
        return;
    }
    if rank(told.outcome) > rank(case.outcome) {
        told.duration = case.duration;
        let before = take_failure(case);
        case.outcome = told.outcome;
        case.duration = told.duration;
        case.kind = told.kind;
        case.account = told.account;
        told = before;
    }
    if told.outcome.is_failure() {
        case.other_failures.push(told);
    }
}

fn rank(outcome: CaseOutcome) -> u8 {
    match outcome {
        CaseOutcome::Passed | CaseOutcome::Flaky => 0,
        CaseOutcome::Skipped => 1,
        CaseOutcome::Errored => 2,
        CaseOutcome::Failed => 3,
    }
}

/// Reads what an element of a case tells: attributes, text, and the elements of a rerun.
fn read_told<R: BufRead>(
    markup: &mut Markup<R>,
    mut element: Element,
    outcome: CaseOutcome,
) -> Result<CaseFailure, JunitError> {
    let (mut text, mut stack, mut output) = <(Excerpt, Excerpt, Excerpt)>::default();
    while let Piece::Open(child) = markup.next(&mut text)? {
        match child.name.as_str() {
            "stackTrace" => push_line(&mut stack, &markup.text()?),
            "system-out" | "system-err" => push_line(&mut output, &markup.text()?),
            _ => markup.skip()?,
        }
    }
    let (mut text, stack) = (text.into_text(), stack.into_text());
    if !stack.is_empty() {
        let mut both = Excerpt::default();
        both.push(text.trim_end());
        push_line(&mut both, &stack);
        text = both.into_text();
    }
    Ok(CaseFailure {
        outcome,
        duration: element.take("time").as_deref().and_then(to_duration),
        kind: element.take("type").unwrap_or_default(),
        account: Account {
            message: element.take("message").unwrap_or_default(),
            text,
            output: output.into_text(),
            ..Account::default()
        },
    })
}

fn read_properties<R: BufRead>(
    markup: &mut Markup<R>,
    properties: &mut Vec<(String, String)>,
) -> Result<(), JunitError> {
    while let Piece::Open(mut child) = markup.next(&mut Excerpt::default())? {
        let text = markup.text()?;
        if let (Some(name), "property") = (child.take("name"), child.name.as_str()) {
            properties.push((name, child.take("value").unwrap_or(text)));
        }
    }
    Ok(())
}

fn push_line(text: &mut Excerpt, line: &str) {
    if !line.is_empty() {
        text.break_line();
        text.push(line);
    }
}

/// Seconds, with whatever a locale made of the separators. `None` if they are no time.
fn to_duration(seconds: &str) -> Option<Duration> {
    let seconds = seconds.trim();
    let plain = match seconds.rsplit_once(',') {
        None => seconds.to_owned(),
        // Surefire groups thousands: `1,234.5`, and also `1,234`.
        Some((whole, rest))
            if seconds.contains('.') || (rest.len() == 3 && !matches!(whole, "" | "0")) =>
        {
            seconds.replace(',', "")
        }
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
    };
    // A time that is not a number, or less than none, is one that we do not know.
    Duration::try_from_secs_f64(plain.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_locale() {
        let millis = |text| to_duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis("0.25"), Some(250));
        assert_eq!(millis(" 12 "), Some(12_000));
        assert_eq!(millis("0,25"), Some(250));
        assert_eq!(millis("0,250"), Some(250));
        assert_eq!(millis("1,234.5"), Some(1_234_500));
        assert_eq!(millis("1,234"), Some(1_234_000));
        assert_eq!(millis("1,234,567.25"), Some(1_234_567_250));
        assert_eq!(millis("1.5E-1"), Some(150));
        for bad in ["", "-1", "NaN", "inf", "1e300", "fast", "PT1S"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
