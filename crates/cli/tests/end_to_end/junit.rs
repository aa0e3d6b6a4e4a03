//! Every folder in `fixtures/junit` is a test: what is planted in a Maven project is what must be found.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
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
    #[serde(default)]
    written: BTreeMap<String, String>,
    #[serde(default)]
    left_behind: BTreeMap<String, Vec<String>>,
    /// The findings for which a change is shown that helps.
    fixed: Option<BTreeMap<String, String>>,
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
    unflake_on(None, project, outside, arguments)
}

/// The same with another JDK than Maven's own.
fn unflake_on(jdk: Option<&Path>, project: &Project, outside: &Path, arguments: &[&str]) -> Run {
    let mut command = project.unflake(arguments);
    if let Some(jdk) = jdk {
        command.env("JAVA_HOME", jdk);
    }
    command
        .env("UNFLAKE_TEST_FOLDER", outside)
        .env("XDG_CACHE_HOME", outside.join("cache"));
    Run::of(command.output().expect("unflake starts"))
}

/// Builds the tests, one project at a time: Maven's local repository is not made for several at once.
pub(crate) fn build(project: &Project, outside: &Path, arguments: &[&str]) -> Run {
    build_on(None, project, outside, arguments)
}

fn build_on(jdk: Option<&Path>, project: &Project, outside: &Path, arguments: &[&str]) -> Run {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = vec!["list"];
    all.extend(arguments);
    let run = unflake_on(jdk, project, outside, &all);
    drop(one);
    run
}

#[test]
fn every_junit_fixture_gets_its_planted_verdicts() {
    if !has_maven() {
        return;
    }
    check_all(find_cases("junit"), |case| {
        check(case, None).map_err(|trouble| format!("--- {}\n{trouble}", case.display()))
    });
}

#[test]
fn a_jdk_after_21_names_the_same_state_and_writers() {
    let Some(jdk) = has_maven().then(find_new_jdk).flatten() else {
        writeln!(std::io::stderr(), "skipped: there is no JDK after 21")
            .expect("standard error is open");
        return;
    };
    let cases = find_cases("junit").into_iter();
    let cases: Vec<PathBuf> = cases
        .filter(|case| case.ends_with("state") || case.ends_with("writes"))
        .collect();
    if cases.is_empty() {
        return; // Another fixture is wanted.
    }
    check_all(cases, |case| {
        check(case, Some(&jdk)).map_err(|trouble| format!("--- {}\n{trouble}", case.display()))
    });
}

/// A JDK after 21 beside the one on the path.
fn find_new_jdk() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path)
        .map(|folder| folder.join("java"))
        .find(|java| java.is_file())?;
    let home = java.canonicalize().ok()?.parent()?.parent()?.to_owned();
    let beside = fs::read_dir(home.parent()?).ok()?.filter_map(Result::ok);
    let mut homes: Vec<PathBuf> = beside.map(|entry| entry.path()).collect();
    homes.sort();
    homes.into_iter().find(|home| {
        let release = fs::read_to_string(home.join("release")).unwrap_or_default();
        let version = release.split("JAVA_VERSION=\"").nth(1).unwrap_or_default();
        let version = version.split(['.', '"', '-']).next().unwrap_or_default();
        version.parse::<u32>().is_ok_and(|version| version > 21)
    })
}

fn check(case: &Path, jdk: Option<&Path>) -> Result<(), String> {
    let truth = fs::read_to_string(case.join("expected.toml")).unwrap();
    let expected: Expected = toml::from_str(&truth).map_err(|error| error.to_string())?;
    let project = Project::copy_of(case);
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    let mut all = vec![expected.verb.as_str(), "--format", "json"];
    all.extend(expected.args.iter().map(String::as_str));
    let built = build_on(jdk, &project, outside.path(), &[]);
    if built.code != Some(0) {
        return Err(format!("cannot list the tests: {}", built.stderr));
    }
    let run = unflake_on(jdk, &project, outside.path(), &all);
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
    for (id, planted) in &expected.written {
        let finding = findings.iter().find(|finding| finding["id"] == *id);
        let shown = finding.map(|one| one["cause"]["shown"][0].clone());
        let written = shown.map_or_else(String::new, |piece| describe_write(&piece));
        compare(&format!("written of {id}"), &written, planted);
    }
    for (id, planted) in &expected.left_behind {
        let finding = findings.iter().find(|finding| finding["id"] == *id);
        let files = finding.and_then(|one| one["left_behind"].as_array().cloned());
        let files: Vec<String> = files.unwrap_or_default().iter().map(text).collect();
        compare(&format!("left behind by {id}"), &files, planted);
    }
    if let Some(planted) = &expected.fixed {
        compare("fixed", &changes_that_help(findings), planted);
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

/// What the changes do that were seen to help, by finding.
fn changes_that_help(findings: &[Value]) -> BTreeMap<String, String> {
    let all = findings.iter().map(|one| (one, &one["cause"]["fix"]));
    let known = all.filter(|(_, change)| !change.is_null());
    known
        .map(|(one, change)| (text(&one["id"]), added_line(&text(&change["diff"]))))
        .collect()
}

/// What a method does that a diff adds: the line before its end.
fn added_line(diff: &str) -> String {
    let added: Vec<&str> = diff.lines().filter(|line| line.starts_with("+ ")).collect();
    let line = added.iter().rev().nth(1).unwrap_or(&"");
    line.trim_start_matches(['+', ' ']).to_owned()
}

fn describe_piece(piece: &Value) -> String {
    let part = |key: &str| piece[key].as_str().unwrap_or("nothing").to_owned();
    let [kind, path] = ["kind", "path"].map(part);
    format!("{kind} {path}: {} → {}", part("before"), part("after"))
}

fn describe_write(place: &Value) -> String {
    if place["file"].is_null() {
        return "not seen".to_owned();
    }
    let [file, function] = ["file", "function"].map(|key| text(&place[key]));
    format!("{file}:{} ({function})", place["line"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
