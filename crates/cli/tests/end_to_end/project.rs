//! A project in a folder of its own, and unflake run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Which of the interpreters that `make test` prepares.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Python {
    /// With pytest alone.
    Plain,
    /// With pytest and many plugins.
    Plugins,
    /// Without pytest.
    Bare,
}

impl Python {
    /// Its path. Without it a test is a printed skip on a laptop and a failure in CI.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let variable = match self {
            Self::Plain => "UNFLAKE_TEST_PYTHON",
            Self::Plugins => "UNFLAKE_PLUGINS_PYTHON",
            Self::Bare => "UNFLAKE_BARE_PYTHON",
        };
        let found = std::env::var_os(variable).map(PathBuf::from);
        assert!(
            found.is_some() || std::env::var_os("CI").is_none(),
            "{variable} is not set: run `make test`"
        );
        if found.is_none() {
            use std::io::Write;
            writeln!(
                std::io::stderr(),
                "skipped: {variable} is not set (`make test` sets it)"
            )
            .expect("standard error is open");
        }
        found
    }
}

/// A project in a temporary folder.
pub(crate) struct Project {
    folder: TempDir,
    /// Where its history goes, so that tests can say that nothing in the project has changed.
    elsewhere: TempDir,
}

impl Project {
    /// An empty project.
    pub(crate) fn new() -> Self {
        let new = || TempDir::with_prefix("unflake-test-").expect("a temporary folder");
        Self {
            folder: new(),
            elsewhere: new(),
        }
    }

    /// A project with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let project = Self::new();
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    /// A copy of a folder.
    pub(crate) fn copy_of(source: &Path) -> Self {
        let project = Self::new();
        copy_tree(source, project.path());
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect(name)
    }

    /// Makes it a git repository in which everything is committed.
    pub(crate) fn commit(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "all"]);
    }

    /// What git says in this project.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]);
        git.args(arguments).current_dir(self.path());
        let output = git.output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// unflake in this project, with a clean environment.
    pub(crate) fn unflake(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unflake"));
        command.args(arguments).current_dir(self.path());
        command.env("UNFLAKE_STORE", self.elsewhere.path().join("history.db"));
        for variable in [
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "PYTHONPATH",
            "PYTHONHASHSEED",
            "GITHUB_ACTIONS",
            "CI",
        ] {
            command.env_remove(variable);
        }
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("PYTEST") {
                command.env_remove(variable);
            }
        }
        command
    }

    /// `unflake run` with this interpreter.
    pub(crate) fn run(&self, python: &Path, arguments: &[&str]) -> Run {
        let mut all = vec!["run", "--python", python.to_str().expect("a plain path")];
        all.extend(arguments);
        Run::of(self.unflake(&all).output().expect("unflake starts"))
    }

    /// `unflake run --format json` with this interpreter.
    pub(crate) fn run_json(&self, python: &Path, arguments: &[&str]) -> (Value, Run) {
        let mut all = vec!["--format", "json"];
        all.extend(arguments);
        let run = self.run(python, &all);
        let json = serde_json::from_str(&run.stdout);
        (
            json.unwrap_or_else(|error| panic!("{error}: {run:#?}")),
            run,
        )
    }
}

/// What a run of unflake came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
        }
    }
}

fn copy_tree(source: &Path, target: &Path) {
    for entry in fs::read_dir(source).expect("a folder") {
        let entry = entry.expect("an entry");
        let copy = target.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            fs::create_dir(&copy).expect("a folder");
            copy_tree(&entry.path(), &copy);
        } else {
            fs::copy(entry.path(), &copy).expect("a copy");
        }
    }
}
