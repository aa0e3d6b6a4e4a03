//! Changes that arrive through files that git ignores: what the failing run read decides, not its name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::history::{History, Way};

/// Reads a table that some tool has made, from a file that git does not know.
fn reader(ignored: &str, read: &str) -> String {
    format!(
        "\n=== .gitignore\n__pycache__/\n.pytest_cache/\n{ignored}\n\
         === shop/__init__.py\n\
         === test_table.py\n{read}\n\n\ndef test_table():\n    assert table() == 1\n\
         === docs/notes.md\nTables.\n"
    )
}

/// A file that git ignores is as the base knew it, and is then made anew with other content; what git
/// sees of the change is a document only. Nobody may say that this is not the change's.
fn arrives(history: &History, make: impl Fn(u32)) {
    make(1);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [""; 0]);
    make(2);
    history.change(Way::Branch, &[("docs/notes.md", "Tables", "New tables")]);
    assert_eq!(
        history.fail_plainly(&history.tree(), &[]),
        ["test_table.py::test_table"]
    );
    for arguments in [&[][..], &["--check-base"]] {
        let said = history.run(arguments);
        said.ends(1).is_not_acquitted("test_table.py::test_table");
    }
    history.set("CI", "true");
    history
        .run(&["--forgive", "pre-existing"])
        .ends(1)
        .is_not_acquitted("test_table.py::test_table");
}

fn make_old(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(old).unwrap();
}

#[test]
fn a_generated_version() {
    let read = "def table():\n    from shop import _version\n\n    return _version.NUMBER";
    let Some(history) = History::at(&reader("_version.py", read)) else {
        return;
    };
    arrives(&history, |number| {
        history.write("shop/_version.py", &format!("NUMBER = {number}\n"));
    });
}

#[test]
fn the_metadata_of_an_installed_project() {
    let read = "def table():\n    import importlib.metadata\n\n    \
                return int(importlib.metadata.version(\"shop\"))";
    let Some(history) = History::at(&reader("*.egg-info/", read)) else {
        return;
    };
    arrives(&history, |number| {
        let text = format!("Metadata-Version: 2.1\nName: shop\nVersion: {number}\n");
        history.write("shop.egg-info/PKG-INFO", &text);
    });
}

#[test]
fn an_ignored_link_that_leads_out_of_the_tree() {
    let read = "def table():\n    import pathlib\n\n    \
                return int(pathlib.Path(__file__).with_name(\"bazel-bin\").joinpath(\"t\").read_text())";
    let Some(history) = History::at(&reader("bazel-bin", read)) else {
        return;
    };
    let output = history.place("bazel-output");
    fs::create_dir(&output).unwrap();
    symlink(&output, history.tree().join("bazel-bin")).unwrap();
    arrives(&history, |number| {
        fs::write(Path::new(&output).join("t"), number.to_string()).unwrap();
    });
}

#[test]
fn a_generated_file_that_is_older_than_the_base() {
    let read = "def table():\n    from shop import generated\n\n    return generated.NUMBER";
    let Some(history) = History::at(&reader("generated.py", read)) else {
        return;
    };
    arrives(&history, |number| {
        history.write("shop/generated.py", &format!("NUMBER = {number}\n"));
        make_old(&history.tree().join("shop/generated.py"));
    });
}

#[test]
fn a_data_file_that_was_unpacked_with_its_old_time() {
    let read = "def table():\n    import pathlib\n\n    \
                return int(pathlib.Path(__file__).with_name(\"data\").joinpath(\"t\").read_text())";
    let Some(history) = History::at(&reader("data/", read)) else {
        return;
    };
    arrives(&history, |number| {
        history.write("data/t", &number.to_string());
        make_old(&history.tree().join("data/t"));
    });
}

#[test]
fn a_folder_of_generated_files_that_is_only_listed() {
    let read = "def table():\n    import os\n\n    \
                return len(os.listdir(os.path.join(os.path.dirname(__file__), \"out\")))";
    let Some(history) = History::at(&reader("out/", read)) else {
        return;
    };
    arrives(&history, |number| {
        history.write(&format!("out/{number}"), "");
    });
}

#[test]
fn ignored_files_that_nobody_reads_are_no_change() {
    let base = "\n=== .gitignore\n__pycache__/\n.pytest_cache/\nbuild/\n_version.py\n\
                === test_coin.py\nimport coin\n\n\ndef test_coin():\n    assert coin.toss()\n\
                === docs/notes.md\nCoins.\n";
    let Some(history) = History::at(base) else {
        return;
    };
    history.write("build/table.txt", "1\n");
    history.write("_version.py", "NUMBER = 1\n");
    history.change(Way::Branch, &[("docs/notes.md", "Coins", "Two coins")]);
    let said = history.run(&[]);
    said.ends(0).is(
        "test_coin.py::test_coin",
        "not-yours",
        &["untouched", "at-base"],
    );
}

#[test]
fn a_generated_file_that_changed_since_the_commit_was_tested() {
    let read = "def table():\n    from shop import table\n\n    return table.NUMBER";
    let Some(history) = History::at(&reader("shop/table.py", read)) else {
        return;
    };
    let test = "test_table.py::test_table";
    history.write("shop/table.py", "NUMBER = 1\n");
    history.run(&[]).ends(0);
    history.write("shop/table.py", "NUMBER = 20\n");
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [test]);
    for arguments in [&[][..], &["--forgive", "pre-existing"]] {
        let said = history.run(arguments);
        said.ends(1).is_not_acquitted(test);
    }
}
