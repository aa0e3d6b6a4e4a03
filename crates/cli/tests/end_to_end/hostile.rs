//! `unflake nio` on tests that do their worst, and when it is interrupted.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;

use crate::hunt::{found, nio_json, tree};
use crate::project::{Project, Python, Run};

const HANGS: &str = r#"
import os
import subprocess
import threading


def test_hangs():
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    with open(os.environ["UNFLAKE_TEST_PIPE"], "w") as pipe:
        pipe.write(f"{os.getpid()} {child.pid}")
    threading.Event().wait()
"#;

#[test]
fn an_interrupted_hunt_leaves_no_process_and_no_folder() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    for mode in ["suite", "method"] {
        let project = Project::with(&[("test_hang.py", HANGS)]);
        let outside = TempDir::with_prefix("unflake-test-").unwrap();
        let pipe = outside.path().join("pipe");
        let temporary = outside.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut command =
            project.unflake(&["nio", "--python", python.to_str().unwrap(), "--mode", mode]);
        command
            .env("TMPDIR", &temporary)
            .env("UNFLAKE_TEST_PIPE", &pipe);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut words = String::new();
        File::open(&pipe)
            .unwrap()
            .read_to_string(&mut words)
            .unwrap();
        kill(
            Pid::from_raw(child.id().try_into().unwrap()),
            Signal::SIGINT,
        )
        .unwrap();
        let run = Run::of(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(130), "{run:#?}");
        for pid in words.split(' ') {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_dead = state.is_empty() || state.contains(") Z ") || state.contains(") X ");
            assert!(is_dead, "process {pid} is left behind: {state}");
        }
        let left: Vec<_> = fs::read_dir(&temporary)
            .unwrap()
            .map(|one| one.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Each does its worst, and passes twice; the one between them must be found all the same.
const HOSTILE: &str = r#"
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RUNS = []


def test_a_removes_its_tree():
    shutil.rmtree(HERE, ignore_errors=True)


def test_b_closes_folders():
    for parent in (HERE, pathlib.Path(tempfile.gettempdir())):
        folder = parent / "closed"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / "file").touch()
        folder.chmod(0)


def test_c_leaves_odd_things():
    HERE.mkdir(exist_ok=True)
    for name in ("pipe", "socket"):
        if (HERE / name).exists():
            os.unlink(HERE / name)
    os.mkfifo(HERE / "pipe")
    socket.socket(socket.AF_UNIX).bind(str(HERE / "socket"))
    open(os.fsencode(HERE) + b"/\xff", "w").close()


def test_d_leaves_a_process():
    subprocess.Popen(["sleep", "1000"])


def test_e_forks_and_runs_on():
    os.fork()


def test_f_closes_everything():
    # All but those that pytest itself keeps what tests write in.
    os.closerange(20, 1024)


def test_g_once():
    RUNS.append(1)
    assert RUNS == [1]
"#;

#[test]
fn hostile_tests_disturb_neither_the_hunt_nor_the_user() {
    let project = Project::with(&[("test_hostile.py", HOSTILE)]);
    let before = tree(project.path());
    for arguments in [
        vec!["--mode", "suite"],
        vec!["--mode", "method", "--jobs", "2"],
    ] {
        let Some((report, run)) = nio_json(&project, project.path(), &arguments) else {
            return;
        };
        assert_eq!(
            found(&report),
            [("test_hostile.py::test_g_once", "nio")],
            "{run:#?}"
        );
        assert_eq!(tree(project.path()), before);
    }
}

/// Kills its VM where it runs in a copy of it.
const KILLS: &str = r"
import os
import signal
import threading

VM = os.getpid()
RUNS = []


def test_a_kills():
    if os.getpid() != VM:
        os.kill(VM, signal.SIGKILL)
        threading.Event().wait()


def test_b_once():
    RUNS.append(1)
    assert RUNS == [1]
";

#[test]
fn a_test_that_kills_the_vm_above_it_is_a_crash_and_the_rest_goes_on() {
    let project = Project::with(&[("test_kill.py", KILLS)]);
    for mode in ["class", "method"] {
        let Some((report, run)) = nio_json(&project, project.path(), &["--mode", mode]) else {
            return;
        };
        let mut found = found(&report);
        found.sort_unstable();
        let expected = [
            ("test_kill.py::test_a_kills", "unclear"),
            ("test_kill.py::test_b_once", "nio"),
        ];
        assert_eq!(found, expected, "{run:#?}");
    }
}
