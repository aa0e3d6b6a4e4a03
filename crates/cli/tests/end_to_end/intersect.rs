//! Every file in `fixtures/intersect` is a test: a project, a change of it, and how a failing test of it
//! stands to that change. `docs/fixtures.md` says what each key means.
//!
//! Some cases share a repository, each in a folder of its own and with a run of its own, so that each test must
//! find its own change and none of the others.

mod base;
mod memory;
mod repository;
mod which_base;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use crate::project::Python;
use repository::Repository;

/// A project, a change of it, and what must be found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What the case shows, for people.
    #[serde(rename = "why")]
    _why: String,
    verdict: String,
    whose: String,
    #[serde(default)]
    touches: Vec<String>,
    #[serde(default)]
    unknown: Vec<String>,
    #[serde(default)]
    maybe: Vec<String>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    before: Option<String>,
    #[serde(default)]
    edit: Vec<[String; 3]>,
    after: Option<String>,
    base: BTreeMap<String, String>,
    #[serde(default)]
    change: BTreeMap<String, String>,
}

/// A test that fails in the suite is run once more, and alone.
const ONCE_IN_A_NEW_INTERPRETER: [&str; 10] = [
    "--format",
    "json",
    "--immediate",
    "0",
    "--end",
    "0",
    "--fresh",
    "1",
    "--threshold-floor",
    "1000",
];

/// Cases that share a repository, each with the folder in it that is its own.
type Group = Vec<(String, Case)>;

/// How many cases share a repository at most.
const LARGEST: usize = 8;

#[test]
fn every_case_is_found_to_depend_on_its_change_or_not_to() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let queue = Mutex::new(read_groups().into_iter());
    let troubles = Mutex::new(Vec::new());
    let work = || {
        while let Some(group) = next(&queue) {
            let found = check(&group, &python);
            troubles.lock().unwrap().extend(found);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(work);
        }
    });
    let troubles = troubles.into_inner().unwrap();
    assert!(troubles.is_empty(), "{}", troubles.join("\n\n"));
}

fn next(queue: &Mutex<std::vec::IntoIter<Group>>) -> Option<Group> {
    queue.lock().unwrap().next()
}

/// All cases, the largest groups first.
fn read_groups() -> Vec<Group> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/intersect");
    // One case alone, for whoever works on it.
    let only = std::env::var("UNFLAKE_FIXTURE").ok();
    let mut groups = Vec::new();
    for folder in entries(&root) {
        let mut shared = Group::new();
        for file in entries(&folder) {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            if only
                .as_ref()
                .is_some_and(|only| !file.with_extension("").ends_with(only))
            {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let case: Case =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            if case.alone {
                groups.push(vec![(String::new(), case)]);
            } else {
                shared.push((name, case));
            }
            if shared.len() == LARGEST {
                groups.push(std::mem::take(&mut shared));
            }
        }
        groups.push(shared);
    }
    groups.retain(|group| !group.is_empty());
    assert!(!groups.is_empty(), "there is no such case");
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs the tests of a group, and says where what is found is not what is planted.
fn check(group: &Group, python: &Path) -> Vec<String> {
    let repository = Repository::new();
    for (folder, case) in group {
        write(&repository, folder, &case.base);
        if let Some(script) = &case.before {
            repository.sh(folder, script).unwrap();
        }
    }
    let base = repository.commit();
    for (place, (folder, case)) in group.iter().enumerate() {
        change(&repository, folder, case);
        // Committed or not, it makes no difference.
        if place % 2 == 0 {
            repository.commit();
        }
    }
    let mut troubles = Vec::new();
    for (folder, case) in group {
        let report = run(&repository, (folder, case), python, &base);
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let findings = report["findings"].as_array().unwrap().iter();
        let findings: Vec<&Value> = findings
            .filter(|finding| text(&finding["id"]).starts_with(&prefix))
            .collect();
        if findings.is_empty() {
            troubles.push(format!("--- {case:#?}\nno finding: {report:#}"));
        }
        for finding in findings {
            troubles.extend(compare(finding, case, &prefix));
        }
    }
    troubles
}

fn write(repository: &Repository, folder: &str, files: &BTreeMap<String, String>) {
    for (name, text) in files {
        repository
            .project
            .write(format!("{folder}/{name}").trim_start_matches('/'), text);
    }
}

fn change(repository: &Repository, folder: &str, case: &Case) {
    write(repository, folder, &case.change);
    for [name, old, new] in &case.edit {
        let name = format!("{folder}/{name}");
        let name = name.trim_start_matches('/');
        let text = repository.project.read(name);
        assert_eq!(text.matches(old).count(), 1, "{old:?} in {name}");
        repository.project.write(name, &text.replace(old, new));
    }
    if let Some(script) = &case.after {
        repository.sh(folder, script).unwrap();
    }
}

fn run(repository: &Repository, (folder, case): (&str, &Case), python: &Path, base: &str) -> Value {
    let python = python.to_str().unwrap();
    let mut arguments = vec!["run", "--python", python, "--base", base, "--check-base"];
    arguments.extend(ONCE_IN_A_NEW_INTERPRETER);
    arguments.extend(case.args.iter().map(String::as_str));
    if !folder.is_empty() {
        arguments.extend(["--", folder]);
    }
    let mut command = repository.project.unflake(&arguments);
    let root = repository.project.path().canonicalize().unwrap();
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in &case.env {
        command.env(name, value.replace("$WORK_TREE", root.to_str().unwrap()));
    }
    let run = crate::project::Run::of(command.output().unwrap());
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:#?}"))
}

fn compare(finding: &Value, case: &Case, prefix: &str) -> Option<String> {
    let blame = &finding["whose"];
    let list = |key: &str, show: &dyn Fn(&Value) -> String| -> Vec<String> {
        blame[key]
            .as_array()
            .into_iter()
            .flatten()
            .map(show)
            .collect()
    };
    let show_touch = |touch: &Value| {
        let file = text(&touch["file"]);
        let file = file.strip_prefix(prefix).unwrap_or(&file).to_owned();
        format!(
            "{} {file} {}",
            text(&touch["how"]),
            text(&touch["function"])
        )
        .trim_end()
        .to_owned()
    };
    let verdict = format!("{} {}", text(&finding["verdict"]), text(&finding["kind"]));
    let mut touches = list("touches", &show_touch);
    touches.retain(|touch| !case.maybe.contains(touch));
    let unknown = list("unknowns", &|unknown| text(&unknown["kind"]));
    let whose = format!("{} {}", text(&blame["answer"]), text(&blame["because"]));
    let is_found = verdict.trim_end() == case.verdict
        && whose == case.whose
        && touches.len() == case.touches.len()
        && touches.iter().zip(&case.touches).all(|(found, planted)| is_touch(found, planted))
        // Where a test touches a change, nobody asks what else may be.
        && (unknown == case.unknown || !touches.is_empty());
    (!is_found).then(|| {
        let id = text(&finding["id"]);
        let found = (verdict, whose, touches, unknown);
        let planted = (&case.verdict, &case.whose, &case.touches, &case.unknown);
        let attempts = finding["attempts"].as_array().into_iter().flatten();
        let messages: Vec<String> = attempts.map(|one| text(&one["message"])).collect();
        format!("--- {id}\nfound   {found:?}\nplanted {planted:?}\n{blame}\n{messages:?}")
    })
}

/// Whether a touch is the one that is planted: `how file function`, where `|` parts several ways.
fn is_touch(found: &str, planted: &str) -> bool {
    let (found, planted) = (found.split_once(' '), planted.split_once(' '));
    let (Some((how, what)), Some((ways, planted))) = (found, planted) else {
        return false;
    };
    what == planted && ways.split('|').any(|way| way == how)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
