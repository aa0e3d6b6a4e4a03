//! A second, temporary work tree with the files of another commit, beside the user's own and without
//! a trace in it.

use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::git::{GitError, Repository};

/// How the folders of our work trees begin, and with them git's notes about them.
const PREFIX: &str = "unflake-base-";

/// After how long a work tree whose folder we do not see is nobody's.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The files of a commit in a temporary folder, for as long as this value lives.
///
/// Ignored and untracked files of the user are not in it, submodules are empty folders, and files in
/// Git LFS are pointers. No hook runs.
#[derive(Debug)]
pub struct BaseTree {
    repository: Repository,
    folder: TempDir,
    path: Utf8PathBuf,
    /// Where git keeps its notes about work trees, by the names of their folders.
    notes: Utf8PathBuf,
}

/// Why there is no such work tree.
#[derive(Debug, thiserror::Error)]
pub enum BaseTreeError {
    /// There is no temporary folder for it.
    #[error("cannot make a temporary folder for the files of {commit}")]
    Folder {
        /// The commit.
        commit: String,
        /// Why.
        source: io::Error,
    },
    /// Git does not check it out, perhaps because it may not write to the repository.
    #[error("cannot check out {commit} into a temporary folder beside {root}")]
    CheckOut {
        /// The commit.
        commit: String,
        /// The user's work tree.
        root: Utf8PathBuf,
        /// What git said.
        source: Box<GitError>,
    },
}

impl BaseTree {
    /// Checks a commit out into a new temporary folder.
    pub fn check_out(repository: &Repository, commit: &str) -> Result<Self, BaseTreeError> {
        let no_folder = |source| BaseTreeError::Folder {
            commit: commit.to_owned(),
            source,
        };
        let no_tree = |source| BaseTreeError::CheckOut {
            commit: commit.to_owned(),
            root: repository.root().to_owned(),
            source: Box::new(source),
        };
        let folder = TempDir::with_prefix(PREFIX).map_err(no_folder)?;
        let path = Utf8PathBuf::try_from(folder.path().to_owned())
            .map_err(io::Error::other)
            .and_then(|path| path.canonicalize_utf8())
            .map_err(no_folder)?;
        let notes = notes_folder(repository).map_err(no_tree)?;
        forget_lost(&notes);
        // From here on Drop clears up, also what a failed git leaves behind.
        let tree = Self {
            repository: repository.clone(),
            notes,
            folder,
            path,
        };
        let target = tree.path.as_str();
        let arguments = ["worktree", "add", "--quiet", "--detach", target, commit];
        repository.run(&arguments).map_err(no_tree)?;
        Ok(tree)
    }

    /// The folder, without symbolic links.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The same place in this work tree as `path` is in the user's. A relative path is taken from the
    /// top; a path outside the user's work tree stays what it is.
    pub fn map(&self, path: &Utf8Path) -> Utf8PathBuf {
        let root = self.repository.root();
        if let Ok(inside) = path.strip_prefix(root) {
            return self.path.join(inside);
        }
        if path.is_relative() {
            return self.path.join(path);
        }
        // The way to it may lead through a symbolic link.
        let real = path.canonicalize_utf8();
        match real.as_deref().map(|real| real.strip_prefix(root)) {
            Ok(Ok(inside)) => self.path.join(inside),
            Ok(Err(_)) | Err(_) => path.to_owned(),
        }
    }
}

impl Drop for BaseTree {
    fn drop(&mut self) {
        let arguments = ["worktree", "remove", "--force", self.path.as_str()];
        if self.repository.run(&arguments).is_err() {
            // `git worktree prune` would also forget work trees of the user's whose disk is not
            // there now, so we remove no more than our own. There is nobody left to tell an error.
            drop(fs::remove_dir_all(self.folder.path()));
            if let Some(name) = self.path.file_name() {
                forget(&self.notes.join(name));
            }
        }
    }
}

/// Where git keeps its notes about work trees.
fn notes_folder(repository: &Repository) -> Result<Utf8PathBuf, GitError> {
    let arguments = ["rev-parse", "--git-path", "worktrees"];
    let answer = repository.ask(&arguments)?.unwrap_or_default();
    Ok(repository.root().join(answer))
}

/// Forgets work trees of ours whose folder is gone: their run was killed, and the system has cleared
/// its temporary folder since. They hinder nobody, so that an error is none.
fn forget_lost(notes: &Utf8Path) {
    for entry in notes.read_dir_utf8().into_iter().flatten().flatten() {
        if entry.file_name().starts_with(PREFIX) && is_lost(entry.path()) {
            forget(entry.path());
        }
    }
}

/// A folder that we do not see may be one in a container that shares the repository with us. No run
/// takes a day.
fn is_lost(notes: &Utf8Path) -> bool {
    let changed = fs::metadata(notes).and_then(|metadata| metadata.modified());
    let age = changed.map(|changed| changed.elapsed().unwrap_or_default());
    let target = fs::read_to_string(notes.join("gitdir"));
    let folder = target.ok().and_then(|target| {
        let folder = Utf8Path::new(target.trim_end()).parent();
        folder.map(Utf8Path::to_owned)
    });
    age.is_ok_and(|age| age > LONGEST) && folder.is_some_and(|folder| !folder.exists())
}

/// Removes git's notes about one work tree, and their folder if it was the last: as git does.
fn forget(notes: &Utf8Path) {
    drop(fs::remove_dir_all(notes));
    if let Some(all) = notes.parent() {
        drop(fs::remove_dir(all));
    }
}
