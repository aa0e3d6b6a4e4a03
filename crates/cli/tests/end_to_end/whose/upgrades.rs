//! Changes of what is installed: the base runs with what its own files ask for, if that can be had.

use std::fs;
use std::path::{Path, PathBuf};

use super::history::{Edit, History, Way};
use super::said::Said;
use crate::project::Python;

/// Packages as files of a registry, each with a rate that is its version. Nothing is fetched from anywhere.
const WHEELS: &str = r#"
import pathlib
import sys
import zipfile

folder = pathlib.Path(sys.argv[1])
folder.mkdir()
for name, version, needs in [("tax", 1, ""), ("tax", 2, ""), ("levy", 1, ""), ("duty", 1, "Requires-Dist: levy\n")]:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"RATE = {version}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
"#;

/// A test of an installed package, and one that has always failed.
const TAX: &str = "
=== requirements.txt
tax==1
pytest
=== test_tax.py
import tax


def test_tax():
    assert tax.RATE == 1


def test_old():
    assert tax.RATE == 3
";

const UPGRADED: &str = "test_tax.py::test_tax";
const OLD: &str = "test_tax.py::test_old";
const BUMP: Edit = ("requirements.txt", "tax==1", "tax==2");

/// The tests of a history, in an environment of the user's with these packages.
fn with_packages(base: &str, packages: &[&str]) -> Option<History> {
    let plain = Python::Plain.find()?;
    let history = History::at(base)?;
    let tree = history.tree();
    let python = |arguments: &[&str]| {
        let mut python = history.command(&plain, &tree);
        let output = python.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (wheels, home) = (history.place("wheels"), history.place("venv"));
    python(&["-c", WHEELS, &wheels]);
    python(&["-m", "venv", "--without-pip", &home]);
    let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let plain_site = python(&["-c", script]);
    let own = site(&history);
    // pytest and pip are there as well.
    fs::write(own.join("plain.pth"), plain_site).unwrap();
    for name in packages {
        let wheel = format!("{wheels}/{name}-py3-none-any.whl");
        python(&["-m", "zipfile", "-e", &wheel, own.to_str().unwrap()]);
    }
    history.set("PIP_FIND_LINKS", &wheels);
    let user = Path::new(&home).join("bin/python");
    Some(history.with_python(user))
}

/// Where the packages of the user's environment are.
fn site(history: &History) -> PathBuf {
    let lib = Path::new(&history.place("venv")).join("lib");
    let python = fs::read_dir(lib).unwrap().next().unwrap().unwrap();
    python.path().join("site-packages")
}

/// The files of the user's environment, but for what Python caches.
fn files(history: &History) -> Vec<PathBuf> {
    let mut folders = vec![site(history)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn examine(history: &History) -> Said {
    let before = files(history);
    let said = history.run(&["--forgive", "pre-existing"]);
    assert_eq!(files(history), before, "the user's environment");
    let left = fs::read_dir(history.place("tmp")).unwrap().count();
    assert_eq!(left, 0, "temporary files");
    assert_eq!(history.git(&["status", "--porcelain"]), "");
    said
}

fn sentence(said: &Said, test: &str) -> String {
    let sentence = said.finding(test)["whose"]["sentence"].as_str();
    sentence.unwrap().to_owned()
}

#[test]
fn an_upgrade_that_breaks_a_test_is_yours_and_what_failed_before_is_not() {
    let Some(history) = with_packages(TAX, &["tax-2"]) else {
        return;
    };
    history.change(Way::Branch, &[BUMP]);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [UPGRADED, OLD]);
    let said = examine(&history);
    said.ends(1).is(UPGRADED, "yours", &["fails-more"]);
    let touches = &said.finding(UPGRADED)["whose"]["touches"];
    assert_eq!(touches[0]["file"], "requirements.txt", "{said}");
    // It fails there in the same way: the rate is another, and so is the message's number.
    said.is(OLD, "not-yours", &["at-base"]);
}

#[test]
fn a_lock_file_and_a_pyproject_are_read_as_well() {
    let lock = |version| format!("[[package]]\nname = \"tax\"\nversion = \"{version}\"\n");
    let project = |version| {
        format!(
            "[project]\nname = \"shop\"\nversion = \"1\"\ndependencies = [\"tax>={version}\"]\n"
        )
    };
    let base = format!(
        "{TAX}=== uv.lock\n{}=== pyproject.toml\n{}",
        lock(1),
        project(1)
    )
    .replace("tax==1\n", "");
    let Some(history) = with_packages(&base, &["tax-2"]) else {
        return;
    };
    history.begin(Way::Branch);
    history.write("uv.lock", &lock(2));
    history.write("pyproject.toml", &project(2));
    history.end(Way::Branch);
    let said = examine(&history);
    said.ends(1).is(UPGRADED, "yours", &["fails-more"]);
    said.is(OLD, "not-yours", &["at-base"]);
}

#[test]
fn what_cannot_be_had_leaves_it_open_and_is_told() {
    let Some(history) = with_packages(TAX, &["tax-2"]) else {
        return;
    };
    history.set("PIP_FIND_LINKS", &history.place("home"));
    history.change(Way::Branch, &[BUMP]);
    let said = examine(&history);
    for test in [UPGRADED, OLD] {
        said.ends(1).is(test, "not-known", &["environment-moved"]);
        assert!(sentence(&said, test).contains("pip failed: "), "{said}");
    }
}

#[test]
fn a_package_that_is_found_before_all_others_is_not_the_bases() {
    let Some(history) = with_packages(TAX, &[]) else {
        return;
    };
    let named = history.place("named");
    let wheel = history.place("wheels/tax-2-py3-none-any.whl");
    let mut unpack = history.command(history.python(), &history.tree());
    unpack.args(["-m", "zipfile", "-e", &wheel, &named]);
    assert!(unpack.status().unwrap().success());
    history.set("PYTHONPATH", &named);
    history.change(Way::Branch, &[BUMP]);
    let said = examine(&history);
    said.ends(1)
        .is(UPGRADED, "not-known", &["environment-moved"]);
    let why = "(the base has none of its own: tax 2 is found in";
    assert!(sentence(&said, UPGRADED).contains(why), "{said}");
}

#[test]
fn a_module_that_is_no_package_is_not_the_bases() {
    let Some(history) = with_packages(TAX, &[]) else {
        return;
    };
    let named = history.place("named");
    fs::create_dir(&named).unwrap();
    fs::write(Path::new(&named).join("tax.py"), "RATE = 2\n").unwrap();
    history.set("PYTHONPATH", &named);
    history.change(Way::Branch, &[BUMP]);
    let said = examine(&history);
    said.ends(1)
        .is(UPGRADED, "not-known", &["environment-moved"]);
}

#[test]
fn a_process_that_goes_round_the_bases_environment_is_no_evidence() {
    let base = "
=== requirements.txt
tax==1
pytest
=== test_tax.py
import os
import subprocess


def test_tax():
    command = [os.environ[\"USERS_PYTHON\"], \"-c\", \"import tax; print(tax.RATE)\"]
    assert subprocess.check_output(command, text=True) == \"1\\n\"
";
    let Some(history) = with_packages(base, &["tax-2"]) else {
        return;
    };
    let python = history.python().display().to_string();
    history.set("USERS_PYTHON", &python);
    history.change(Way::Branch, &[BUMP]);
    let said = examine(&history);
    said.ends(1).is(UPGRADED, "not-known", &["base-cannot-run"]);
    let why = sentence(&said, UPGRADED);
    assert!(why.contains("tax.py of your environment"), "{said}");
}

#[test]
fn a_requirement_that_the_upgrade_meets_as_well_leaves_it_open() {
    let base = TAX.replace("tax==1", "tax>=1");
    let Some(history) = with_packages(&base, &["tax-2"]) else {
        return;
    };
    history.change(Way::Branch, &[("requirements.txt", "tax>=1", "tax>=2")]);
    let said = examine(&history);
    said.ends(1)
        .is(UPGRADED, "not-known", &["environment-moved"]);
    let why = "tax>=1 leaves open which version there was";
    assert!(sentence(&said, UPGRADED).contains(why), "{said}");
}

/// A test that fails if a package is there.
const LONELY: &str = "
=== requirements.txt
pytest
=== test_levy.py
import importlib.util


def test_levy():
    assert importlib.util.find_spec(\"levy\") is None
";

#[test]
fn a_package_that_came_with_the_change_is_not_there_at_the_base() {
    let Some(history) = with_packages(LONELY, &["levy-1"]) else {
        return;
    };
    history.change(Way::Branch, &[("requirements.txt", "", "levy\n")]);
    let test = "test_levy.py::test_levy";
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [test]);
    examine(&history).ends(1).is(test, "yours", &["fails-more"]);
    // One that another package needs was there before.
    let needed = LONELY.replace("pytest\n", "pytest\nduty\n");
    let history = with_packages(&needed, &["levy-1", "duty-1"]).unwrap();
    history.change(Way::Branch, &[("requirements.txt", "", "levy\n")]);
    examine(&history)
        .ends(0)
        .is(test, "not-yours", &["at-base"]);
}

#[test]
fn a_file_of_variables_that_changed_too_leaves_it_open() {
    let base = format!("{TAX}=== .env\nA=1\n");
    let Some(history) = with_packages(&base, &["tax-2"]) else {
        return;
    };
    history.change(Way::Branch, &[BUMP, (".env", "A=1", "A=2")]);
    let said = examine(&history);
    said.ends(1).is(UPGRADED, "yours", &["fails-more"]);
    said.is(OLD, "not-known", &["environment-moved"]);
    assert!(sentence(&said, OLD).ends_with("and .env changed"), "{said}");
}

#[test]
fn a_setup_that_makes_no_environment_leaves_it_open() {
    let base = format!("{TAX}=== unflake.toml\n[base]\nsetup = \"echo generated > gen.txt\"\n");
    let Some(history) = with_packages(&base, &["tax-2"]) else {
        return;
    };
    history.change(Way::Branch, &[BUMP]);
    let said = examine(&history);
    for test in [UPGRADED, OLD] {
        said.ends(1).is(test, "not-known", &["environment-moved"]);
    }
}

#[test]
fn a_setup_that_makes_an_environment_settles_what_is_installed_and_nothing_else() {
    for also in [None, Some((".env", "A=1", "A=2"))] {
        let Some(history) = with_packages(&format!("{TAX}=== .env\nA=1\n"), &["tax-2"]) else {
            return;
        };
        let python = history.python().display().to_string();
        let (plain, wheels) = (site(&history).join("plain.pth"), history.place("wheels"));
        let setup = format!(
            "{python} -m venv --without-pip .venv && cp {} .venv/lib/python*/site-packages \
             && {python} -m zipfile -e {wheels}/tax-1-py3-none-any.whl .venv/lib/python*/site-packages",
            plain.display()
        );
        history.write("unflake.toml", &format!("[base]\nsetup = \"{setup}\"\n"));
        history.commit("a setup");
        history.git(&["push", "--quiet", "origin", "main"]);
        let edits: Vec<Edit> = [BUMP].into_iter().chain(also).collect();
        history.change(Way::Branch, &edits);
        let said = examine(&history);
        said.ends(1).is(UPGRADED, "yours", &["fails-more"]);
        match also {
            None => said.is(OLD, "not-yours", &["at-base"]),
            Some(_) => said.is(OLD, "not-known", &["environment-moved"]),
        };
    }
}
