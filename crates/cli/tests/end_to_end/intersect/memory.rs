//! What the history knows of a failing test at the base.

use super::base::{repository, run, verdict};
use super::repository::SURROUNDINGS;
use crate::project::{Project, Python, Run};

const BY_SWITCH: &str = "import os\n\n\ndef test_tax():\n    assert not os.environ.get('SWITCH')\n";

/// CI makes no run at the base by itself.
const CI: (&str, &str) = ("CI", "true");

#[test]
fn in_ci_a_pass_at_the_base_that_the_history_has_is_one() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let files = [("notes.py", "ONE = 1\n"), ("test_shop.py", BY_SWITCH)];
    let (repository, _) = repository(&files);
    let project = &repository.project;
    let (_, passed) = run(project, &python, &[], &[]);
    assert_eq!(passed.code, Some(0), "{passed:#?}");
    project.write("notes.py", "ONE = 2\n");
    let off = ("SWITCH", "1");
    let (report, failed) = run(project, &python, &[], &[off, CI]);
    assert_eq!(verdict(&report), "flaky untouched passed", "{failed:#?}");
    let detail = report["findings"][0]["changes"]["at_base_detail"].as_str();
    let detail = detail.unwrap_or_default();
    assert!(detail.ends_with(", by the history"), "{failed:#?}");
    let (report, failed) = run(project, &python, &["--no-record"], &[off, CI]);
    assert_eq!(
        verdict(&report),
        "broken cannot-tell not-checked",
        "{failed:#?}"
    );
    // How it fares there now is worth more than how it fared.
    let (report, failed) = run(project, &python, &["--check-base"], &[off, CI]);
    assert_eq!(verdict(&report), "pre-existing fails-alike", "{failed:#?}");
    let (report, failed) = run(project, &python, &[], &[off]);
    assert_eq!(verdict(&report), "pre-existing fails-alike", "{failed:#?}");
}

#[test]
fn a_pass_with_other_packages_says_nothing_about_the_base() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let packages = Project::new();
    packages.write("old/money-1.0.dist-info/METADATA", "");
    packages.write("old/money.py", "TAX = 1\n");
    packages.write("new/money-2.0.dist-info/METADATA", "");
    packages.write("new/money.py", "TAX = 2\n");
    let [old, new] = ["old", "new"].map(|name| packages.path().join(name));
    let [old, new] = [&old, &new].map(|path| ("PYTHONPATH", path.to_str().unwrap()));
    let text = "import money\n\n\ndef test_tax():\n    assert money.TAX == 1\n";
    let (repository, _) = repository(&[("notes.py", "ONE = 1\n"), ("test_shop.py", text)]);
    let project = &repository.project;
    let (_, passed) = run(project, &python, &[], &[old]);
    assert_eq!(passed.code, Some(0), "{passed:#?}");
    project.write("notes.py", "ONE = 2\n");
    let (report, failed) = run(project, &python, &[], &[new, CI]);
    assert_eq!(
        verdict(&report),
        "broken cannot-tell not-checked",
        "{failed:#?}"
    );
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
    let off = [("SWITCH", "1"), CI];
    let (report, failed) = run(project, &python, &["--", "test_shop.py"], &off);
    assert_eq!(
        verdict(&report),
        "broken cannot-tell not-checked",
        "{failed:#?}"
    );
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
    for (surroundings, detail) in [(&[][..], false), (&[CI], true)] {
        let (report, failed) = run(project, &python, &[], surroundings);
        let changes = &report["findings"][0]["changes"];
        assert_eq!(changes["at_base"], "passed", "{failed:#?}");
        assert_eq!(changes["at_base_detail"].is_string(), detail, "{failed:#?}");
        assert_eq!(changes["base"], base.as_str());
    }
}
