//! A tiny git history in a scratch folder: a base, a change, and what unflake and plain pytest say of it.
//!
//! Nothing of the machine's or the user's is in it: the variables of a CI, git's configuration, the
//! home folder and the temporary folder are the history's own.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::said::Said;
use crate::project::{Python, Run};

/// Who commits and when, and no configuration but this.
const GIT: [(&str, &str); 10] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_AUTHOR_NAME", "Somebody"),
    ("GIT_AUTHOR_EMAIL", "somebody@example.invalid"),
    ("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Somebody"),
    ("GIT_COMMITTER_EMAIL", "somebody@example.invalid"),
    ("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z"),
    ("LANG", "C.UTF-8"),
    ("PIP_NO_INDEX", "1"),
];

/// A coin without chance, which every project has. It shows tails in one toss of `sides`. However the
/// tosses are dealt out, every second or third one to the base for example, all get their share: this is
/// the sequence of Thue and Morse, and no side of a coin of two comes three times in a row.
const COIN: &str = r#"
import fcntl
import os


def toss(name="coin", sides=2, start=0):
    with open(os.environ["OUTSIDE"] + "/" + name, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b".")
        file.flush()
        number = file.tell() + start
    total = 0
    while number:
        number, digit = divmod(number, sides)
        total += digit
    return total % sides != 1
"#;

/// An edit: a file, a text that stands in it once, and the new text. Without an old text the new one is
/// appended to the file, which may be new.
pub(super) type Edit<'a> = (&'a str, &'a str, &'a str);

/// How a change is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// In the work tree, on the default branch.
    Uncommitted,
    /// In a commit on a branch `feature` that nobody else has.
    Branch,
    /// The same, and the branch was pushed: its upstream has its name.
    PushedBranch,
    /// In a commit on the default branch that was pushed.
    Main,
}

/// A repository with its origin beside it, and a folder outside of both.
pub(super) struct History {
    python: Option<PathBuf>,
    scratch: TempDir,
    variables: RefCell<Vec<(String, String)>>,
}

impl History {
    /// These files, committed on `main` and pushed. Without an interpreter the test is skipped.
    pub(super) fn at(files: &str) -> Option<Self> {
        let history = Self::outside_git(files)?;
        history.publish();
        Some(history)
    }

    /// The same with Maven instead of pytest.
    pub(super) fn of_maven(files: &str) -> Self {
        let history = Self::empty(None);
        history.write(".gitignore", "target/\n");
        history.unpack(files);
        history.publish();
        history
    }

    /// These files in a folder that no git knows of.
    pub(super) fn outside_git(files: &str) -> Option<Self> {
        let history = Self::empty(Some(Python::Plain.find()?));
        history.write(".gitignore", "__pycache__/\n.pytest_cache/\n");
        history.write("pytest.ini", "[pytest]\npythonpath = .\n");
        history.write("coin.py", COIN);
        history.unpack(files);
        Some(history)
    }

    fn empty(python: Option<PathBuf>) -> Self {
        let scratch = TempDir::with_prefix("whose-").expect("a temporary folder");
        for folder in ["tree", "outside", "home", "tmp"] {
            fs::create_dir(scratch.path().join(folder)).unwrap();
        }
        Self {
            python,
            scratch,
            variables: RefCell::default(),
        }
    }

    /// The same with another interpreter.
    pub(super) fn with_python(mut self, python: PathBuf) -> Self {
        self.python = Some(python);
        self
    }

    fn publish(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.commit("base");
        let origin = self.place("origin.git");
        self.git(&["clone", "--quiet", "--bare", ".", &origin]);
        self.git(&["remote", "add", "origin", &origin]);
        self.git(&["fetch", "--quiet", "origin"]);
        self.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
        self.git(&["remote", "set-head", "origin", "main"]);
    }

    /// A place in the scratch folder: `tree`, `outside`, `tmp` or a new one.
    pub(super) fn place(&self, name: &str) -> String {
        let root = self.scratch.path().canonicalize().unwrap();
        root.join(name).to_str().unwrap().to_owned()
    }

    /// The work tree.
    pub(super) fn tree(&self) -> PathBuf {
        self.place("tree").into()
    }

    /// A variable of all runs from now on.
    pub(super) fn set(&self, name: &str, value: &str) {
        self.variables
            .borrow_mut()
            .push((name.to_owned(), value.to_owned()));
    }

    /// `CI` and nothing else, as in many a home-grown CI.
    pub(super) fn in_ci(self) -> Self {
        self.set("CI", "true");
        self
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.tree().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Files, each after a line `=== name`.
    pub(super) fn unpack(&self, files: &str) {
        for part in files.trim_start().split("=== ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            self.write(name, text);
        }
    }

    /// The lines of a file outside of the tree, which a test has written.
    pub(super) fn outside(&self, name: &str) -> Vec<String> {
        let path = Path::new(&self.place("outside")).join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Makes the edits in the work tree.
    pub(super) fn edit(&self, edits: &[Edit]) {
        for (name, old, new) in edits {
            let text = fs::read_to_string(self.tree().join(name)).unwrap_or_default();
            if old.is_empty() {
                self.write(name, &(text + new));
                continue;
            }
            assert_eq!(text.matches(old).count(), 1, "{old:?} in {name}");
            self.write(name, &text.replace(old, new));
        }
    }

    /// Makes the edits, in this way.
    pub(super) fn change(&self, way: Way, edits: &[Edit]) {
        self.begin(way);
        self.edit(edits);
        self.end(way);
    }

    /// Goes to the branch on which the change is made.
    pub(super) fn begin(&self, way: Way) {
        match way {
            Way::Uncommitted | Way::Main => (),
            Way::Branch | Way::PushedBranch => {
                self.git(&["switch", "--quiet", "--no-track", "--create", "feature"]);
            }
        }
    }

    /// Commits and pushes what is in the work tree, as the way says.
    pub(super) fn end(&self, way: Way) {
        match way {
            Way::Uncommitted => (),
            Way::Branch => drop(self.commit("change")),
            Way::PushedBranch => {
                self.commit("change");
                self.git(&["push", "--quiet", "--set-upstream", "origin", "feature"]);
            }
            Way::Main => {
                self.commit("change");
                self.git(&["push", "--quiet", "origin", "main"]);
            }
        }
    }

    /// Commits all that is there, and gives the commit.
    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git says in the work tree; an error is a panic.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let mut git = self.command(Path::new("git"), &self.tree());
        git.args(["-c", "protocol.file.allow=always"])
            .args(arguments);
        let output = git.output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A program in a folder, with the variables of this history and no others.
    pub(super) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env_clear().envs(GIT);
        for name in ["PATH", "JAVA_HOME", "LD_LIBRARY_PATH", "MAVEN_ARGS"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", self.place("home"))
            .env("TMPDIR", self.place("tmp"))
            .env("OUTSIDE", self.place("outside"))
            .env("UNFLAKE_STORE", self.place("history.db"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        for name in ["CACHE", "CONFIG", "DATA", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), self.place("home"));
        }
        command.envs(self.variables.borrow().iter().cloned());
        command
    }

    /// `unflake run --format json` with these arguments.
    pub(super) fn run(&self, arguments: &[&str]) -> Said {
        self.unflake("run", arguments)
    }

    /// A verb of unflake with `--format json` and these arguments.
    pub(super) fn unflake(&self, verb: &str, arguments: &[&str]) -> Said {
        self.unflake_in(&self.tree(), verb, arguments)
    }

    /// The same in another folder, a clone for example.
    pub(super) fn unflake_in(&self, folder: &Path, verb: &str, arguments: &[&str]) -> Said {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_unflake")), folder);
        command.args([verb, "--format", "json"]);
        if let Some(python) = &self.python {
            command.arg("--python").arg(python);
        }
        let is_bounded = |one: &&str| ["--blame-budget", "--check-base"].contains(one);
        if ["run", "triage"].contains(&verb) && !arguments.iter().any(is_bounded) {
            // A slow machine takes longer, and finds the same.
            command.args(["--blame-budget", "900"]);
        }
        command.args(arguments);
        Said::of(Run::of(command.output().expect("unflake starts")))
    }

    /// The interpreter of the tests.
    pub(super) fn python(&self) -> &Path {
        self.python.as_deref().expect("a history of pytest")
    }

    /// The tests that fail under plain pytest in a copy of a folder, with tosses of its own.
    pub(super) fn fail_plainly(&self, folder: &Path, arguments: &[&str]) -> Vec<String> {
        let premise = TempDir::with_prefix("premise-").unwrap();
        let copy = premise.path().join("tree");
        let from = folder.to_str().unwrap();
        let mut copying = self.command(Path::new("cp"), folder);
        copying.args(["-a", from, copy.to_str().unwrap()]);
        assert!(copying.status().unwrap().success());
        let mut pytest = self.command(self.python(), &copy);
        pytest
            .env("OUTSIDE", premise.path())
            .env("TMPDIR", premise.path());
        pytest.args(["-m", "pytest", "-q", "-rfE", "--tb=no"]);
        pytest.args(["-p", "no:cacheprovider"]).args(arguments);
        let Output { status, stdout, .. } = pytest.output().expect("pytest starts");
        let words = String::from_utf8_lossy(&stdout).into_owned();
        assert!(matches!(status.code(), Some(0 | 1)), "{words}");
        let failed = words.lines().filter_map(|line| {
            let rest = line
                .strip_prefix("FAILED ")
                .or_else(|| line.strip_prefix("ERROR "));
            rest.map(|rest| rest.split(" - ").next().unwrap_or(rest).to_owned())
        });
        failed.collect()
    }

    /// What a test rests on: under plain pytest all pass at the base, and these fail with the change.
    pub(super) fn premise(&self, fail_with_the_change: &[&str]) {
        assert_eq!(self.fail_at_base(), [""; 0], "at the base");
        let here = self.fail_plainly(&self.tree(), &[]);
        assert_eq!(here, fail_with_the_change, "with the change");
    }

    /// The tests that fail under plain pytest in a checkout of the commit at which `main` was first.
    pub(super) fn fail_at_base(&self) -> Vec<String> {
        let base = self.git(&["rev-list", "--max-parents=0", "HEAD"]);
        let folder = self.place("premise");
        self.git(&["clone", "--quiet", "--no-checkout", ".", &folder]);
        let folder = PathBuf::from(folder);
        let mut git = self.command(Path::new("git"), &folder);
        git.args(["checkout", "--quiet", "--detach", &base]);
        assert!(git.status().unwrap().success());
        let failed = self.fail_plainly(&folder, &[]);
        fs::remove_dir_all(&folder).unwrap();
        failed
    }
}
