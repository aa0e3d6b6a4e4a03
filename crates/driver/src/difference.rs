//! What differs between the base and the work tree, read once in a run.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::change::{Change, ChangeKind, ChangedFile, Source};
use unflake_core::comparison;
use unflake_core::rules::Rules;

use crate::base::{Base, BaseError, BaseSource, find_base};
use crate::blob::texts_at;
use crate::blocks::compare_sources;
use crate::changes::changes_since;
use crate::git::{GitError, Repository};
use crate::memory::Memory;

/// What the user wants to know about the latest changes.
#[derive(Clone, Debug)]
pub struct Against {
    /// The base, if the user names it.
    pub base: Option<String>,
    /// What is known about changes without looking at any run.
    pub rules: Rules,
    /// Whether tests are run at the base.
    pub check_base: CheckBase,
    /// Whether the user asked for it, so that it must work or be an error.
    pub is_required: bool,
    /// What is known of earlier runs.
    pub memory: Option<Memory>,
}

/// Whether tests are run at the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckBase {
    /// Each that failed every time.
    Always,
    /// While it costs little.
    WhenCheap,
    /// None.
    Never,
}

/// What differs between the base and the work tree.
pub(crate) struct Difference {
    pub(crate) repository: Repository,
    pub(crate) base: comparison::Base,
    pub(crate) changes: Vec<Change>,
    /// The files that git knows in the work tree, new ones included.
    pub(crate) known: BTreeSet<String>,
    /// Those among them that git is told not to look at, by `assume-unchanged` or `skip-worktree`.
    pub(crate) hidden: BTreeSet<String>,
    /// When the base was committed.
    pub(crate) base_time: SystemTime,
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
        /// Where we looked.
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
                | BaseError::NoParent
                | BaseError::NoCommits,
            )
            | Self::Git(_)
            | Self::Sources(_)
            | Self::NoRepository { .. } => None,
        }
    }
}

/// Where the sources of changed files are read.
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
        let files = changes_since(&repository, &base.commit)?;
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
        let seconds = repository.run(&["show", "-s", "--format=%ct", &base.commit])?;
        let seconds = String::from_utf8_lossy(&seconds).trim().parse();
        let base_time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unwrap_or_default());
        let changes = describe_changes(&repository, &base.commit, files, workshop)?;
        Ok(Self {
            base: comparison::Base {
                what: describe(&base),
                commit: base.commit,
            },
            repository,
            changes,
            known,
            hidden,
            base_time,
        })
    }
}

/// The base of a work tree, by what the user or the CI says.
pub fn choose_base(repository: &Repository, against: &Against) -> Result<Base, BaseError> {
    let variable = |name: &str| std::env::var(name).ok();
    find_base(repository, against.base.as_deref(), &variable)
}

fn describe(base: &Base) -> String {
    let wanted = &base.wanted;
    match base.source {
        BaseSource::Given => wanted.clone(),
        BaseSource::PullRequest { variable } => {
            format!("where the pull request left {wanted} ({variable})")
        }
        BaseSource::Upstream => format!("where the branch left {wanted}"),
        BaseSource::Head => "HEAD: the work tree has uncommitted changes".to_owned(),
        BaseSource::Parent => "HEAD^: the work tree is clean".to_owned(),
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
    use crate::git::scratch::Scratch;

    fn read(scratch: &Scratch) -> Difference {
        let against = Against {
            base: Some("HEAD".to_owned()),
            rules: Rules::default(),
            check_base: CheckBase::Never,
            is_required: true,
            memory: None,
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
}
