//! A failure that comes once, beside a change of documents: it is excused if nobody had used them when it failed.

use std::path::Path;

use super::history::{Edit, History, Way};

/// A test that fails when it first runs, and whatever `uses` are made of the files around it.
fn once(uses: &str) -> String {
    format!(
        r#"
=== .gitignore
__pycache__/
.pytest_cache/
_version.py
=== test_once.py
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent


def is_first():
    try:
        open(os.environ["OUTSIDE"] + "/once", "x").close()
    except FileExistsError:
        return False
    return True


def test_before():
    {uses}


def test_once():
    assert not is_first()
=== docs/notes.md
Tea.
=== docs/more.md
Mugs.
"#
    )
}

const TEST: &str = "test_once.py::test_once";
const NOTES: Edit = ("docs/notes.md", "Tea", "Coffee");

/// The premise: once and no more, with the change as without it.
fn history(uses: &str, edits: &[Edit]) -> Option<History> {
    let history = History::at(&once(uses))?;
    assert_eq!(history.fail_at_base(), [TEST]);
    history.change(Way::Branch, edits);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [TEST]);
    Some(history)
}

fn is_excused(uses: &str, edits: &[Edit], arguments: &[&str]) {
    let Some(history) = history(uses, edits) else {
        return;
    };
    let said = history.run(arguments);
    said.ends(0).is(TEST, "not-yours", &["untouched"]);
    said.fails_as(TEST, "flaky");
}

fn is_not_excused(uses: &str, edits: &[Edit]) {
    let Some(history) = history(uses, edits) else {
        return;
    };
    let said = history.run(&[]);
    said.ends(1).is(TEST, "not-known", &["not-settled"]);
    said.fails_as(TEST, "flaky");
}

#[test]
fn documents_that_nobody_uses_cost_no_checkout_of_the_base() {
    let Some(history) = history("pass", &[NOTES]) else {
        return;
    };
    let made = Path::new(&history.place("outside")).join("base");
    let setup = format!("[base]\nsetup = \"touch {}\"\n", made.display());
    let config = history.place("unflake.toml");
    std::fs::write(&config, setup).unwrap();
    let said = history.run(&["--config", &config]);
    said.ends(0).is(TEST, "not-yours", &["untouched"]);
    assert!(!made.exists(), "there was a checkout of the base");
}

#[test]
fn a_new_document_that_nobody_lists() {
    is_excused(
        "pass",
        &[("docs/new.md", "", "Cups.\n")],
        &["--", "test_once.py"],
    );
}

#[test]
fn several_interpreters_share_the_eye() {
    is_excused("pass", &[NOTES], &["--jobs", "2"]);
}

#[test]
fn nothing_is_run_at_the_base_where_nobody_wants_that() {
    is_excused("pass", &[NOTES], &["--check-base=never"]);
}

#[test]
fn an_interpreter_that_died_once() {
    let dies = once("pass").replace("assert not is_first()", "is_first() and os._exit(1)");
    let Some(history) = History::at(&dies) else {
        return;
    };
    history.change(Way::Branch, &[NOTES]);
    let said = history.run(&[]);
    said.ends(0).is(TEST, "not-yours", &["untouched"]);
}

#[test]
fn a_document_that_the_product_reads() {
    let base = once("pass").replace(
        "assert not is_first()",
        "text = (HERE / \"docs/notes.md\").read_text()\n    assert not is_first(), text",
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(Way::Branch, &[NOTES]);
    let said = history.run(&[]);
    said.ends(1).is(TEST, "not-known", &["not-settled"]);
}

#[test]
fn a_document_that_an_earlier_test_reads() {
    is_not_excused("(HERE / \"docs/notes.md\").read_text()", &[NOTES]);
}

#[test]
fn a_document_that_another_program_reads() {
    is_not_excused(
        "subprocess.run([\"cat\", str(HERE / \"docs/notes.md\")], check=True)",
        &[NOTES],
    );
}

#[test]
fn a_new_document_among_those_that_are_listed() {
    is_not_excused(
        "list((HERE / \"docs\").glob(\"*.md\"))",
        &[("docs/new.md", "", "Cups.\n")],
    );
}

#[test]
fn a_document_that_is_gone_and_looked_for() {
    let Some(history) = History::at(&once("(HERE / \"docs/notes.md\").exists()")) else {
        return;
    };
    history.begin(Way::Branch);
    history.git(&["rm", "--quiet", "docs/notes.md"]);
    history.end(Way::Branch);
    let said = history.run(&[]);
    said.ends(1).is(TEST, "not-known", &["not-settled"]);
}

#[test]
fn a_file_that_git_ignores_and_that_is_loaded_from_its_compiled_form() {
    let Some(history) = History::at(&once("import _version")) else {
        return;
    };
    // An empty value lets Python write compiled files.
    history.set("PYTHONDONTWRITEBYTECODE", "");
    history.write("_version.py", "NUMBER = 2\n");
    history.change(Way::Branch, &[NOTES]);
    let mut python = history.command(history.python(), &history.tree());
    let loaded = python.args(["-c", "import _version"]).status();
    assert!(loaded.unwrap().success());
    assert!(history.tree().join("__pycache__").is_dir());
    let said = history.run(&[]);
    said.ends(1).is(TEST, "not-known", &["not-settled"]);
}

#[test]
fn the_commit_itself_as_a_test_sees_it() {
    is_not_excused(
        "subprocess.run([\"git\", \"rev-parse\", \"HEAD\"], cwd=HERE, check=True)",
        &[NOTES],
    );
}
