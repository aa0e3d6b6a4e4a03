//! The differences between the base and the work tree, read once in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::blame;
use unflake_core::change::{Change, ChangeKind, ChangedFile, Source};
use unflake_core::intersect::is_told_by_opening;
use unflake_core::rules::Rules;
use unflake_core::test::TestId;

use crate::blame::memory::{LastPass, Memory, Tested};
use crate::blame::renames::moved_files;
use crate::framework::pytest::blocks::compare_sources;
use crate::git::base::{Base, BaseError, BaseSource, Hints, find_base};
use crate::git::blob::texts_at;
use crate::git::changes::changes_since;
use crate::git::ci_push::Standing;
use crate::git::clutter::Clutter;
use crate::git::repository::{GitError, Repository};

/// The user's wishes about the latest changes.
#[derive(Clone, Debug)]
pub struct Against {
    /// The base, if the user names it.
    pub base: Option<String>,
    /// What is known about changes before any run is looked at.
    pub rules: Rules,
    /// Whether tests are run at the base.
    pub check_base: CheckBase,
    /// Whether the user asked for it, so that it must work or be an error.
    pub is_required: bool,
    /// The longest time for finding out whose failures these are; `None` makes it depend on the suite's own time.
    pub budget: Option<Duration>,
    /// A command that makes the checkout of the base ready to run.
    pub setup: Option<String>,
    /// The known facts of earlier runs.
    pub memory: Option<Memory>,
    /// The commits that are known to have been tested.
    pub tested: Option<Tested>,
    /// Reports that the run reads or writes: they are no changes.
    pub reports: Vec<Utf8PathBuf>,
    /// The beginning of the run: untracked files that were written later are its own, and no changes.
    pub run_began: Option<SystemTime>,
    /// Who else reads the work tree as the run begins.
    pub readers: Option<Readers>,
}

/// Others who read the work tree as a run begins: until they are done, nobody can tell its readers from them.
#[derive(Clone, Debug)]
pub struct Readers(Arc<Mutex<Receiver<Infallible>>>);

impl Readers {
    /// Readers that are done when the second part is dropped.
    pub fn new() -> (Self, Sender<Infallible>) {
        let (sender, receiver) = channel();
        (Self(Arc::new(Mutex::new(receiver))), sender)
    }

    /// Waits until they are done.
    pub(crate) fn wait(&self) {
        if let Ok(receiver) = self.0.lock() {
            // Nothing is ever sent: the channel ends when its sender is gone.
            let Err(RecvError) = receiver.recv();
        }
    }
}

impl Against {
    pub(crate) fn clutter(&self, repository: &Repository) -> Clutter {
        let root = repository.root();
        let memory = self.memory.as_ref();
        let left = memory.map(|memory| memory.left_behind(root));
        Clutter::new(root, &self.reports, self.run_began).with(left.unwrap_or_default())
    }
}

/// Whether tests are run at the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckBase {
    /// Without a limit of time.
    Always,
    /// Within the budget.
    WithinBudget,
    /// None.
    Never,
}

/// The differences between the base and the work tree.
pub(crate) struct Difference {
    /// The folder to which paths are relative.
    pub(crate) root: Utf8PathBuf,
    /// The place where git keeps the base; `None` if only the digests of its files are known.
    pub(crate) git: Option<Kept>,
    /// The tests of the run that the digests are of, in their order, and whether they passed.
    pub(crate) tests: Vec<(TestId, bool)>,
    pub(crate) base: blame::Base,
    pub(crate) changes: Vec<Change>,
    /// The files that git knows in the work tree, new ones included.
    pub(crate) known: BTreeSet<String>,
    /// The files that earlier runs left, if there is no git to tell: they are neither known nor changes.
    pub(crate) left: BTreeSet<String>,
    /// The old paths of files that git sees as moved, by their new ones.
    pub(crate) moved: BTreeMap<String, String>,
    /// The files among them that git is told not to look at, by `assume-unchanged` or `skip-worktree`.
    pub(crate) hidden: BTreeSet<String>,
}

/// A base that a repository has.
pub(crate) struct Kept {
    pub(crate) repository: Repository,
    pub(crate) commit: String,
}

/// Why it is not known what differs.
#[derive(Debug, thiserror::Error)]
pub enum DifferenceError {
    /// There is nothing to compare with.
    #[error("there is no base to compare the work tree with")]
    Base(#[from] BaseError),
    /// Git does not say.
    #[error("git cannot tell what has changed")]
    Git(#[from] GitError),
    /// The changed sources cannot be read.
    #[error("cannot compare the changed sources")]
    Sources(#[source] io::Error),
    /// There is no repository.
    #[error("{folder} is not in a git work tree")]
    NoRepository {
        /// The folder in which we looked.
        folder: Utf8PathBuf,
    },
}

impl DifferenceError {
    /// The command that would help, if there is one.
    pub fn fetch_command(&self) -> Option<String> {
        match self {
            Self::Base(BaseError::Absent { fetch, .. } | BaseError::Shallow { fetch, .. }) => {
                Some(fetch.join(" "))
            }
            Self::Base(
                BaseError::Git(_)
                | BaseError::Unknown { .. }
                | BaseError::Unrelated { .. }
                | BaseError::NoDefault { .. }
                | BaseError::NoParent
                | BaseError::NoCommits,
            )
            | Self::Git(_)
            | Self::Sources(_)
            | Self::NoRepository { .. } => None,
        }
    }
}

/// The place where the sources of changed files are read.
pub(crate) struct Workshop<'a> {
    /// The project's interpreter; without one each changed file is a whole.
    pub(crate) python: Option<&'a Utf8Path>,
    /// The folder of this run, with the runner in it.
    pub(crate) folder: &'a Utf8Path,
}

impl Difference {
    /// Finds the base, and reads what differs from it.
    pub(crate) fn read(
        repository: Repository,
        against: &Against,
        workshop: &Workshop<'_>,
    ) -> Result<Self, DifferenceError> {
        let base = choose_base(&repository, against)?;
        let clutter = against.clutter(&repository);
        let files = changes_since(&repository, &base.commit, &clutter)?;
        Self::describe(repository, base, files, workshop)
    }

    /// The differences before anything runs, if there are any, and only those that the system itself can watch.
    pub(crate) fn read_ahead(
        repository: Repository,
        against: &Against,
        folder: &Utf8Path,
    ) -> Result<Option<Self>, DifferenceError> {
        let base = choose_base(&repository, against)?;
        let clutter = against.clutter(&repository);
        let files = changes_since(&repository, &base.commit, &clutter)?;
        let rules = &against.rules;
        let mut all = files.iter();
        let is_followed =
            all.all(|file| rules.is_never(&file.path) || is_told_by_opening(file, rules));
        if files.is_empty() || !is_followed {
            return Ok(None);
        }
        let workshop = Workshop {
            python: None,
            folder,
        };
        Self::describe(repository, base, files, &workshop).map(Some)
    }

    fn describe(
        repository: Repository,
        base: Base,
        files: Vec<ChangedFile>,
        workshop: &Workshop<'_>,
    ) -> Result<Self, DifferenceError> {
        let listed = repository.run(&["ls-files", "-v", "-z"])?;
        let (mut known, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for line in names(&listed) {
            let (tag, name) = line.split_once(' ').unwrap_or(("", &line));
            known.insert(name.to_owned());
            if tag == "S" || tag.chars().any(char::is_lowercase) {
                hidden.insert(name.to_owned());
            }
        }
        known.extend(files.iter().map(|file| file.path.clone()));
        let moved = moved_files(&repository, &base.commit);
        let changes = describe_changes(&repository, &base.commit, files, workshop)?;
        Ok(Self {
            base: blame::Base {
                what: in_words(&base),
                commit: Some(base.commit.clone()),
            },
            root: repository.root().to_owned(),
            git: Some(Kept {
                repository,
                commit: base.commit,
            }),
            tests: Vec::new(),
            left: BTreeSet::new(),
            changes,
            moved,
            known,
            hidden,
        })
    }
}

impl From<LastPass> for Difference {
    /// The differences from the last run that passed. Nobody knows what was in its files, so each file counts as a
    /// whole.
    fn from(last: LastPass) -> Self {
        let folders = last
            .known_then
            .iter()
            .filter_map(|path| Utf8Path::new(path).parent());
        let folders: BTreeSet<String> = folders
            .flat_map(Utf8Path::ancestors)
            .map(ToString::to_string)
            .collect();
        let changes = last.files.into_iter().map(|file| Change {
            source: None,
            folders: other_folders(&last.root, &file, &folders),
            file,
        });
        Self {
            changes: changes.collect(),
            root: last.root,
            git: None,
            tests: last.tests,
            base: blame::Base {
                commit: None,
                what: last.what,
            },
            known: last.known,
            left: last.left,
            moved: BTreeMap::new(),
            hidden: BTreeSet::new(),
        }
    }
}

/// The base of a work tree, by what the user, the CI or the history says.
pub fn choose_base(repository: &Repository, against: &Against) -> Result<Base, BaseError> {
    let is_tested = |commit: &str| {
        let tested = against.tested.as_ref();
        tested.is_some_and(|tested| tested.holds(commit))
    };
    let hints = Hints {
        given: against.base.as_deref(),
        variable: &|name: &str| std::env::var(name).ok(),
        tested: &is_tested,
        clutter: &against.clutter(repository),
    };
    find_base(repository, &hints)
}

/// The base commit, and why it is the base, in words.
fn in_words(base: &Base) -> String {
    let wanted = &base.wanted;
    match &base.source {
        BaseSource::Given => wanted.clone(),
        BaseSource::PullRequest { variable } => {
            format!("where the pull request left {wanted} ({variable})")
        }
        BaseSource::Left { branch } => {
            let branch = branch.as_deref().unwrap_or("HEAD");
            format!("where {branch} left {wanted}")
        }
        BaseSource::Unpushed { branch } => {
            format!("where {branch} left {wanted}: the commits since are not pushed")
        }
        BaseSource::Head => "HEAD: tracked files have uncommitted changes".to_owned(),
        BaseSource::Before { variable, standing } => match standing {
            Standing::Pushed => format!("the commit before the push ({variable})"),
            Standing::Built => format!("the last commit that was built ({variable})"),
            Standing::Passed => format!("the last commit that passed ({variable})"),
        },
        BaseSource::Tested => "the last commit before HEAD that was run here".to_owned(),
        BaseSource::Parent => "HEAD^, the commit before the last".to_owned(),
        BaseSource::First => "HEAD, the first commit".to_owned(),
    }
}

fn describe_changes(
    repository: &Repository,
    commit: &str,
    files: Vec<ChangedFile>,
    workshop: &Workshop<'_>,
) -> Result<Vec<Change>, DifferenceError> {
    let folders = repository.run(&["ls-tree", "-d", "-r", "-z", "--name-only", commit])?;
    let folders: BTreeSet<String> = names(&folders).collect();
    let mut sources = read_sources(repository, commit, &files, workshop)?.into_iter();
    let changes = files.into_iter().map(|file| Change {
        source: if has_blocks(&file) {
            sources.next().flatten()
        } else {
            None
        },
        folders: other_folders(repository.root(), &file, &folders),
        file,
    });
    Ok(changes.collect())
}

fn has_blocks(file: &ChangedFile) -> bool {
    file.kind == ChangeKind::Modified && file.is_python()
}

/// The blocks of all modified sources, in their order.
fn read_sources(
    repository: &Repository,
    commit: &str,
    files: &[ChangedFile],
    workshop: &Workshop<'_>,
) -> Result<Vec<Option<Source>>, DifferenceError> {
    let Some(python) = workshop.python else {
        return Ok(files.iter().map(|_| None).collect());
    };
    let modified = files.iter().filter(|file| has_blocks(file));
    let paths: Vec<&str> = modified.map(|file| file.path.as_str()).collect();
    let folder = workshop.folder.join("base");
    fs::create_dir_all(&folder).map_err(DifferenceError::Sources)?;
    let mut pairs = Vec::new();
    for (number, text) in texts_at(repository, commit, &paths)?
        .into_iter()
        .enumerate()
    {
        let old = folder.join(number.to_string());
        fs::write(&old, text.unwrap_or_default()).map_err(DifferenceError::Sources)?;
        pairs.push((old, repository.root().join(paths[number])));
    }
    let runner = workshop.folder.join("runner");
    compare_sources(python, &runner, &pairs).map_err(DifferenceError::Sources)
}

/// The folders that have other entries because a file came or went.
fn other_folders(root: &Utf8Path, file: &ChangedFile, at_base: &BTreeSet<String>) -> Vec<String> {
    let is_old = |folder: &str| match file.kind {
        ChangeKind::Added => at_base.contains(folder),
        ChangeKind::Deleted => root.join(folder).is_dir(),
        ChangeKind::Modified | ChangeKind::Submodule => true,
    };
    if !matches!(file.kind, ChangeKind::Added | ChangeKind::Deleted) {
        return Vec::new();
    }
    let mut folders = Vec::new();
    for folder in Utf8Path::new(&file.path).ancestors().skip(1) {
        folders.push(folder.to_string());
        if folder.as_str().is_empty() || is_old(folder.as_str()) {
            break;
        }
    }
    folders
}

/// The names in a list that ends each with a nought byte.
fn names(list: &[u8]) -> impl Iterator<Item = String> {
    let names = list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repository::scratch::Scratch;

    fn read(scratch: &Scratch) -> Difference {
        let against = Against {
            base: Some("HEAD".to_owned()),
            rules: Rules::default(),
            check_base: CheckBase::Never,
            is_required: true,
            budget: None,
            setup: None,
            memory: None,
            tested: None,
            reports: Vec::new(),
            run_began: None,
            readers: None,
        };
        let folder = tempfile::tempdir().unwrap();
        let workshop = Workshop {
            // No source is modified here, so that none is read.
            python: Some(Utf8Path::new("/nonexistent")),
            folder: Utf8Path::from_path(folder.path()).unwrap(),
        };
        let repository = Repository::find(&scratch.root).unwrap().unwrap();
        Difference::read(repository, &against, &workshop).unwrap()
    }

    fn change<'a>(difference: &'a Difference, path: &str) -> &'a Change {
        let mut changes = difference.changes.iter();
        changes.find(|change| change.file.path == path).expect(path)
    }

    #[test]
    fn a_file_that_came_or_went_changes_the_folders_that_show_it() {
        let scratch = Scratch::new();
        scratch.write("old/deep/gone.txt", "");
        scratch.write("old/stays.txt", "");
        scratch.commit();
        scratch.git(&["rm", "-q", "old/deep/gone.txt"]);
        scratch.write("new/deep/came.txt", "");
        scratch.write("old/beside.txt", "");
        let difference = read(&scratch);
        let folders = |path: &str| change(&difference, path).folders.clone();
        assert_eq!(folders("old/deep/gone.txt"), ["old/deep", "old"]);
        assert_eq!(folders("new/deep/came.txt"), ["new/deep", "new", ""]);
        assert_eq!(folders("old/beside.txt"), ["old"]);
    }

    #[test]
    fn a_base_is_described_in_words() {
        let branch = |name: &str| Some(name.to_owned());
        let left = |branch| BaseSource::Left { branch };
        let unpushed = BaseSource::Unpushed {
            branch: "main".to_owned(),
        };
        let before = |variable, standing| BaseSource::Before { variable, standing };
        let variable = "GITHUB_BASE_REF";
        let cases = [
            (BaseSource::Given, "origin/main"),
            (
                BaseSource::PullRequest { variable },
                "where the pull request left origin/main (GITHUB_BASE_REF)",
            ),
            (left(branch("feature")), "where feature left origin/main"),
            (left(None), "where HEAD left origin/main"),
            (
                unpushed,
                "where main left origin/main: the commits since are not pushed",
            ),
            (
                BaseSource::Head,
                "HEAD: tracked files have uncommitted changes",
            ),
            (
                before("GITHUB_EVENT_PATH", Standing::Pushed),
                "the commit before the push (GITHUB_EVENT_PATH)",
            ),
            (
                before("GIT_PREVIOUS_COMMIT", Standing::Built),
                "the last commit that was built (GIT_PREVIOUS_COMMIT)",
            ),
            (
                before("CIRRUS_LAST_GREEN_CHANGE", Standing::Passed),
                "the last commit that passed (CIRRUS_LAST_GREEN_CHANGE)",
            ),
            (
                BaseSource::Tested,
                "the last commit before HEAD that was run here",
            ),
            (BaseSource::Parent, "HEAD^, the commit before the last"),
        ];
        for (source, expected) in cases {
            let base = Base {
                commit: String::new(),
                source,
                wanted: "origin/main".to_owned(),
            };
            assert_eq!(in_words(&base), expected);
        }
    }

    #[test]
    fn without_changes_the_list_is_empty() {
        let scratch = Scratch::new();
        scratch.write("a", "");
        scratch.commit();
        scratch.write(".venv/pyvenv.cfg", "");
        assert!(read(&scratch).changes.is_empty());
    }
}
