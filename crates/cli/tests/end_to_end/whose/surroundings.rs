//! What lies around the work tree: the name of its folder, and its siblings, which copies have as well.

use std::fs;
use std::path::Path;

use super::history::{Edit, History, Way};

/// A limit in a file beside the work tree, as in many a repository of many projects, and a default without it.
const SHARED: &str = r#"
=== shop.py
import os

SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared.cfg")


def limit():
    if not os.path.exists(SHARED):
        return 0
    with open(SHARED) as file:
        return int(file.read())


def allowed(number):
    return number + limit()
=== test_shop.py
import shop


def test_allowed():
    assert shop.allowed(1) == 6
"#;

const TEST: &str = "test_shop.py::test_allowed";

fn is_yours(base: &str, test: &str, edit: Edit, prepare: impl Fn(&History)) {
    for way in [Way::Uncommitted, Way::Branch] {
        let Some(history) = History::at(base) else {
            return;
        };
        prepare(&history);
        history.run(&[]).ends(0);
        history.change(way, &[edit]);
        if matches!(way, Way::Branch) {
            history.set("CI", "true");
        }
        // What fails at the base too would be forgiven.
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn a_file_beside_the_work_tree_is_there_in_both_copies_and_stays() {
    let edit = ("shop.py", "number + limit()", "number + limit() + 1");
    is_yours(SHARED, TEST, edit, |history| {
        fs::write(history.place("shared.cfg"), "5").unwrap();
    });
    let Some(history) = History::at(SHARED) else {
        return;
    };
    fs::write(history.place("shared.cfg"), "5").unwrap();
    fs::create_dir(history.place("common")).unwrap();
    fs::write(history.place("common/rates"), "1").unwrap();
    history.change(Way::Branch, &[edit]);
    history.run(&[]).ends(1).is(TEST, "yours", &["fails-more"]);
    for (name, text) in [("shared.cfg", "5"), ("common/rates", "1")] {
        assert_eq!(fs::read_to_string(history.place(name)).unwrap(), text);
    }
    let left = fs::read_dir(history.place("tmp")).unwrap();
    let mut left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.find(|name| name.starts_with("unflake-")), None);
    assert!(!history.tree().join(".git/worktrees").exists());
}

#[test]
fn a_file_beside_the_work_tree_that_the_failing_run_left_is_not_there() {
    let base = SHARED.replace("def allowed", "def leave():\n    pass\n\n\ndef allowed");
    let base = base.replace("    assert shop", "    shop.leave()\n    assert shop");
    let base = base.replace("== 6", "in (1, 6)");
    // The first run leaves what makes all others fail: in copies each run is a first one.
    let edit = (
        "shop.py",
        "def leave():\n    pass",
        "def leave():\n    with open(SHARED, \"x\") as file:\n        file.write(\"7\")",
    );
    is_yours(&base, TEST, edit, |history| {
        drop(fs::remove_file(history.place("shared.cfg")));
    });
}

#[test]
fn a_package_beside_the_work_tree_is_imported_at_the_base_too() {
    let base = "
=== shop.py
import sys

sys.path.insert(0, \"..\")


def total(number):
    import rates

    return number * rates.RATE
=== test_shop.py
import shop


def test_total():
    assert shop.total(2) == 6
";
    let edit = ("shop.py", "number * rates", "1 + number * rates");
    is_yours(base, "test_shop.py::test_total", edit, |history| {
        let folder = history.place("rates");
        fs::create_dir(&folder).unwrap();
        fs::write(Path::new(&folder).join("__init__.py"), "RATE = 3\n").unwrap();
    });
}

#[test]
fn a_configuration_above_the_work_tree_is_found_from_the_copies() {
    let base = SHARED.replace("= 6", "= 1");
    let Some(history) = History::at(&base) else {
        return;
    };
    history.git(&["rm", "--quiet", "pytest.ini"]);
    history.commit("settings of all projects");
    history.git(&["push", "--quiet", "origin", "main"]);
    let settings = "[pytest]\npythonpath = tree\n";
    fs::write(history.place("pytest.ini"), settings).unwrap();
    history.run(&[]).ends(0);
    let edit = ("shop.py", "number + limit()", "number + limit() + 1");
    history.change(Way::Branch, &[edit]);
    let test = format!("tree/{TEST}");
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1).is(&test, "yours", &["fails-more"]);
}

#[test]
fn the_folder_of_the_work_tree_has_its_name_at_the_base_too() {
    let base = "
=== shop.py
import os


def name():
    return os.path.basename(os.path.dirname(os.path.abspath(__file__)))
=== test_shop.py
import shop


def test_name():
    assert shop.name() == \"tree\"
";
    let edit = ("shop.py", "__file__)))", "__file__))) + \"s\"");
    is_yours(base, "test_shop.py::test_name", edit, |_| ());
}

#[test]
fn a_run_at_the_base_that_reaches_the_work_tree_through_a_sibling_is_no_evidence() {
    // The sibling knows the way to the work tree: at the base it leads to the changed file.
    let base = "
=== shop.py
import pathlib

HERE = pathlib.Path(__file__).parent
REAL = (HERE / \"../tools/tool.txt\").resolve().parent.parent / \"tree\"


def price():
    return int((REAL / \"price.txt\").read_text())
=== price.txt
5
=== test_shop.py
import shop


def test_price():
    assert shop.price() == 5
";
    let Some(history) = History::at(base) else {
        return;
    };
    fs::create_dir(history.place("tools")).unwrap();
    fs::write(history.place("tools/tool.txt"), "").unwrap();
    history.run(&[]).ends(0);
    history.change(Way::Branch, &[("price.txt", "5", "6")]);
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1).is(
        "test_shop.py::test_price",
        "not-known",
        &["base-cannot-run"],
    );
}
