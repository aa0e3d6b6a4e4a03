//! Every file in `fixtures/intersect` is a test: a project, a change of it, and how a failing test of it
//! stands to that change. `docs/fixtures.md` says what each key means.
//!
//! The cases of a folder share a repository, each in a folder of its own, so that each test must find
//! its own change and none of the others.

mod base;
mod memory;
mod repository;

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
    #[serde(default)]
    touches: Vec<String>,
    #[serde(default)]
    unknown: Vec<String>,
    #[serde(default)]
    maybe: Vec<String>,
    at_base: Option<String>,
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

impl Case {
    /// Whether a run at the base would add nothing: what the test touches is the verdict. It takes as
    /// long as all the rest, so that these cases do without it.
    fn is_plain(&self) -> bool {
        self.at_base.is_none() && self.verdict == "broken touches-change"
    }
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
        let (mut plain, mut others) = (Group::new(), Group::new());
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
            } else if case.is_plain() {
                plain.push((name, case));
            } else {
                others.push((name, case));
            }
        }
        groups.extend([plain, others]);
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
    let is_plain = group.iter().all(|(_, case)| case.is_plain());
    if is_plain && let Err(trouble) = pass_at_base(&repository, group, python) {
        return vec![trouble];
    }
    for (place, (folder, case)) in group.iter().enumerate() {
        change(&repository, folder, case);
        // Committed or not, it makes no difference.
        if place % 2 == 0 {
            repository.commit();
        }
    }
    let report = run(&repository, group, python, &base);
    let mut troubles = Vec::new();
    for (folder, case) in group {
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

/// All tests of plain cases pass at the base, which is seen faster here than in a run of each.
fn pass_at_base(repository: &Repository, group: &Group, python: &Path) -> Result<String, String> {
    let mut words = vec!["exec", python.to_str().unwrap(), "-m", "pytest", "-q"];
    words.extend(["-p", "no:cacheprovider"]);
    let more = group.iter().flat_map(|(_, case)| &case.args);
    words.extend(more.map(String::as_str).filter(|word| *word != "--"));
    // Bytecode of the base could be taken for that of a change in the same second.
    let script = format!("export PYTHONDONTWRITEBYTECODE=1; {}", words.join(" "));
    repository.sh("", &script)
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

fn run(repository: &Repository, group: &Group, python: &Path, base: &str) -> Value {
    let is_plain = group.iter().all(|(_, case)| case.is_plain());
    let check_base = format!("--check-base={}", if is_plain { "never" } else { "always" });
    let python = python.to_str().unwrap();
    let mut arguments = vec!["run", "--python", python, "--base", base, &check_base];
    arguments.extend(ONCE_IN_A_NEW_INTERPRETER);
    for (_, case) in group {
        arguments.extend(case.args.iter().map(String::as_str));
    }
    let mut command = repository.project.unflake(&arguments);
    let root = repository.project.path().canonicalize().unwrap();
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command
        .env("WORK_TREE", &root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in group.iter().flat_map(|(_, case)| &case.env) {
        command.env(name, value.replace("$WORK_TREE", root.to_str().unwrap()));
    }
    let run = crate::project::Run::of(command.output().unwrap());
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:#?}"))
}

fn compare(finding: &Value, case: &Case, prefix: &str) -> Option<String> {
    let changes = &finding["changes"];
    let list = |key: &str, show: &dyn Fn(&Value) -> String| -> Vec<String> {
        changes[key]
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
    let unknown = list("unknown", &|unknown| text(&unknown["kind"]));
    let at_base = text(&changes["at_base"]);
    let at_base_planted = if case.is_plain() {
        "not-checked"
    } else {
        "passed"
    };
    let is_found = verdict.trim_end() == case.verdict
        && touches.len() == case.touches.len()
        && touches.iter().zip(&case.touches).all(|(found, planted)| is_touch(found, planted))
        // Where a test touches a change, nobody asks what else may be.
        && (unknown == case.unknown || !touches.is_empty())
        && at_base == case.at_base.as_deref().unwrap_or(at_base_planted);
    (!is_found).then(|| {
        let id = text(&finding["id"]);
        let found = (verdict, touches, unknown, at_base);
        let planted = (&case.verdict, &case.touches, &case.unknown, &case.at_base);
        let attempts = finding["attempts"].as_array().into_iter().flatten();
        let messages: Vec<String> = attempts.map(|one| text(&one["message"])).collect();
        format!("--- {id}\nfound   {found:?}\nplanted {planted:?}\n{changes}\n{messages:?}")
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
