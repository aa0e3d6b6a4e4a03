//! The first errors that a newcomer meets: each says what is wrong and what to do next.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::project::{Project, Python, Run};

const FINE: (&str, &str) = ("test_fine.py", "def test_fine(): pass\n");

fn assert_error(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:#?}");
    assert_eq!(run.stdout, "", "errors belong on standard error");
    assert!(run.stderr.starts_with("error: "), "{run:#?}");
    for part in parts {
        assert!(run.stderr.contains(part), "no {part:?} in {run:#?}");
    }
}

#[test]
fn pytest_is_missing() {
    let Some(python) = Python::Bare.find() else {
        return;
    };
    let run = Project::with(&[FINE]).run(&python, &[]);
    assert_error(&run, 3, &["has no pytest", "cause:", "pip install pytest"]);
}

#[test]
fn there_are_no_tests() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let run = Project::new().run(&python, &[]);
    assert_error(&run, 3, &["found no tests in", "unflake run -- tests/"]);
}

#[test]
fn all_tests_are_deselected() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let run = Project::with(&[FINE]).run(&python, &["--", "-k", "nothing"]);
    assert_error(
        &run,
        3,
        &["found no tests", "1 test was found and deselected"],
    );
}

#[test]
fn a_path_does_not_exist() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let run = Project::with(&[FINE]).run(&python, &["--", "nowhere"]);
    let parts = [
        "before it listed its tests",
        "file or directory not found: nowhere",
        "help:",
    ];
    assert_error(&run, 3, &parts);
}

#[test]
fn an_option_of_pytest_does_not_exist() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let run = Project::with(&[FINE]).run(&python, &["--", "--nonsense"]);
    assert_error(&run, 3, &["unrecognized arguments: --nonsense"]);
}

#[test]
fn a_conftest_cannot_be_imported() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[FINE, ("conftest.py", "import nothing_like_it\n")]);
    let run = project.run(&python, &[]);
    assert_error(
        &run,
        3,
        &["No module named 'nothing_like_it'", "--collect-only"],
    );
}

#[test]
fn the_interpreter_does_not_exist() {
    let run = Project::with(&[FINE]).run(Path::new("no/such/python"), &[]);
    assert_error(
        &run,
        2,
        &["there is no Python at `no/such/python`", "help:"],
    );
}

#[test]
fn the_interpreter_is_too_old() {
    let project = Project::with(&[FINE]);
    // Stands in for Python 3.6: it answers the question for its version and can do nothing else.
    let script = "#!/bin/sh\nif [ \"$1\" = -c ]; then echo '3 6'; else exit 1; fi\n";
    project.write("old-python", script);
    let python = project.path().join("old-python");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let run = project.run(&python, &[]);
    assert_error(
        &run,
        2,
        &["is Python 3.6, and unflake needs 3.8 or later", "--python"],
    );
}

#[test]
fn the_configuration_is_wrong() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cases = [
        ("[run]\nimediate = 2\n", "did you mean `run.immediate`?"),
        (
            "[run]\nflaky = \"maybe\"\n",
            "`run.flaky` is \"pass\" or \"fail\"",
        ),
        (
            "[run]\nnot-known = \"maybe\"\n",
            "`run.not-known` is \"pass\" or \"fail\"",
        ),
        (
            "[run]\nforgive = \"all\"\n",
            "`run.forgive` is \"pre-existing\"",
        ),
        ("[base]\nbudget = -1\n", "`base.budget` is wrong"),
        ("[base]\nset-up = \"make\"\n", "did you mean `base.setup`?"),
        ("[run]\ntimeout = -1\n", "`run.timeout` is wrong"),
        ("[run]\nthreshold = \"200%\"\n", "`run.threshold` is wrong"),
        ("[run]\njobs = 0\n", "`run.jobs` is 1 or more"),
        ("[run\n", "is not valid TOML"),
    ];
    for (text, part) in cases {
        let run = Project::with(&[FINE, ("unflake.toml", text)]).run(&python, &[]);
        assert_error(&run, 2, &[part, "unflake.toml", "help:"]);
    }
}

#[test]
fn the_configuration_cannot_be_read() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[FINE]);
    fs::create_dir(project.path().join("unflake.toml")).unwrap();
    let run = project.run(&python, &[]);
    assert_error(&run, 2, &["cannot read", "unflake.toml", "cause:"]);
}

#[test]
fn options_that_want_a_terminal_or_no_run_are_refused() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[FINE]);
    assert_error(&project.run(&python, &["--", "--pdb"]), 2, &["debugger"]);
    let run = project.run(&python, &["--", "--collect-only"]);
    assert_error(&run, 2, &["--collect-only", "unflake list"]);
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[FINE]);
    let run = project.run(&python, &["--junit", "no/such/folder/report.xml"]);
    let parts = [
        "cannot write no/such/folder/report.xml",
        "cause:",
        "nothing was run",
    ];
    assert_error(&run, 2, &parts);
}

#[test]
fn a_full_temporary_folder_is_an_error_that_says_so() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[FINE]);
    let python = python.to_str().unwrap();
    let mut command = project.unflake(&["run", "--python", python]);
    let nowhere: PathBuf = project.path().join("no-such-folder");
    let run = Run::of(command.env("TMPDIR", nowhere).output().unwrap());
    assert_error(&run, 3, &["cannot prepare a folder", "TMPDIR"]);
}

#[test]
fn the_active_virtualenv_is_used_and_then_the_projects_own() {
    let (Some(plain), Some(bare)) = (Python::Plain.find(), Python::Bare.find()) else {
        return;
    };
    let home = |python: &Path| python.parent().unwrap().parent().unwrap().to_owned();
    let project = Project::with(&[FINE]);
    std::os::unix::fs::symlink(home(&plain), project.path().join(".venv")).unwrap();
    let found = Run::of(project.unflake(&["list"]).output().unwrap());
    assert_eq!(found.stdout, "test_fine.py::test_fine\n", "{found:#?}");
    let mut command = project.unflake(&["list"]);
    let active = Run::of(command.env("VIRTUAL_ENV", home(&bare)).output().unwrap());
    assert_error(&active, 3, &["has no pytest"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[
        FINE,
        ("test_broken.py", "def test_broken(): assert False\n"),
        ("report.xml", "<testsuite><testcase name='a'/></testsuite>"),
    ]);
    let python = python.to_str().unwrap();
    let in_python = |verb: &'static str| [verb, "--python", python];
    let verbs: [(Vec<&str>, i32); 6] = [
        (in_python("list").to_vec(), 0),
        ([&in_python("list")[..], &["--format", "json"]].concat(), 0),
        (in_python("run").to_vec(), 1),
        ([&in_python("run")[..], &["--", "test_fine.py"]].concat(), 0),
        (vec!["triage", "report.xml"], 0),
        (vec!["simulate", "-"], 0),
    ];
    for (arguments, code) in verbs {
        let mut command = project.unflake(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut unflake = command.spawn().unwrap();
        drop(unflake.stdout.take());
        let run = Run::of(unflake.wait_with_output().unwrap());
        assert_eq!(run.code, Some(code), "{arguments:?}: {run:#?}");
        assert!(!run.stderr.contains("error:"), "{arguments:?}: {run:#?}");
    }
}

#[test]
fn a_project_of_another_build_tool_is_told_what_can_be_done() {
    let gradle = [
        ("build.gradle.kts", ""),
        ("src/test/java/ShopTest.java", ""),
    ];
    for verb in ["run", "list", "nio", "order"] {
        let output = Project::with(&gradle).unflake(&[verb]).output();
        let parts = [
            "is a project of Gradle, and unflake runs tests with pytest or Maven",
            "unflake record build/test-results",
            "--python",
        ];
        assert_error(&Run::of(output.unwrap()), 2, &parts);
    }
}

#[test]
fn python_tests_beside_another_build_tool_are_run() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("package.json", "{}"), ("tests/test_a.py", FINE.1)]);
    let mut command = project.unflake(&["run"]);
    let path = std::env::var("PATH").unwrap();
    let bin = python.parent().unwrap().to_str().unwrap();
    let run = Run::of(
        command
            .env("PATH", format!("{bin}:{path}"))
            .output()
            .unwrap(),
    );
    assert_eq!(run.code, Some(0), "{run:#?}");
}
