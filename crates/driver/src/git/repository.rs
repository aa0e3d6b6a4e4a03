//! The user's repository, asked through the `git` command. Nothing here writes to the work tree, the
//! index or the stash, and no hook, pager, external diff or file watcher of the user's is started.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::absolute;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::Signal;

use crate::vm::process::describe;

/// Settings that hold whatever the user's configuration says.
const SETTINGS: [&str; 6] = [
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // `git diff` would write the index to note which files are only younger, even without optional
    // locks.
    "diff.autoRefreshIndex=false",
    // A worktree with relative paths puts an extension into the user's configuration (git 2.48).
    "worktree.useRelativePaths=false",
    "advice.detachedHead=false",
];

/// Variables that change what git answers, beside those that say where the repository is.
const UNWANTED: [&str; 8] = [
    "GIT_ATTR_SOURCE",
    "GIT_DIFF_OPTS",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NAMESPACE",
];

/// Variables that git counts as part of a repository, and that we keep: they hold settings, among
/// them the `safe.directory` of many a CI.
const KEPT: [&str; 2] = ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"];

/// A git repository with a work tree.
#[derive(Clone, Debug)]
pub struct Repository {
    root: Utf8PathBuf,
    surroundings: Surroundings,
}

/// The variables that git is to see.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    cleared: Vec<String>,
    set: Vec<(&'static str, OsString)>,
}

/// Why git has no answer for us.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started, or not be spoken with.
    #[error("cannot run `{command}`")]
    Run {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("`{command}` ended ({how}); it wrote:\n{stderr}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        how: String,
        /// The exit status, if it was not ended by a signal.
        code: Option<i32>,
        /// The text that it wrote.
        stderr: String,
    },
    /// It said something that we do not understand.
    #[error("`{command}` said what unflake does not understand: {answer}")]
    Answer {
        /// The command.
        command: String,
        /// The part of its answer.
        answer: String,
    },
    /// A name in the repository is not UTF-8, so that it cannot be compared with what tests used.
    #[error("the name of `{name}` is not UTF-8")]
    NotUtf8 {
        /// The name, with a mark in place of what is not UTF-8.
        name: String,
    },
}

impl Repository {
    /// The repository that `folder` lies in; `None` outside a work tree, in a bare repository, and
    /// on a machine without git.
    ///
    /// Inside a git hook this is the repository around `folder`, which may be another one than the
    /// hook's. The hook's own is taken only if there is none around `folder`, and only if its work
    /// tree holds `folder`.
    pub fn find(folder: &Utf8Path) -> Result<Option<Self>, GitError> {
        Self::find_with(folder, &|name| env::var_os(name))
    }

    fn find_with(
        folder: &Utf8Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, GitError> {
        let surroundings = match Surroundings::ask(folder) {
            Ok(surroundings) => surroundings,
            Err(error) if error.is_without_git() => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(found) = Self::around(folder, surroundings.clone())? {
            return Ok(Some(found));
        }
        let Some(named) = surroundings.named(variable) else {
            return Ok(None);
        };
        let found = Self::around(folder, named)?;
        Ok(found.filter(|repository| repository.holds(folder)))
    }

    fn around(folder: &Utf8Path, surroundings: Surroundings) -> Result<Option<Self>, GitError> {
        let here = Self {
            root: folder.to_owned(),
            surroundings,
        };
        match here.run(&["rev-parse", "--show-toplevel"]) {
            Ok(bytes) => Ok(Some(Self {
                root: Utf8PathBuf::from(line(bytes)?),
                surroundings: here.surroundings,
            })),
            Err(error) if error.is_without_work_tree() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn holds(&self, folder: &Utf8Path) -> bool {
        let real = folder.canonicalize_utf8();
        real.is_ok_and(|folder| folder.starts_with(&self.root))
    }

    /// The top of the work tree, without symbolic links.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The standard output of git, run at the top of the work tree.
    pub fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let mut running = self.start(arguments, Stdio::null())?;
        let mut bytes = Vec::new();
        let read = running.stdout.read_to_end(&mut bytes);
        running.finish(read.map(|_| bytes))
    }

    /// The one line that git answers; `None` if it ends with exit status 1, which is its "no".
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Option<String>, GitError> {
        match self.run(arguments) {
            Ok(bytes) => Ok(Some(line(bytes)?)),
            Err(GitError::Failed { code: Some(1), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts git, to read its answer while it comes.
    pub(crate) fn start(&self, arguments: &[&str], stdin: Stdio) -> Result<Running, GitError> {
        let words = ["git"].iter().chain(arguments).copied();
        let shown = words.collect::<Vec<_>>().join(" ");
        match self.command(arguments).stdin(stdin).spawn() {
            Ok(child) => Ok(Running::new(shown, child)),
            Err(source) => Err(GitError::Run {
                command: shown,
                source,
            }),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args([
            "-C",
            self.root.as_str(),
            "--no-pager",
            "--literal-pathspecs",
        ]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for name in &self.surroundings.cleared {
            command.env_remove(name);
        }
        for name in UNWANTED {
            command.env_remove(name);
        }
        for (name, value) in &self.surroundings.set {
            command.env(name, value);
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            // A partial clone may fetch what it lacks. In its own process group ssh cannot ask on
            // the terminal: it would be stopped there, and we with it.
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the terminal is for us: git is to finish what it began.
            .process_group(0);
        command
    }
}

impl Surroundings {
    /// Clears what says where the repository is: inside a git hook that is the hook's repository.
    fn ask(folder: &Utf8Path) -> Result<Self, GitError> {
        let anywhere = Repository {
            root: folder.to_owned(),
            surroundings: Self::default(),
        };
        let names = text(anywhere.run(&["rev-parse", "--local-env-vars"])?)?;
        let cleared = names.lines().filter(|name| !KEPT.contains(name));
        Ok(Self {
            cleared: cleared.map(str::to_owned).collect(),
            set: Vec::new(),
        })
    }

    /// This repository's settings with the repository that the variables name; `None` if they name none.
    ///
    /// Without a `GIT_WORK_TREE` the work tree is the current folder, by git's own rule.
    fn named(self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let folder = variable("GIT_DIR")?;
        let tree = variable("GIT_WORK_TREE").unwrap_or_else(|| ".".into());
        // A path that cannot be made absolute names nothing.
        let set = vec![
            ("GIT_DIR", absolute(folder).ok()?.into_os_string()),
            ("GIT_WORK_TREE", absolute(tree).ok()?.into_os_string()),
        ];
        Some(Self { set, ..self })
    }
}

impl GitError {
    fn is_without_git(&self) -> bool {
        matches!(self, Self::Run { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Git has one exit status for all its troubles; in the C locale its words are stable.
    fn is_without_work_tree(&self) -> bool {
        let words = [
            "not a git repository (or any",
            "this operation must be run in a work tree",
        ];
        matches!(self, Self::Failed { stderr, .. } if words.iter().any(|it| stderr.contains(it)))
    }
}

/// A git that runs. Its standard error is drained in the background.
pub(crate) struct Running {
    /// Its answer.
    pub(crate) stdout: BufReader<ChildStdout>,
    /// The pipe for questions, if it was started for them.
    pub(crate) stdin: Option<ChildStdin>,
    /// The command that runs, for messages.
    pub(crate) command: String,
    child: Child,
    stderr: JoinHandle<String>,
}

impl Running {
    fn new(command: String, mut child: Child) -> Self {
        let stdout = child.stdout.take().expect("standard output is piped");
        let stderr = child.stderr.take().expect("standard error is piped");
        Self {
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            stdin: child.stdin.take(),
            command,
            child,
            stderr: thread::spawn(|| drain(stderr)),
        }
    }

    /// Waits for git's end. Its own error goes before ours: an answer that breaks off has a reason.
    /// What we did not understand is invalid data.
    pub(crate) fn finish<T>(mut self, read: io::Result<T>) -> Result<T, GitError> {
        drop(self.stdin);
        // A git whose answer nobody reads ends by itself, with a broken pipe.
        drop(self.stdout);
        let command = self.command;
        let status = match self.child.wait() {
            Ok(status) => status,
            Err(source) => return Err(GitError::Run { command, source }),
        };
        let stderr = self.stderr.join().unwrap_or_default();
        let is_content = status.success() || status.signal() == Some(Signal::SIGPIPE as i32);
        match read {
            Ok(answer) if status.success() => Ok(answer),
            Err(source) if is_content && source.kind() == io::ErrorKind::InvalidData => {
                let answer = source.to_string();
                Err(GitError::Answer { command, answer })
            }
            Err(source) if is_content => Err(GitError::Run { command, source }),
            Ok(_) | Err(_) => Err(GitError::Failed {
                command,
                how: describe(&Ok(status)),
                code: status.code(),
                stderr: stderr.trim_end().to_owned(),
            }),
        }
    }
}

fn drain(mut stderr: ChildStderr) -> String {
    let mut bytes = Vec::new();
    // The text before an error is still git's word, and all that we have.
    drop(stderr.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Git's words as text.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, GitError> {
    String::from_utf8(bytes).map_err(|error| GitError::NotUtf8 {
        name: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Git's answer of one line, without its end. The line may hold line ends of its own.
fn line(bytes: Vec<u8>) -> Result<String, GitError> {
    let mut line = text(bytes)?;
    if line.ends_with('\n') {
        line.pop();
    }
    Ok(line)
}

/// Real repositories in temporary folders, for tests: none of the machine's settings reach them.
#[cfg(test)]
pub(crate) mod scratch {
    use std::fs;
    use std::process::Output;

    use tempfile::TempDir;

    use super::*;

    const SETTINGS: [(&str, &str); 9] = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z"),
        ("LC_ALL", "C"),
    ];

    pub(crate) struct Scratch {
        pub(crate) root: Utf8PathBuf,
        _folder: TempDir,
    }

    impl Scratch {
        /// An empty repository.
        pub(crate) fn new() -> Self {
            let scratch = Self::folder();
            scratch.git(&["init", "--quiet", "--initial-branch=main"]);
            scratch
        }

        /// A clone of another, made with these options.
        pub(crate) fn clone_of(other: &Self, options: &[&str]) -> Self {
            let scratch = Self::folder();
            let url = format!("file://{}", other.root);
            let words = [&["clone", "--quiet"], options, &[&url, "."]].concat();
            scratch.git(&words);
            scratch
        }

        /// A folder that is no repository.
        pub(crate) fn folder() -> Self {
            let folder = TempDir::new().unwrap();
            let root = Utf8PathBuf::try_from(folder.path().canonicalize().unwrap()).unwrap();
            Self {
                root,
                _folder: folder,
            }
        }

        pub(crate) fn try_git(&self, words: &[&str]) -> Output {
            let mut command = Command::new("git");
            for name in surroundings().cleared {
                command.env_remove(name);
            }
            let command = command.arg("-C").arg(&self.root).args(words);
            command.envs(SETTINGS).output().unwrap()
        }

        pub(crate) fn git(&self, words: &[&str]) -> String {
            let output = self.try_git(words);
            assert!(output.status.success(), "git {words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        }

        pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// Commits all that there is, and gives the commit's hash.
        pub(crate) fn commit(&self) -> String {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--allow-empty", "--message=work"]);
            self.git(&["rev-parse", "HEAD"])
        }

        pub(crate) fn repository(&self) -> Repository {
            Repository::around(&self.root, surroundings())
                .unwrap()
                .unwrap()
        }
    }

    /// The variables for our own git: none of the machine's settings.
    pub(super) fn surroundings() -> Surroundings {
        let mut surroundings = Surroundings::ask(Utf8Path::new("/")).unwrap();
        let foreign = SETTINGS.iter().map(|(name, value)| (*name, value.into()));
        surroundings.set.extend(foreign);
        surroundings
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::unistd::{Pid, getpgid};

    use super::scratch::{Scratch, surroundings};
    use super::*;

    #[test]
    fn a_repository_is_found_from_a_folder_inside_it() {
        let scratch = Scratch::new();
        scratch.write("a b/ü/file", "");
        let found = Repository::find(&scratch.root.join("a b/ü")).unwrap();
        assert_eq!(found.unwrap().root(), scratch.root);
    }

    #[test]
    fn a_linked_work_tree_is_a_repository_of_its_own() {
        let scratch = Scratch::new();
        scratch.commit();
        scratch.git(&["worktree", "add", "--quiet", "linked"]);
        let linked = scratch.root.join("linked");
        let found = Repository::find(&linked).unwrap();
        assert_eq!(found.unwrap().root(), linked);
    }

    #[test]
    fn there_is_none_outside_a_work_tree() {
        let scratch = Scratch::folder();
        assert!(Repository::find(&scratch.root).unwrap().is_none());
        scratch.git(&["init", "--quiet", "--bare"]);
        assert!(Repository::find(&scratch.root).unwrap().is_none());
        let ours = Scratch::new();
        assert!(Repository::find(&ours.root.join(".git")).unwrap().is_none());
    }

    #[test]
    fn a_machine_without_git_is_told_from_a_git_that_fails() {
        let scratch = Scratch::new();
        let mut repository = scratch.repository();
        repository
            .surroundings
            .set
            .push(("PATH", "/nonexistent".into()));
        let error = repository.run(&["status"]).unwrap_err();
        assert!(error.is_without_git());
        assert_eq!(error.to_string(), "cannot run `git status`");
    }

    #[test]
    fn the_repository_of_a_hook_is_not_taken_for_the_one_around_the_folder() {
        let (hook, ours) = (Scratch::new(), Scratch::new());
        let variable = |name: &str| match name {
            "GIT_DIR" => Some(hook.root.join(".git").into()),
            "GIT_WORK_TREE" => Some(hook.root.clone().into()),
            _ => None,
        };
        let found = Repository::find_with(&ours.root, &variable)
            .unwrap()
            .unwrap();
        assert_eq!(found.root(), ours.root);
        let command = found.command(&[]);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            let is_cleared = command.get_envs().any(|it| it == (name.as_ref(), None));
            assert!(is_cleared, "{name}");
        }
        let is_kept = |name: &str| command.get_envs().all(|(it, _)| it != name);
        assert!(is_kept("GIT_CONFIG_COUNT"), "CIs set safe.directory by it");
    }

    #[test]
    fn the_repository_of_a_hook_is_taken_if_only_it_knows_the_folder() {
        let (metadata, tree) = (Scratch::folder(), Scratch::folder());
        metadata.git(&["init", "--quiet", "--bare"]);
        metadata.git(&["config", "core.bare", "false"]);
        tree.write("inside/file", "one\n");
        let variable = |name: &str| match name {
            "GIT_DIR" => Some(metadata.root.clone().into()),
            "GIT_WORK_TREE" => Some(tree.root.clone().into()),
            _ => None,
        };
        let inside = tree.root.join("inside");
        let found = Repository::find_with(&inside, &variable).unwrap().unwrap();
        assert_eq!(found.root(), tree.root);
        let untracked = found.run(&["ls-files", "--others"]).unwrap();
        assert_eq!(untracked, b"inside/file\n");
        let elsewhere = Scratch::folder();
        let found = Repository::find_with(&elsewhere.root, &variable).unwrap();
        assert!(found.is_none());
    }

    #[test]
    fn a_repository_of_somebody_else_is_an_error_in_gits_own_words() {
        let scratch = Scratch::new();
        let mut foreign = surroundings();
        foreign
            .set
            .push(("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1".into()));
        let error = Repository::around(&scratch.root, foreign).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("`git rev-parse --show-toplevel` ended (exit status 128)"));
        assert!(message.contains("detected dubious ownership"), "{message}");
        assert!(message.contains("safe.directory"), "{message}");
    }

    #[test]
    fn a_folder_whose_repository_is_lost_is_an_error() {
        let scratch = Scratch::folder();
        scratch.write(".git", "gitdir: /nonexistent/.git/worktrees/lost\n");
        let error = Repository::find(&scratch.root).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }

    #[test]
    fn an_answer_that_git_breaks_off_is_gits_error() {
        let scratch = Scratch::new();
        let repository = scratch.repository();
        let error = repository
            .run(&["cat-file", "blob", "nothing"])
            .unwrap_err();
        let GitError::Failed {
            command,
            code,
            stderr,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (command.as_str(), code),
            ("git cat-file blob nothing", Some(128))
        );
        assert!(
            stderr.starts_with("fatal: Not a valid object name"),
            "{stderr}"
        );
    }

    #[test]
    fn an_answer_that_we_do_not_understand_is_not_gits_fault() {
        let scratch = Scratch::new();
        scratch.write("large", "1\n".repeat(1_000_000));
        scratch.commit();
        let running = scratch
            .repository()
            .start(&["show", "HEAD:large"], Stdio::null());
        let read: io::Result<()> = Err(io::Error::new(io::ErrorKind::InvalidData, "what?"));
        let error = running.unwrap().finish(read).unwrap_err();
        let message = "`git show HEAD:large` said what unflake does not understand: what?";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn ctrl_c_in_the_terminal_does_not_reach_git() {
        let scratch = Scratch::new();
        let repository = scratch.repository();
        let running = repository
            .start(&["cat-file", "--batch"], Stdio::piped())
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(running.child.id()).unwrap());
        assert_eq!(getpgid(Some(pid)).unwrap(), pid);
        running.finish(Ok(())).unwrap();
    }

    #[test]
    fn no_file_watcher_of_the_users_is_started() {
        let scratch = Scratch::new();
        let mark = scratch.root.join("started");
        scratch.write("watch", format!("#!/bin/sh\ntouch {mark}\n"));
        let watch = scratch.root.join("watch");
        fs::set_permissions(&watch, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        scratch.git(&["config", "core.fsmonitor", watch.as_str()]);
        scratch.repository().run(&["status"]).unwrap();
        assert!(!mark.exists());
    }
}
