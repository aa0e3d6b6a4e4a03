//! What the history knows of a failing test at the base.

use super::base::{repository, run, verdict};
use super::repository::SURROUNDINGS;
use crate::project::{Python, Run};

const BY_SWITCH: &str = "import os\n\n\ndef test_tax():\n    assert not os.environ.get('SWITCH')\n";

#[test]
fn a_pass_at_the_base_that_the_history_has_needs_no_run_there() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [("notes.py", "ONE = 1\n"), ("test_shop.py", BY_SWITCH)];
    let (repository, _) = repository(&files);
    let project = &repository.project;
    let (_, passed) = run(project, &python, &[], &[]);
    assert_eq!(passed.code, Some(0), "{passed:#?}");
    project.write("notes.py", "ONE = 2\n");
    let off = [("SWITCH", "1")];
    let (report, failed) = run(project, &python, &[], &off);
    assert_eq!(verdict(&report), "flaky untouched passed", "{failed:#?}");
    let detail = report["findings"][0]["changes"]["at_base_detail"].as_str();
    let detail = detail.unwrap_or_default();
    assert!(detail.ends_with(", by the history"), "{failed:#?}");
    // In CI nothing is run at the base, but what is known is known.
    let (report, failed) = run(project, &python, &[], &[("SWITCH", "1"), ("CI", "true")]);
    assert_eq!(verdict(&report), "flaky untouched passed", "{failed:#?}");
    let (report, failed) = run(project, &python, &["--check-base"], &off);
    assert_eq!(verdict(&report), "pre-existing fails-alike", "{failed:#?}");
    let (report, failed) = run(project, &python, &["--no-record"], &off);
    assert_eq!(verdict(&report), "pre-existing fails-alike", "{failed:#?}");
}

#[test]
fn a_pass_with_other_changes_or_in_another_folder_says_nothing_about_the_base() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (repository, _) = repository(&[
        ("notes.py", "ONE = 1\n"),
        ("test_shop.py", BY_SWITCH),
        ("other/pytest.ini", "[pytest]\n"),
        ("other/test_shop.py", "def test_tax():\n    pass\n"),
    ]);
    let project = &repository.project;
    project.write("notes.py", "ONE = 2\n");
    let (_, dirty) = run(project, &python, &["--", "test_shop.py"], &[]);
    assert_eq!(dirty.code, Some(0), "{dirty:#?}");
    repository.commit();
    let mut elsewhere = project.unflake(&["run", "--python", python.to_str().unwrap()]);
    let elsewhere = elsewhere.current_dir(project.path().join("other"));
    let elsewhere = Run::of(elsewhere.envs(SURROUNDINGS).output().unwrap());
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:#?}");
    project.write("notes.py", "ONE = 3\n");
    let off = [("SWITCH", "1")];
    let (report, failed) = run(project, &python, &["--", "test_shop.py"], &off);
    assert_eq!(verdict(&report), "pre-existing fails-alike", "{failed:#?}");
}

#[test]
fn a_run_at_the_base_is_remembered_as_one_of_the_base() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let text =
        "import pathlib\n\n\ndef test_tax():\n    assert not pathlib.Path('local.txt').exists()\n";
    let files = [
        ("notes.py", "ONE = 1\n"),
        ("test_shop.py", text),
        (".gitignore", "local.txt\n"),
    ];
    let (repository, base) = repository(&files);
    let project = &repository.project;
    project.write("notes.py", "ONE = 2\n");
    project.write("local.txt", "");
    for detail in [false, true] {
        let (report, failed) = run(project, &python, &[], &[]);
        let changes = &report["findings"][0]["changes"];
        assert_eq!(changes["at_base"], "passed", "{failed:#?}");
        assert_eq!(changes["at_base_detail"].is_string(), detail, "{failed:#?}");
        assert_eq!(changes["base"], base.as_str());
    }
}
