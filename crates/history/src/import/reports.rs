//! Runs out of JUnit XML: every attempt that a report tells of.

use std::io::BufRead;
use std::time::Duration;

use unflake_core::failure::{Fingerprint, condense};
use unflake_core::trial::Account;

use super::delimited::{LONGEST_MESSAGE, LONGEST_NAME};
use super::skips::{Skip, Skips};
use super::times::parse_time;
use super::{FUTURE, FileError, Wish};
use crate::batch::{Batch, Packer};
use crate::junit::{Case, CaseOutcome, stream_junit};
use crate::run::{Ended, More, Provenance, Row};

pub(super) fn read<R: BufRead, F: FnMut(Batch) -> Result<(), ()>>(
    reader: &mut R,
    wish: &Wish,
    written: i64,
    packer: &mut Packer<F>,
    skips: &mut Skips,
) -> Result<(), FileError> {
    stream_junit(reader, trim, |cases| {
        for case in cases {
            if let Err(skip) = add_case(&case, wish, written, packer) {
                skips.add(skip, || format!("{}.{}", case.classname, case.name));
            }
        }
    })?;
    Ok(())
}

/// Leaves of each text what the history keeps.
fn trim(case: &mut Case) {
    trim_account(&case.kind, &mut case.account);
    for failure in &mut case.other_failures {
        trim_account(&failure.kind, &mut failure.account);
    }
}

fn trim_account(kind: &str, account: &mut Account) {
    if !(account.message.is_empty() && account.text.is_empty()) {
        kind.clone_into(&mut account.kind);
        condense(account);
    }
    if account.message.is_empty() {
        // Some tools say it in the text only.
        let line = account.text.lines().find(|line| !line.trim().is_empty());
        account.message = line.unwrap_or_default().trim().to_owned();
    }
    if account.message.len() > LONGEST_MESSAGE {
        account.message = account.message.chars().take(LONGEST_MESSAGE).collect();
    }
    account.text = String::new();
    account.output = String::new();
}

fn add_case<F: FnMut(Batch) -> Result<(), ()>>(
    case: &Case,
    wish: &Wish,
    written: i64,
    packer: &mut Packer<F>,
) -> Result<(), Skip> {
    let (name, is_own) = name_of(case);
    if name.is_empty() {
        return Err(Skip::NoName);
    }
    if name.len() > LONGEST_NAME {
        return Err(Skip::LongName);
    }
    let time = time_of(case, wish, written)?;
    let provenance = Provenance {
        revision: property(case, "revision").unwrap_or_else(|| wish.provenance.revision.clone()),
        ..wish.provenance.clone()
    };
    for attempt in attempts(case) {
        let row = Row {
            test: packer.test(&name, 0, is_own),
            provenance: packer.provenance(&provenance),
            time,
            ..attempt
        };
        // A store that wants no more has said so itself.
        let _ = packer.push(row);
    }
    Ok(())
}

fn property(case: &Case, name: &str) -> Option<String> {
    let mut all = case.properties.iter();
    all.find(|(key, _)| key == name)
        .map(|(_, value)| value.clone())
}

fn time_of(case: &Case, wish: &Wish, written: i64) -> Result<i64, Skip> {
    let time = case.timestamp.as_deref();
    let time = time.map(|text| parse_time(text).ok_or(Skip::BadTime));
    let time = time.transpose()?.unwrap_or(written);
    if time > wish.now + FUTURE {
        return Err(Skip::Future);
    }
    Ok(time)
}

/// Every attempt that a case tells of, in their order, without test, provenance and time.
fn attempts(case: &Case) -> Vec<Row> {
    let is_flaky = case.outcome == CaseOutcome::Flaky;
    let verdict = property(case, "unflake.verdict");
    // Our own report shows a test in quarantine as passed; that it passed is not said by that.
    let is_excused = property(case, "unflake.quarantine").is_some();
    let never_passed = is_excused && verdict.as_deref() != Some("flaky");
    let verdict = is_flaky.then(|| verdict.as_deref().unwrap_or("flaky"));
    let failures = case.other_failures.iter().map(|failure| {
        let ended = to_ended(failure.outcome);
        let told = (failure.kind.as_str(), &failure.account);
        to_attempt(ended, failure.duration, told, verdict)
    });
    let told = (case.kind.as_str(), &case.account);
    let own = to_attempt(to_ended(case.outcome), case.duration, told, None);
    let mut attempts = Vec::new();
    if is_flaky {
        // The failures came first: the tool itself ran the test again.
        attempts.extend(failures);
        attempts.extend((!never_passed).then_some(own));
    } else {
        attempts.push(own);
        attempts.extend(failures);
    }
    for (row, number) in attempts.iter_mut().zip(1..) {
        row.attempt = number;
    }
    attempts
}

fn to_attempt(
    ended: Ended,
    duration: Option<Duration>,
    (kind, account): (&str, &Account),
    verdict: Option<&str>,
) -> Row {
    let more = ended.is_failure().then(|| {
        let fingerprint = Fingerprint::of_reported(kind, account);
        let summary = fingerprint.summary();
        Box::new(More {
            signature: (!summary.is_empty()).then(|| summary.to_owned()),
            fingerprint: Some(fingerprint.as_str().to_owned()),
            message: account.message.clone(),
            verdict: verdict.map(ToOwned::to_owned),
            ..More::default()
        })
    });
    Row {
        test: 0,
        provenance: 0,
        time: 0,
        ended,
        attempt: 0,
        duration: duration.and_then(|time| i64::try_from(time.as_micros()).ok()),
        more,
    }
}

/// The framework's own name if the report has it; else its class and its name.
fn name_of(case: &Case) -> (String, bool) {
    let own = case
        .properties
        .iter()
        .find(|(name, _)| name == "unflake.id");
    if let Some((_, id)) = own {
        return (id.clone(), true);
    }
    (reported_name(case), false)
}

/// The class and the name, with a dot between them.
fn reported_name(case: &Case) -> String {
    let Case {
        suites,
        classname,
        name,
        ..
    } = case;
    if classname == "test" && !suites.is_empty() {
        // Node's runner gives this class to all tests, and has the names of their blocks in the suites.
        return format!("{} > {name}", suites.join(" > "));
    }
    if classname.is_empty() || classname == name {
        // CTest and jest-junit write the whole name twice.
        return name.clone();
    }
    if name.is_empty() {
        return classname.clone();
    }
    format!("{classname}.{name}")
}

fn to_ended(outcome: CaseOutcome) -> Ended {
    match outcome {
        CaseOutcome::Passed | CaseOutcome::Flaky => Ended::PASSED,
        CaseOutcome::Failed => Ended::FAILED,
        CaseOutcome::Errored => Ended::ERRORED,
        CaseOutcome::Skipped => Ended::SKIPPED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::junit::read_junit;

    #[test]
    fn a_test_is_named_by_its_class_and_its_name_as_its_tool_writes_them() {
        let xml = "<testsuites><testsuite name='block'><testsuite name='inner'>\
            <testcase classname='test' name='adds'/></testsuite></testsuite>\
            <testsuite name='jest'><testcase classname='cart adds' name='cart adds'/>\
            <testcase classname='shop.Cart' name='adds'/><testcase name='alone'/>\
            <testcase classname='shop.Broken' name=''/></testsuite></testsuites>";
        let report = read_junit(xml.as_bytes()).unwrap();
        let names: Vec<String> = report.cases.iter().map(reported_name).collect();
        let expected = [
            "block > inner > adds",
            "cart adds",
            "shop.Cart.adds",
            "alone",
            "shop.Broken",
        ];
        assert_eq!(names, expected);
    }
}
