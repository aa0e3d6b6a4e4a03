//! Every folder in `fixtures/pytest` is a test: what is planted there is what must be found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::cases::{check_all, find_cases};
use crate::project::{Project, Python};

/// The planted truth of a fixture. `docs/fixtures.md` says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    exit: i64,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    plugins: bool,
    verdicts: BTreeMap<String, String>,
    #[serde(default)]
    outcomes: BTreeMap<String, String>,
    #[serde(default)]
    messages: BTreeMap<String, String>,
    #[serde(default)]
    texts: BTreeMap<String, String>,
    #[serde(default)]
    attempts: BTreeMap<String, String>,
    #[serde(default)]
    births: BTreeMap<String, String>,
    #[serde(default)]
    collection_errors: Vec<String>,
    #[serde(default)]
    session_errors: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    tests: Option<usize>,
    jobs: Option<u64>,
    repeat: Option<String>,
}

#[test]
fn every_fixture_gets_its_planted_verdicts() {
    check_all(find_cases("pytest"), |case| {
        check(case).map_err(|trouble| format!("--- {}\n{trouble}", case.display()))
    });
}

fn check(case: &Path) -> Result<(), String> {
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
    // The fixtures are in no repository, so that of nothing it is known whose it is. What is planted is how tests fail.
    let mut args = vec!["--not-known", "pass"];
    args.extend(expected.args.iter().map(String::as_str));
    let (report, run) = project.run_json(&python, &args);
    let mut troubles = Vec::new();
    let mut compare = |what: &str, found: &dyn std::fmt::Debug, planted: &dyn std::fmt::Debug| {
        let (found, planted) = (format!("{found:#?}"), format!("{planted:#?}"));
        if found != planted {
            troubles.push(format!("{what}: found {found}\nplanted {planted}"));
        }
    };
    compare("exit", &run.code.map(i64::from), &Some(expected.exit));
    compare_verdicts(&report, &expected, &mut compare);
    compare_whose(&report, &mut compare);
    for (id, planted) in &expected.outcomes {
        compare(&format!("outcome of {id}"), &outcome(&report, id), planted);
    }
    for (key, planted) in [("message", &expected.messages), ("text", &expected.texts)] {
        for (id, part) in planted {
            let found = first_attempt(&report, id, key);
            compare(
                &format!("{key} of {id}: {found}"),
                &found.contains(part.as_str()),
                &true,
            );
        }
    }
    compare_details(&report, &expected, &mut compare);
    if troubles.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nstandard error:\n{}",
        troubles.join("\n"),
        run.stderr
    ))
}

type Compare<'a> = dyn FnMut(&str, &dyn std::fmt::Debug, &dyn std::fmt::Debug) + 'a;

fn compare_verdicts(report: &Value, expected: &Expected, compare: &mut Compare<'_>) {
    let found: BTreeMap<String, String> = findings(report)
        .map(|finding| (text(&finding["id"]), verdict(finding)))
        .collect();
    match expected.verdicts.get("*") {
        // All findings alike.
        Some(verdict) => {
            let others: Vec<_> = found.values().filter(|one| *one != verdict).collect();
            compare("verdicts", &(others.len(), found.is_empty()), &(0, false));
        }
        None => compare("verdicts", &found, &expected.verdicts),
    }
}

/// Outside a repository nobody is accused, and nobody is acquitted.
fn compare_whose(report: &Value, compare: &mut Compare<'_>) {
    for finding in findings(report) {
        let whose = &finding["whose"];
        // Of too many failures a few are asked all the same.
        let is_unasked = whose["because"] == "unexamined" && finding["verdict"] == "unexamined";
        let because = if is_unasked {
            "unexamined"
        } else {
            "no-repository"
        };
        let found = (text(&whose["answer"]), text(&whose["because"]));
        let planted = ("not-known".to_owned(), because.to_owned());
        compare(&format!("whose {}", finding["id"]), &found, &planted);
    }
}

fn compare_details(report: &Value, expected: &Expected, compare: &mut Compare<'_>) {
    for (id, part) in &expected.attempts {
        for attempt in attempts(report, id) {
            let text = text(&attempt["text"]);
            compare(
                &format!("each attempt of {id}: {text}"),
                &text.contains(part),
                &true,
            );
        }
    }
    for (id, birth) in &expected.births {
        let births: Vec<String> = attempts(report, id)
            .map(|one| text(&one["birth"]))
            .collect();
        let is_all = births.iter().all(|one| one == birth);
        compare(&format!("births of {id}: {births:?}"), &is_all, &true);
    }
    let errors = report["collection_errors"].as_array().unwrap();
    let errors: Vec<String> = errors.iter().map(|error| text(&error["place"])).collect();
    compare("collection errors", &errors, &expected.collection_errors);
    let session_errors = report["session_errors"].as_array().unwrap();
    let number = expected.session_errors.len();
    compare("session errors", &session_errors.len(), &number);
    for (error, part) in session_errors.iter().zip(&expected.session_errors) {
        let is_it = text(error).contains(part.as_str());
        compare(&format!("session error: {error}"), &is_it, &true);
    }
    for part in &expected.notes {
        let notes = report["notes"].to_string();
        compare(
            &format!("notes: {notes}"),
            &notes.contains(part.as_str()),
            &true,
        );
    }
    if let Some(tests) = expected.tests {
        compare("tests", &report["tests"].as_array().unwrap().len(), &tests);
    }
    if let Some(jobs) = expected.jobs {
        compare("jobs", &report["jobs"].as_u64(), &Some(jobs));
    }
    if let Some(part) = &expected.repeat {
        for finding in findings(report) {
            let repeat = text(&finding["repeat"]);
            compare(
                &format!("repeat: {repeat}"),
                &repeat.contains(part.as_str()),
                &true,
            );
        }
    }
}

fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    report["findings"].as_array().unwrap().iter()
}

fn verdict(finding: &Value) -> String {
    let kind = finding["kind"].as_str().unwrap_or_default();
    format!("{} {kind}", text(&finding["verdict"]))
        .trim_end()
        .to_owned()
}

fn outcome(report: &Value, id: &str) -> String {
    let mut tests = report["tests"].as_array().unwrap().iter();
    let test = tests.find(|test| test["id"] == id);
    test.map_or_else(|| "not listed".to_owned(), |test| text(&test["outcome"]))
}

fn attempts<'a>(report: &'a Value, id: &str) -> std::slice::Iter<'a, Value> {
    let finding = findings(report).find(|finding| finding["id"] == id);
    let attempts = finding.and_then(|finding| finding["attempts"].as_array());
    attempts
        .unwrap_or_else(|| panic!("{id} has no finding"))
        .iter()
}

fn first_attempt(report: &Value, id: &str, key: &str) -> String {
    attempts(report, id)
        .next()
        .map(|attempt| text(&attempt[key]))
        .unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
