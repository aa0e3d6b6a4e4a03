//! How a failing test fares at the base.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkfifo};
use serde_json::{Value, json};

use super::ONCE_IN_A_NEW_INTERPRETER;
use super::repository::{Repository, SURROUNDINGS};
use crate::project::{Project, Python, Run};

/// Runs unflake in a folder of a repository, with these arguments and variables.
pub(super) fn run(
    project: &Project,
    python: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Value, Run) {
    let mut all = vec!["run", "--python", python.to_str().unwrap()];
    all.extend(ONCE_IN_A_NEW_INTERPRETER);
    all.extend(arguments);
    let mut command = project.unflake(&all);
    command.envs(SURROUNDINGS).envs(variables.iter().copied());
    let run = Run::of(command.output().unwrap());
    let report = serde_json::from_str(&run.stdout).unwrap_or_default();
    (report, run)
}

/// A repository with these files committed.
pub(super) fn repository(files: &[(&str, &str)]) -> (Repository, String) {
    let repository = Repository::new();
    for (name, text) in files {
        repository.project.write(name, text);
    }
    let base = repository.commit();
    (repository, base)
}

/// The verdict of the only finding, with its kind, whose failure it is, and what that rests on.
pub(super) fn verdict(report: &Value) -> String {
    let findings = report["findings"].as_array();
    let Some([finding]) = findings.map(Vec::as_slice) else {
        panic!("not one finding: {report:#}");
    };
    let words = [
        &finding["verdict"],
        &finding["kind"],
        &finding["whose"]["answer"],
        &finding["whose"]["because"],
    ];
    let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
    words.join(" ")
}

pub(super) const FAILS: &str = "import shop\n\n\ndef test_tax():\n    assert shop.tax() == 1\n";

#[test]
fn a_failure_that_the_base_has_too_is_older_than_the_change() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [
        ("shop.py", "def tax():\n    return 2\n"),
        ("test_shop.py", FAILS),
    ];
    let (repository, _) = repository(&files);
    repository
        .project
        .write("shop.py", "def tax():\n    return 2 + 0\n");
    let (report, run) = run(&repository.project, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken not-yours at-base", "{run:#?}");
}

#[test]
fn another_failure_at_the_base_is_not_this_one() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [
        ("shop.py", "import gone\n"),
        (
            "test_shop.py",
            "def test_tax():\n    import shop\n\n    assert shop.TAX == 1\n",
        ),
    ];
    let (repository, _) = repository(&files);
    repository.project.write("shop.py", "TAX = 2\n");
    let (report, run) = run(&repository.project, &python, &[], &[]);
    assert_eq!(
        verdict(&report),
        "broken not-known base-cannot-run",
        "{run:#?}"
    );
    let sentence = report["findings"][0]["whose"]["sentence"].to_string();
    assert!(sentence.contains("No module named"), "{sentence}");
}

#[test]
fn a_test_that_the_base_does_not_have_is_yours() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (repository, _) = repository(&[("test_shop.py", "def test_old():\n    pass\n")]);
    let text = "def test_old():\n    pass\n\n\ndef test_new():\n    assert False\n";
    repository.project.write("test_shop.py", text);
    let (report, run) = run(&repository.project, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken yours new-test", "{run:#?}");
    repository
        .project
        .write("test_shop.py", "def test_old():\n    pass\n");
    repository
        .project
        .write("test_more.py", "def test_new():\n    assert False\n");
    // What is not tracked does not make HEAD the base.
    repository.git(&["add", "test_more.py"]);
    let (report, run) = self::run(&repository.project, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken yours new-test", "{run:#?}");
}

#[test]
fn a_path_into_the_work_tree_leads_into_the_base_there() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [
        ("src/shop.py", "def tax():\n    return 1\n"),
        ("tests/test_shop.py", FAILS),
    ];
    let (repository, _) = repository(&files);
    repository
        .project
        .write("src/shop.py", "def tax():\n    return 2\n");
    let path = repository
        .project
        .path()
        .canonicalize()
        .unwrap()
        .join("src");
    let variables = [("PYTHONPATH", path.to_str().unwrap())];
    let (report, run) = run(&repository.project, &python, &[], &variables);
    assert_eq!(verdict(&report), "broken yours fails-more", "{run:#?}");
}

#[test]
fn a_run_at_the_base_that_uses_the_work_tree_says_nothing() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let test = r#"
import os
import pathlib
import runpy

ROOT = pathlib.Path(os.environ["WORK_TREE"])


def test_content():
    assert runpy.run_path(str(ROOT / "program.py"))["TAX"] == 1


def test_presence():
    assert (ROOT / "data.txt").exists()


def test_list():
    assert len(list((ROOT / "data").iterdir())) == 1
"#;
    let files = [
        ("test_shop.py", test),
        ("program.py", "TAX = 1\n"),
        ("data.txt", ""),
        ("data/a.txt", ""),
    ];
    let (repository, _) = repository(&files);
    repository.project.write("program.py", "TAX = 2\n");
    repository.project.write("data/b.txt", "");
    fs::remove_file(repository.project.path().join("data.txt")).unwrap();
    let root = repository.project.path().canonicalize().unwrap();
    let variables = [("WORK_TREE", root.to_str().unwrap())];
    let (report, run) = run(&repository.project, &python, &[], &variables);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 3, "{run:#?}");
    for finding in findings {
        let whose = &finding["whose"];
        assert_eq!(whose["because"], "base-cannot-run", "{finding:#}");
        assert_ne!(whose["touches"], json!([]), "{finding:#}");
    }
}

#[test]
fn an_installed_copy_that_has_the_change_is_not_the_base() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    // The new file is only listed, and never read.
    let test = "import pkgutil\n\n\ndef test_names():\n    import shop\n\n    \
                assert len(list(pkgutil.iter_modules(shop.__path__))) == 1\n";
    let (repository, _) = repository(&[
        ("shop/__init__.py", ""),
        ("shop/one.py", ""),
        ("tests/test_shop.py", test),
    ]);
    repository.project.write("shop/two.py", "");
    repository.git(&["add", "shop/two.py"]);
    let elsewhere = Project::new();
    for name in ["__init__", "one", "two"] {
        elsewhere.write(&format!("site-packages/shop/{name}.py"), "");
    }
    let path = elsewhere.path().join("site-packages");
    let variables = [("PYTHONPATH", path.to_str().unwrap())];
    let (report, run) = run(&repository.project, &python, &[], &variables);
    assert_eq!(
        verdict(&report),
        "broken not-known base-cannot-run",
        "{run:#?}"
    );
}

#[test]
fn an_interruption_at_the_base_leaves_nothing_behind() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let test = r#"
import os
import threading


def test_tax():
    is_base = "unflake-base-" in __file__
    assert is_base
    with open(os.environ["READY"], "w") as pipe:
        pipe.write("ready")
    threading.Event().wait()
"#;
    let (repository, _) = repository(&[("test_shop.py", test), ("README.md", "")]);
    repository.project.write("README.md", "More.\n");
    let status = repository.git(&["status", "--porcelain"]);
    let index = fs::read(repository.project.path().join(".git/index")).unwrap();
    let scratch = Project::new();
    let ready = scratch.path().join("ready");
    mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let temporary = scratch.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut all = vec!["run", "--python", python.to_str().unwrap()];
    all.extend(ONCE_IN_A_NEW_INTERPRETER);
    let mut command = repository.project.unflake(&all);
    command.envs(SURROUNDINGS);
    command.env("READY", &ready).env("TMPDIR", &temporary);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = String::new();
    fs::File::open(&ready)
        .unwrap()
        .read_to_string(&mut words)
        .unwrap();
    assert_eq!(words, "ready");
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{run:#?}");
    let trees = repository.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(trees.matches("worktree ").count(), 1, "{trees}");
    let left: Vec<_> = fs::read_dir(&temporary)
        .unwrap()
        .map(|one| one.unwrap().path())
        .collect();
    assert!(
        left.iter()
            .all(|path| !path.to_string_lossy().contains("unflake")),
        "{left:?}"
    );
    assert_eq!(repository.git(&["status", "--porcelain"]), status);
    assert_eq!(
        fs::read(repository.project.path().join(".git/index")).unwrap(),
        index
    );
}

#[test]
fn a_ci_runs_the_base_too_unless_it_is_told_not_to() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let test = "def test_tax():\n    is_base = 'unflake-base-' in __file__\n    assert is_base\n";
    let (repository, _) = repository(&[("test_shop.py", test), ("README.md", "")]);
    repository.project.write("README.md", "More.\n");
    let ci = [("CI", "true")];
    let never = ["--check-base=never"];
    let (report, run) = run(&repository.project, &python, &never, &ci);
    assert_eq!(verdict(&report), "broken not-known not-asked", "{run:#?}");
    let settle = report["findings"][0]["whose"]["settle"].to_string();
    assert!(settle.contains("--check-base"), "{settle}");
    for variables in [&ci[..], &[]] {
        let (report, run) = self::run(&repository.project, &python, &[], variables);
        assert_eq!(
            verdict(&report),
            "flaky untouched not-yours untouched",
            "{run:#?}"
        );
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
}
