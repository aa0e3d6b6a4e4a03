//! Which commit the base is, and what becomes of a failure where there is none.

use std::process::Command;

use super::base::{FAILS, repository, run, verdict};
use super::repository::SURROUNDINGS;
use crate::project::{Project, Python, Run};

#[test]
fn a_base_that_is_not_there_is_an_error_with_help() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (repository, _) = repository(&[("test_shop.py", "def test_tax():\n    pass\n")]);
    let (_, run) = run(&repository.project, &python, &["--base", "nowhere"], &[]);
    assert_eq!(run.code, Some(2), "{run:#?}");
    assert!(
        run.stderr.contains("there is no commit `nowhere`"),
        "{run:#?}"
    );
    assert!(run.stderr.contains("help:"), "{run:#?}");
}

#[test]
fn outside_a_repository_the_wish_to_compare_is_an_error() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_shop.py", "def test_tax():\n    assert False\n")]);
    let (_, run) = run(&project, &python, &["--intersect"], &[]);
    assert_eq!(run.code, Some(2), "{run:#?}");
    assert!(run.stderr.contains("is not in a git work tree"), "{run:#?}");
    let (report, run) = self::run(&project, &python, &[], &[]);
    assert_eq!(
        verdict(&report),
        "broken not-known no-repository",
        "{run:#?}"
    );
}

#[test]
fn a_shallow_clone_gets_the_command_that_brings_the_base() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [
        ("shop.py", "def tax():\n    return 1\n"),
        ("test_shop.py", FAILS),
    ];
    let (repository, _) = repository(&files);
    repository
        .project
        .write("shop.py", "def tax():\n    return 2\n");
    repository.commit();
    let clone = Project::new();
    let source = format!("file://{}", repository.project.path().display());
    repository.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        &source,
        clone.path().to_str().unwrap(),
    ]);
    let (report, run) = run(&clone, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken not-known no-base", "{run:#?}");
    let notes = report["notes"].to_string();
    let fetch = notes
        .split('`')
        .find(|part| part.starts_with("git fetch"))
        .expect(&notes);
    let mut command = Command::new("sh");
    command
        .args(["-c", fetch])
        .current_dir(clone.path())
        .envs(SURROUNDINGS);
    assert!(command.status().unwrap().success(), "{fetch}");
    let (report, run) = self::run(&clone, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken yours fails-more", "{run:#?}");
}

#[test]
fn a_file_that_the_suite_or_a_report_leaves_does_not_hide_a_committed_bug() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let leaves = "def test_leaves():\n    open('left.txt', 'w').close()\n";
    let files = [
        ("shop.py", "def tax():\n    return 1\n"),
        ("test_leaves.py", leaves),
        ("test_shop.py", FAILS),
    ];
    let (repository, _) = repository(&files);
    let project = &repository.project;
    project.write("shop.py", "def tax():\n    return 2\n");
    repository.commit();
    project.write(".venv/pyvenv.cfg", "");
    project.write(".venv/lib/a.py", "");
    let (report, run) = run(project, &python, &["--junit", "report.xml"], &[]);
    assert_eq!(verdict(&report), "broken yours fails-more", "{run:#?}");
    let whose = &report["findings"][0]["whose"];
    assert_eq!(whose["changed_files"], 1, "{whose:#}");
    let mut command = project.unflake(&["triage", "--format", "json", "--python"]);
    command.arg(&python).arg("report.xml").envs(SURROUNDINGS);
    let run = Run::of(command.output().unwrap());
    let report = serde_json::from_str(&run.stdout).unwrap_or_default();
    assert_eq!(verdict(&report), "broken yours fails-more", "{run:#?}");
}

#[test]
fn a_branch_is_held_against_the_default_branch_of_its_remote() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [
        ("shop.py", "def tax():\n    return 1\n"),
        ("test_shop.py", FAILS),
    ];
    let (repository, base) = repository(&files);
    let project = &repository.project;
    let remote = Project::new();
    let url = remote.path().join("shop.git");
    repository.git(&["clone", "--quiet", "--bare", ".", url.to_str().unwrap()]);
    repository.git(&["remote", "add", "origin", url.to_str().unwrap()]);
    repository.git(&["fetch", "--quiet", "origin"]);
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    project.write("shop.py", "def tax():\n    return 2\n");
    repository.commit();
    project.write("README.md", "");
    repository.commit();
    repository.git(&["push", "--quiet", "--set-upstream", "origin", "feature"]);
    project.write("README.md", "More.\n");
    let (report, run) = run(project, &python, &[], &[]);
    assert_eq!(verdict(&report), "broken yours fails-more", "{run:#?}");
    let whose = &report["findings"][0]["whose"];
    assert_eq!(whose["base"]["commit"], base.as_str());
}
