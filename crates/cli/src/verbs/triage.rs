//! `unflake triage`: reads what another command reported, and has its failures looked into.

use std::fs::{self, File};
use std::io::BufReader;
use std::time::SystemTime;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::outcome::Outcome;
use unflake_core::reported::Reported;
use unflake_core::trial::Account;
use unflake_driver::lab::session::Session;
use unflake_driver::run::triage::{Origin, Reports};
use unflake_history::junit::{Case, CaseOutcome, read_junit};

use crate::Exit;
use crate::flags::args::{AgainstArgs, RunArgs, TriageArgs};
use crate::quarantine::Quarantine;
use crate::verbs::run::examine;
use crate::view::explain::Trouble;
use crate::view::repeat::Invocation;
use crate::view::report::plural;
use crate::view::stdout::print;

pub(crate) fn triage(args: &TriageArgs) -> anyhow::Result<Exit> {
    let files = find_reports(&args.reports)?;
    let (reports, cases) = read_reports(&files)?;
    if reports.failures.is_empty() {
        let cases = plural(cases, "test case", "test cases");
        let files = plural(files.len(), "report", "reports");
        print(&format!("no failures among {cases} of {files}"))?;
        return Ok(Exit::Clean);
    }
    let run_args = RunArgs {
        project: args.project.clone(),
        ladder: args.ladder.clone(),
        against: AgainstArgs {
            reports: files,
            ..args.against.clone()
        },
        result: args.result.clone(),
        keep: args.keep.clone(),
        ..RunArgs::default()
    };
    let quarantine = Quarantine::load(None, &args.project)?;
    examine(
        &run_args,
        quarantine,
        Invocation::new,
        move |session: Session| session.triage(&reports),
    )
}

/// The files that were named, and those in folders that were.
fn find_reports(named: &[Utf8PathBuf]) -> anyhow::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = path
            .read_dir_utf8()
            .with_context(|| format!("cannot list {path}"))?;
        let mut inside = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {path}"))?;
            if entry.path().extension() == Some("xml") {
                inside.push(entry.into_path());
            }
        }
        if inside.is_empty() {
            return Err(Trouble::NoReports {
                folder: path.clone(),
            }
            .into());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// The failures in all reports, and how many test cases these have.
fn read_reports(files: &[Utf8PathBuf]) -> anyhow::Result<(Reports, usize)> {
    let mut reports = Reports::default();
    let mut cases = 0;
    let here = hostname();
    for (number, path) in files.iter().enumerate() {
        let unreadable = |source| Trouble::Report {
            file: path.clone(),
            source,
        };
        let file = File::open(path).map_err(|error| unreadable(error.into()))?;
        let report = read_junit(BufReader::new(file)).map_err(|error| unreadable(error.into()))?;
        cases += report.cases.len();
        let other = report
            .hostname
            .filter(|host| *host != here && host != "localhost");
        reports.origins.push(Origin {
            written: written(path),
            other_machine: other,
            folder: path.parent().unwrap_or(Utf8Path::new("")).to_owned(),
            began: report.timestamp,
        });
        for case in report.cases {
            let outcome = match case.outcome {
                CaseOutcome::Failed => Outcome::Failed,
                // There, any exception but that of an assertion is an error.
                CaseOutcome::Errored if is_java(&case.kind) => Outcome::Failed,
                CaseOutcome::Errored => Outcome::Errored,
                CaseOutcome::Flaky | CaseOutcome::Passed => Outcome::Passed,
                CaseOutcome::Skipped => Outcome::Skipped,
            };
            reports.passed_later += usize::from(case.outcome == CaseOutcome::Flaky);
            let reported = to_reported(case, number, outcome);
            if reported.outcome.is_failure() {
                reports.failures.push(reported.clone());
            }
            reports.cases.push(Reported {
                account: Account::default(),
                ..reported
            });
        }
    }
    Ok((reports, cases))
}

/// This machine's name; empty if it has none that can be read.
fn hostname() -> String {
    let name = nix::unistd::gethostname().ok();
    let name = name.and_then(|name| name.into_string().ok());
    name.unwrap_or_default()
}

/// When a report was written; now, if the system does not say.
fn written(path: &Utf8Path) -> SystemTime {
    let time = fs::metadata(path).and_then(|file| file.modified());
    time.unwrap_or_else(|_| SystemTime::now())
}

fn to_reported(case: Case, report: usize, outcome: Outcome) -> Reported {
    let account = Account {
        message: full_message(&case.kind, &case.account.message),
        ..case.account
    };
    let mut properties = case.properties.into_iter();
    let id = properties.find_map(|(name, value)| (name == "unflake.id").then_some(value));
    Reported {
        report,
        classname: case.classname,
        name: case.name,
        file: case.file,
        id,
        outcome,
        duration: case.duration.unwrap_or_default(),
        account,
    }
}

/// The first line of a message, with the class of a Java exception before it: Surefire keeps the two apart.
fn full_message(kind: &str, message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    if !is_java(kind) || message.starts_with(kind) {
        return message.to_owned();
    }
    if message.is_empty() {
        return kind.to_owned();
    }
    format!("{kind}: {message}")
}

/// Whether the type of a failure is a class of Java.
fn is_java(kind: &str) -> bool {
    kind.contains('.') && !kind.contains(' ')
}
