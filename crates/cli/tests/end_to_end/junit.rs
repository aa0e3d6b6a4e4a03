//! Every folder in `fixtures/junit` is a test: what is planted in a Maven project is what must be found.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::cases::{check_all, find_cases};
use crate::project::{Project, Run};

/// The planted truth of a fixture. `docs/fixtures.md` says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    verb: String,
    #[serde(default)]
    args: Vec<String>,
    exit: i32,
    tests: usize,
    #[serde(default)]
    notes: Vec<String>,
    repeat: Option<String>,
    verdicts: BTreeMap<String, String>,
    #[serde(default)]
    outcomes: BTreeMap<String, String>,
    #[serde(default)]
    messages: BTreeMap<String, String>,
    #[serde(default)]
    texts: BTreeMap<String, String>,
    #[serde(default)]
    culprits: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    latent: Vec<String>,
    #[serde(default)]
    state: BTreeMap<String, String>,
}

/// Whether there is a Maven. Without it a test is a printed skip on a laptop and a failure in CI.
pub(crate) fn has_maven() -> bool {
    let is_there = Command::new("mvn").arg("--version").output().is_ok();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "there is no `mvn` on the path"
    );
    if !is_there {
        writeln!(std::io::stderr(), "skipped: there is no `mvn` on the path")
            .expect("standard error is open");
    }
    is_there
}

/// unflake on a Maven project, with a folder that outlives every copy of it and a cache of its own.
pub(crate) fn unflake(project: &Project, outside: &Path, arguments: &[&str]) -> Run {
    let mut command = project.unflake(arguments);
    command
        .env("UNFLAKE_TEST_FOLDER", outside)
        .env("XDG_CACHE_HOME", outside.join("cache"));
    Run::of(command.output().expect("unflake starts"))
}

/// Builds the tests, one project at a time: Maven's local repository is not made for several at once.
pub(crate) fn build(project: &Project, outside: &Path, arguments: &[&str]) -> Run {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = vec!["list"];
    all.extend(arguments);
    let run = unflake(project, outside, &all);
    drop(one);
    run
}

#[test]
fn every_junit_fixture_gets_its_planted_verdicts() {
    if !has_maven() {
        return;
    }
    check_all(find_cases("junit"), |case| {
        check(case).map_err(|trouble| format!("--- {}\n{trouble}", case.display()))
    });
}

fn check(case: &Path) -> Result<(), String> {
    let truth = fs::read_to_string(case.join("expected.toml")).unwrap();
    let expected: Expected = toml::from_str(&truth).map_err(|error| error.to_string())?;
    let project = Project::copy_of(case);
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    let mut all = vec![expected.verb.as_str(), "--format", "json"];
    all.extend(expected.args.iter().map(String::as_str));
    let built = build(&project, outside.path(), &[]);
    if built.code != Some(0) {
        return Err(format!("cannot list the tests: {}", built.stderr));
    }
    let run = unflake(&project, outside.path(), &all);
    let report: Value = serde_json::from_str(&run.stdout)
        .map_err(|error| format!("{error}: {}\n{}", run.stdout, run.stderr))?;
    let mut troubles = Vec::new();
    let mut compare = |what: &str, found: &dyn std::fmt::Debug, planted: &dyn std::fmt::Debug| {
        let (found, planted) = (format!("{found:#?}"), format!("{planted:#?}"));
        if found != planted {
            troubles.push(format!("{what}: found {found}\nplanted {planted}"));
        }
    };
    compare("exit", &run.code, &Some(expected.exit));
    let tests = report["tests"].as_array().unwrap();
    compare("tests", &tests.len(), &expected.tests);
    let findings = report["findings"].as_array().unwrap();
    let found: BTreeMap<String, String> = findings
        .iter()
        .map(|finding| (text(&finding["id"]), verdict(finding)))
        .collect();
    compare("verdicts", &found, &expected.verdicts);
    for (id, planted) in &expected.outcomes {
        let test = tests.iter().find(|test| test["id"] == *id);
        let found = test.map_or_else(|| "not listed".to_owned(), |test| text(&test["outcome"]));
        compare(&format!("outcome of {id}"), &found, planted);
    }
    for (key, planted) in [("message", &expected.messages), ("text", &expected.texts)] {
        for (id, part) in planted {
            let finding = findings.iter().find(|finding| finding["id"] == *id);
            let found = finding.map_or_else(String::new, |one| text(&one["attempts"][0][key]));
            let is_there = found.contains(part.as_str());
            compare(&format!("{key} of {id}: {found}"), &is_there, &true);
        }
    }
    for (id, planted) in &expected.culprits {
        let finding = findings.iter().find(|finding| finding["id"] == *id);
        let sets = finding.map(|one| one["order"]["culprits"].clone());
        let sets = sets.and_then(|sets| sets.as_array().cloned());
        let sets: Vec<Vec<String>> = sets
            .unwrap_or_default()
            .iter()
            .map(|set| set["tests"].as_array().unwrap().iter().map(text).collect())
            .collect();
        compare(&format!("culprits of {id}"), &sets, &vec![planted.clone()]);
    }
    let latent = findings.iter().filter(|one| one["latent"] == true);
    let latent: Vec<String> = latent.map(|one| text(&one["id"])).collect();
    compare("latent", &latent, &expected.latent);
    for (id, planted) in &expected.state {
        let finding = findings.iter().find(|finding| finding["id"] == *id);
        let pieces = finding.map(|one| one["cause"]["shown"].clone());
        let pieces = pieces.and_then(|pieces| pieces.as_array().cloned());
        let pieces = pieces.unwrap_or_default();
        let shown: Vec<String> = pieces.iter().map(describe_piece).collect();
        compare(&format!("state of {id}"), &shown, &vec![planted.clone()]);
    }
    for part in &expected.notes {
        let notes = report["notes"].to_string();
        compare(&format!("notes: {notes}"), &notes.contains(part), &true);
    }
    if let Some(part) = &expected.repeat {
        for finding in findings {
            let repeat = text(&finding["repeat"]);
            compare(&format!("repeat: {repeat}"), &repeat.contains(part), &true);
        }
    }
    if troubles.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nstandard error:\n{}",
        troubles.join("\n"),
        run.stderr
    ))
}

fn verdict(finding: &Value) -> String {
    let kind = finding["kind"].as_str().unwrap_or_default();
    let verdict = format!("{} {kind}", text(&finding["verdict"]));
    verdict.trim_end().to_owned()
}

fn describe_piece(piece: &Value) -> String {
    let part = |key: &str| piece[key].as_str().unwrap_or("nothing").to_owned();
    let [kind, path] = ["kind", "path"].map(part);
    format!("{kind} {path}: {} → {}", part("before"), part("after"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
