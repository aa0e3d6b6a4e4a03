//! Every folder in `fixtures/nio` is a test: the tests that are planted there, and no others, are NIO.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::cases::{check_all, find_cases};
use crate::project::{Project, Python, Run};

/// The planted truth of a fixture. `docs/fixtures.md` says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    exit: i32,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default = "all_modes")]
    modes: Vec<String>,
    #[serde(default)]
    plugins: bool,
    #[serde(default)]
    repository: bool,
    verdicts: BTreeMap<String, String>,
    #[serde(default)]
    verdicts_in: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    left_behind: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    notes_in: BTreeMap<String, Vec<String>>,
}

fn all_modes() -> Vec<String> {
    ["auto", "suite", "class", "method"]
        .map(str::to_owned)
        .into()
}

#[test]
fn every_nio_fixture_gets_its_planted_verdicts() {
    let mut cases = Vec::new();
    for case in find_cases("nio") {
        let truth = fs::read_to_string(case.join("expected.toml")).unwrap();
        let expected: Expected =
            toml::from_str(&truth).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let is_quick = std::env::var_os("UNFLAKE_ALL_MODES").is_none();
        let modes = if is_quick {
            expected.modes
        } else {
            all_modes()
        };
        for mode in modes {
            cases.push((case.clone(), mode));
        }
    }
    check_all(cases, |(case, mode)| {
        check(case, mode).map_err(|trouble| format!("--- {} {mode}\n{trouble}", case.display()))
    });
}

fn check(case: &Path, mode: &str) -> Result<(), String> {
    let truth = fs::read_to_string(case.join("expected.toml")).unwrap();
    let expected: Expected = toml::from_str(&truth).map_err(|error| error.to_string())?;
    let kind = if expected.plugins {
        Python::Plugins
    } else {
        Python::Plain
    };
    let Some(python) = kind.find() else {
        return Ok(());
    };
    let project = Project::copy_of(case);
    if expected.repository {
        project.commit();
    }
    let before = files_of(project.path());
    let mut args = vec!["--mode", mode];
    if mode == "method" {
        args.extend(["--jobs", "2"]);
    }
    args.extend(expected.args.iter().map(String::as_str));
    let (report, run) = nio_json(&project, &python, &args);
    let mut planted = expected.verdicts.clone();
    // Without changes, `auto` is `suite`.
    let place = if mode == "auto" { "suite" } else { mode };
    planted.extend(expected.verdicts_in.get(place).cloned().unwrap_or_default());
    let mut troubles = Vec::new();
    let mut compare = |what: &str, found: &dyn std::fmt::Debug, planted: &dyn std::fmt::Debug| {
        let (found, planted) = (format!("{found:#?}"), format!("{planted:#?}"));
        if found != planted {
            troubles.push(format!("{what}: found {found}\nplanted {planted}"));
        }
    };
    compare("exit", &run.code, &Some(expected.exit));
    compare("verdicts", &verdicts(&report), &planted);
    for (id, planted) in &expected.left_behind {
        let found = finding(&report, id).map(|finding| texts(&finding["left_behind"]));
        compare(&format!("left behind by {id}"), &found, &Some(planted));
    }
    for part in expected.notes_in.get(mode).into_iter().flatten() {
        let notes = report["notes"].to_string();
        compare(&format!("notes: {notes}"), &notes.contains(part), &true);
    }
    compare("files", &files_of(project.path()), &before);
    if troubles.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nstandard error:\n{}",
        troubles.join("\n"),
        run.stderr
    ))
}

/// `unflake nio --format json` with this interpreter.
fn nio_json(project: &Project, python: &Path, arguments: &[&str]) -> (Value, Run) {
    let mut all = vec!["--format", "json"];
    all.extend(arguments);
    let run = nio(project, python, &all);
    let json = serde_json::from_str(&run.stdout);
    (
        json.unwrap_or_else(|error| panic!("{error}: {run:#?}")),
        run,
    )
}

/// `unflake nio` with this interpreter, and a folder that outlives every copy of the project.
fn nio(project: &Project, python: &Path, arguments: &[&str]) -> Run {
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    let mut all = vec!["nio", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    let mut command = project.unflake(&all);
    command.env("UNFLAKE_TEST_FOLDER", outside.path());
    Run::of(command.output().expect("unflake starts"))
}

fn verdicts(report: &Value) -> BTreeMap<String, String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let found = findings.map(|finding| {
        let kind = finding["kind"].as_str().unwrap_or_default();
        let verdict = format!("{} {kind}", text(&finding["verdict"]));
        (text(&finding["id"]), verdict.trim_end().to_owned())
    });
    found.collect()
}

fn finding<'a>(report: &'a Value, id: &str) -> Option<&'a Value> {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == id)
}

/// Every path of a folder with what it holds, but for the repository's own records.
pub(crate) fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let data = path.symlink_metadata().unwrap();
            if data.is_dir() {
                open.push(path.clone());
            }
            let content = if data.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(path, content);
        }
    }
    found
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
