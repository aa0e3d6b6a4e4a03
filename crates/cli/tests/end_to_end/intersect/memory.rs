//! What the history knows of a failing test at the base.

use super::base::{repository, run, verdict};
use super::repository::SURROUNDINGS;
use crate::project::{Project, Python, Run};

const BY_SWITCH: &str = "import os\n\n\ndef test_tax():\n    assert not os.environ.get('SWITCH')\n";

const CI: (&str, &str) = ("CI", "true");

#[test]
fn a_pass_of_another_day_at_the_base_acquits_nobody() {
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
    for (arguments, variables) in [
        (&[][..], &[off, CI][..]),
        (&["--no-record"], &[off, CI]),
        (&[], &[off]),
    ] {
        let (report, failed) = run(project, &python, arguments, variables);
        assert_eq!(verdict(&report), "broken not-yours at-base", "{failed:#?}");
        assert_eq!(failed.code, Some(1), "{failed:#?}");
    }
    let never = ["--check-base=never"];
    let (report, failed) = run(project, &python, &never, &[off, CI]);
    assert_eq!(
        verdict(&report),
        "broken not-known not-asked",
        "{failed:#?}"
    );
    let forgiven = ["--forgive", "pre-existing"];
    let (_, failed) = run(project, &python, &forgiven, &[off]);
    assert_eq!(failed.code, Some(0), "{failed:#?}");
}

#[test]
fn a_pass_at_the_base_with_other_packages_acquits_nobody() {
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
    assert_eq!(verdict(&report), "broken not-yours at-base", "{failed:#?}");
}

#[test]
fn a_pass_with_other_changes_or_in_another_folder_acquits_nobody() {
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
    assert_eq!(verdict(&report), "broken not-yours at-base", "{failed:#?}");
}
