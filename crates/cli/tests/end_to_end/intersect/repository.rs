//! A git repository in a folder of its own, with nothing of the user's or the machine's in it.

use std::path::Path;
use std::process::Command;

use crate::project::Project;

/// What git would leave behind or read from elsewhere otherwise, and who commits when.
pub(crate) const SURROUNDINGS: [(&str, &str); 8] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_AUTHOR_NAME", "Somebody"),
    ("GIT_AUTHOR_EMAIL", "somebody@example.invalid"),
    ("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Somebody"),
    ("GIT_COMMITTER_EMAIL", "somebody@example.invalid"),
    ("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z"),
];

/// A project in a git repository.
pub(crate) struct Repository {
    pub(crate) project: Project,
}

impl Repository {
    /// A repository without a commit. Its `.gitignore` is that of every Python project.
    pub(crate) fn new() -> Self {
        let project = Project::new();
        project.write(".gitignore", "__pycache__/\n.pytest_cache/\n");
        let repository = Self { project };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Commits all that is there, and gives the commit.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=All"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git says; an error is a panic.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let said = run(Command::new("git").args(arguments), self.project.path());
        said.unwrap_or_else(|trouble| panic!("{trouble}"))
    }

    /// What a shell says that runs a script in this folder of the repository.
    pub(crate) fn sh(&self, folder: &str, script: &str) -> Result<String, String> {
        let folder = self.project.path().join(folder);
        run(Command::new("sh").args(["-e", "-c", script]), &folder)
    }
}

fn run(command: &mut Command, folder: &Path) -> Result<String, String> {
    let command = command.current_dir(folder).envs(SURROUNDINGS);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {said}\n{complaint}"))
}
