//! Changes that move the environment with them: what fails at the base too may fail there by the change.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use super::history::{History, Way};
use crate::project::Python;

/// A test of an installed package, which is not in the tree.
const TAX: &str = "
=== requirements.txt
tax==1
=== test_tax.py
import tax


def test_tax():
    assert tax.RATE == 1
";

/// Installs a version of the package where all interpreters of this history find it.
fn install(history: &History, version: u32) {
    let site = history.place("site");
    let info = Path::new(&site).join("tax.dist-info");
    fs::create_dir_all(&info).unwrap();
    let metadata = format!("Metadata-Version: 2.1\nName: tax\nVersion: {version}\n");
    fs::write(info.join("METADATA"), metadata).unwrap();
    fs::write(
        Path::new(&site).join("tax.py"),
        format!("RATE = {version}\n"),
    )
    .unwrap();
}

fn bump(file: &str) {
    let base = TAX.replace("requirements.txt", file);
    for way in [Way::Uncommitted, Way::Branch] {
        let Some(history) = History::at(&base) else {
            return;
        };
        history.set("PYTHONPATH", &history.place("site"));
        install(&history, 1);
        assert_eq!(history.fail_at_base(), [""; 0]);
        install(&history, 2);
        history.change(way, &[(file, "tax==1", "tax==2")]);
        let failed = history.fail_plainly(&history.tree(), &[]);
        assert_eq!(failed, ["test_tax.py::test_tax"]);
        if matches!(way, Way::Branch) {
            history.set("CI", "true");
        }
        let said = history.run(&["--check-base", "--forgive", "pre-existing"]);
        said.ends(1).is_not_acquitted("test_tax.py::test_tax");
        let whose = &said.finding("test_tax.py::test_tax")["whose"];
        if whose["answer"] == "not-known" {
            assert_eq!(whose["because"], "environment-moved", "{said}");
        }
    }
}

#[test]
fn a_bumped_requirement_with_the_new_package_installed() {
    bump("requirements.txt");
}

#[test]
fn a_bumped_lock_file_with_the_new_package_installed() {
    bump("poetry.lock");
}

#[test]
fn a_constraint_in_a_folder_of_requirements() {
    bump("requirements/test.txt");
}

#[test]
fn a_file_of_variables_that_is_loaded() {
    let Some(history) = History::at(
        r#"
=== .env
TAX_RATE=1
=== test_tax.py
import os


def test_tax():
    assert os.environ["TAX_RATE"] == "1"
"#,
    ) else {
        return;
    };
    history.set("TAX_RATE", "1");
    assert_eq!(history.fail_at_base(), [""; 0]);
    history.set("TAX_RATE", "2");
    history.change(Way::Branch, &[(".env", "=1", "=2")]);
    let failed = history.fail_plainly(&history.tree(), &[]);
    assert_eq!(failed, ["test_tax.py::test_tax"]);
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1)
        .is("test_tax.py::test_tax", "not-known", &["environment-moved"]);
}

/// A table that a program of the tree makes, and that git ignores.
const BUILT: &str = r#"
=== .gitignore
__pycache__/
.pytest_cache/
build/
=== make_table.py
import pathlib

pathlib.Path("build").mkdir(exist_ok=True)
pathlib.Path("build/table.txt").write_text("1")
=== test_table.py
import pathlib

TABLE = pathlib.Path(__file__).parent / "build/table.txt"


def test_table():
    text = TABLE.read_text() if TABLE.exists() else ""
    assert text == "1"
"#;

fn build(history: &History) {
    let mut python = history.command(history.python(), &history.tree());
    assert!(python.arg("make_table.py").status().unwrap().success());
}

#[test]
fn a_build_output_that_the_checkout_of_the_base_does_not_have() {
    let Some(history) = History::at(BUILT) else {
        return;
    };
    build(&history);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [""; 0]);
    history.change(Way::Branch, &[("make_table.py", "\"1\"", "\"2\"")]);
    build(&history);
    let failed = history.fail_plainly(&history.tree(), &[]);
    assert_eq!(failed, ["test_table.py::test_table"]);
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1).is_not_acquitted("test_table.py::test_table");
}

#[test]
fn a_command_that_builds_the_base_settles_it() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let python = python.display();
    let setup = format!("[base]\nsetup = \"{python} make_table.py\"\n");
    let base = format!("{BUILT}=== unflake.toml\n{setup}");
    let history = History::at(&base).unwrap();
    history.change(Way::Branch, &[("make_table.py", "\"1\"", "\"2\"")]);
    build(&history);
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1)
        .is("test_table.py::test_table", "yours", &["fails-more"]);
}

/// A service of the tree, which somebody has started before the tests.
const SERVICE: &str = r#"
=== service.py
import socketserver

RATE = b"1"


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(RATE)


if __name__ == "__main__":
    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
=== test_service.py
import os
import socket


def test_rate():
    address = ("127.0.0.1", int(os.environ["PORT"]))
    with socket.create_connection(address) as connection:
        assert connection.recv(10) == b"1"
"#;

/// A process that ends with the test.
struct Service(Child);

impl Service {
    fn start(history: &History) -> Self {
        let mut python = history.command(history.python(), &history.tree());
        let mut child = python
            .arg("service.py")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut port).unwrap();
        history.set("PORT", port.trim());
        Self(child)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().expect("the service still runs");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn a_service_that_was_started_from_the_work_tree() {
    let Some(history) = History::at(SERVICE) else {
        return;
    };
    let old = Service::start(&history);
    assert_eq!(history.fail_at_base(), [""; 0]);
    drop(old);
    history.change(Way::Branch, &[("service.py", "b\"1\"", "b\"2\"")]);
    let new = Service::start(&history);
    let failed = history.fail_plainly(&history.tree(), &[]);
    assert_eq!(failed, ["test_service.py::test_rate"]);
    let said = history.run(&["--check-base", "--forgive", "pre-existing"]);
    drop(new);
    said.ends(1).is_not_acquitted("test_service.py::test_rate");
}

#[test]
fn a_first_start_that_fails_and_heals_by_a_file_that_it_leaves() {
    let base = r#"
=== start.py
import pathlib

READY = pathlib.Path(__file__).with_name("ready")


def start():
    return True
=== test_start.py
import start


def test_start():
    assert start.start()
"#;
    let edit = (
        "start.py",
        "    return True",
        "    is_ready = READY.exists()\n    READY.touch()\n    return is_ready",
    );
    super::bug("test_start.py::test_start", base, &[edit], &["fails-more"]);
    let ignored = format!("{base}=== .gitignore\n__pycache__/\n.pytest_cache/\nready\n");
    super::bug(
        "test_start.py::test_start",
        &ignored,
        &[edit],
        &["fails-more"],
    );
}
