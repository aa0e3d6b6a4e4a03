//! A second, temporary work tree with the files of another commit, beside the user's own and without
//! a trace in it.

use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::git::repository::{GitError, Repository};

/// The beginning of the names of the folders around our work trees, and around copies of them.
pub(crate) const PREFIX: &str = "unflake-base-";

/// The age from which on a work tree whose folder we do not see belongs to nobody.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The files of a commit in a temporary folder, for as long as this value lives.
///
/// It has the name of the user's work tree. Ignored and untracked files of the user are not in it, submodules are
/// empty folders, and files in Git LFS are pointers. No hook runs.
#[derive(Debug)]
pub struct BaseTree {
    repository: Repository,
    folder: TempDir,
    path: Utf8PathBuf,
    /// Git's notes about it, once there are some.
    notes: Option<Utf8PathBuf>,
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
    #[error("cannot check out {commit} of {root} into a temporary folder")]
    CheckOut {
        /// The commit.
        commit: String,
        /// The user's work tree.
        root: Utf8PathBuf,
        /// The error from git.
        source: Box<GitError>,
    },
}

impl BaseTree {
    /// Checks a commit out into a new temporary folder. What belongs beside the work tree is made by `surround`, which
    /// is told its path.
    pub fn check_out(
        repository: &Repository,
        commit: &str,
        surround: &dyn Fn(&Utf8Path) -> io::Result<()>,
    ) -> Result<Self, BaseTreeError> {
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
            .map_err(no_folder)?
            .join(repository.root().file_name().unwrap_or("root"));
        surround(&path).map_err(no_folder)?;
        forget_lost(&notes_folder(repository).map_err(no_tree)?);
        // From here on Drop clears up, also what a failed git leaves behind.
        let mut tree = Self {
            repository: repository.clone(),
            notes: None,
            folder,
            path,
        };
        let target = tree.path.as_str();
        let arguments = ["worktree", "add", "--quiet", "--detach", target, commit];
        repository.run(&arguments).map_err(no_tree)?;
        tree.notes = notes_of(&tree.path);
        Ok(tree)
    }

    /// The folder, without symbolic links.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The place in this work tree that `path` is in the user's. A relative path starts at the top; a path outside the
    /// user's work tree stays as it is.
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
            if let Some(notes) = &self.notes {
                forget(notes);
            }
        }
    }
}

/// The folder in which git keeps its notes about work trees.
fn notes_folder(repository: &Repository) -> Result<Utf8PathBuf, GitError> {
    let arguments = ["rev-parse", "--git-path", "worktrees"];
    let answer = repository.ask(&arguments)?.unwrap_or_default();
    Ok(repository.root().join(answer))
}

/// Git's notes about a work tree that it has just made. They have the folder's name, or one like it.
fn notes_of(tree: &Utf8Path) -> Option<Utf8PathBuf> {
    // Without it the next run forgets them.
    let text = fs::read_to_string(tree.join(".git")).ok()?;
    let path = text.trim_end().strip_prefix("gitdir: ")?;
    Some(tree.join(path))
}

/// Forgets work trees of ours whose folder is gone: their run was killed, and the system has cleared
/// its temporary folder since. They hinder nobody, so that an error is none.
fn forget_lost(notes: &Utf8Path) {
    for entry in notes.read_dir_utf8().into_iter().flatten().flatten() {
        if is_ours_and_lost(entry.path()) {
            forget(entry.path());
        }
    }
}

/// A folder that we do not see may be one in a container that shares the repository with us. No run
/// takes a day.
fn is_ours_and_lost(notes: &Utf8Path) -> bool {
    let changed = fs::metadata(notes).and_then(|metadata| metadata.modified());
    let age = changed.map(|changed| changed.elapsed().unwrap_or_default());
    let target = fs::read_to_string(notes.join("gitdir"));
    let folder = target.ok().and_then(|target| {
        let tree = Utf8Path::new(target.trim_end()).parent();
        tree.and_then(Utf8Path::parent).map(Utf8Path::to_owned)
    });
    let is_ours = |folder: &Utf8PathBuf| {
        let name = folder.file_name();
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let is_lost = folder.is_some_and(|folder| is_ours(&folder) && !folder.exists());
    is_lost && age.is_ok_and(|age| age > LONGEST)
}

/// Removes git's notes about one work tree, and their folder if it was the last: as git does.
fn forget(notes: &Utf8Path) {
    drop(fs::remove_dir_all(notes));
    if let Some(all) = notes.parent() {
        drop(fs::remove_dir(all));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    use super::*;
    use crate::files::siblings::Siblings;
    use crate::git::repository::scratch::Scratch;

    const ALONE: &dyn Fn(&Utf8Path) -> io::Result<()> = &|_| Ok(());

    /// Every file below a folder, with its content and time.
    fn picture(folder: &Utf8Path) -> BTreeMap<Utf8PathBuf, (Vec<u8>, SystemTime)> {
        let mut files = BTreeMap::new();
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_dir() && !path.is_symlink() {
                files.extend(picture(&path));
            } else {
                let time = fs::symlink_metadata(&path).unwrap().modified().unwrap();
                files.insert(path.clone(), (fs::read(&path).unwrap(), time));
            }
        }
        files
    }

    fn hook(scratch: &Scratch, name: &str, mark: &Utf8Path) {
        let path = format!(".git/hooks/{name}");
        scratch.write(&path, format!("#!/bin/sh\ntouch {mark}\n"));
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scratch.root.join(path), mode).unwrap();
    }

    /// Two commits; the first is the base.
    fn project() -> (Scratch, String) {
        let scratch = Scratch::new();
        scratch.write("folder/a.py", "old\n");
        let base = scratch.commit();
        scratch.write("folder/a.py", "new\n");
        scratch.commit();
        (scratch, base)
    }

    #[test]
    fn it_holds_the_files_of_the_commit() {
        let (scratch, base) = project();
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        let path = tree.map(&scratch.root.join("folder/a.py"));
        assert_eq!(path, tree.path().join("folder/a.py"));
        assert_eq!(fs::read_to_string(path).unwrap(), "old\n");
    }

    #[test]
    fn the_users_repository_and_files_stay_as_they_were_to_the_byte() {
        let (scratch, base) = project();
        scratch.write("stashed", "1\n");
        scratch.git(&["stash", "--include-untracked", "--quiet"]);
        scratch.write("folder/a.py", "staged\n");
        scratch.git(&["add", "--all"]);
        scratch.write("folder/a.py", "unstaged\n");
        scratch.write("untracked", "1\n");
        let mark = scratch.root.join("hooked");
        for name in [
            "post-checkout",
            "reference-transaction",
            "post-index-change",
        ] {
            hook(&scratch, name, &mark);
        }
        let before = picture(&scratch.root);
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        let mut during = picture(&scratch.root);
        let notes = scratch.root.join(".git/worktrees");
        during.retain(|path, _| !path.starts_with(&notes));
        assert!(during == before);
        let path = tree.path().to_owned();
        fs::write(path.join("made by a test"), "1\n").unwrap();
        fs::write(path.join("folder/a.py"), "changed by a test\n").unwrap();
        drop(tree);
        assert!(!path.exists());
        assert!(picture(&scratch.root) == before);
        assert!(!notes.exists());
        assert!(!mark.exists());
    }

    #[test]
    fn it_goes_away_even_if_git_no_longer_knows_it() {
        let (scratch, base) = project();
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        let path = tree.path().to_owned();
        fs::write(path.join(".git"), "nonsense").unwrap();
        drop(tree);
        assert!(!path.exists());
        assert!(!scratch.root.join(".git/worktrees").exists());
    }

    #[test]
    fn it_goes_away_with_its_notes_if_a_test_has_removed_it() {
        let (scratch, base) = project();
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        fs::remove_dir_all(tree.path()).unwrap();
        drop(tree);
        assert!(!scratch.root.join(".git/worktrees").exists());
    }

    #[test]
    fn a_killed_run_does_not_hinder_the_next() {
        let (scratch, base) = project();
        let repository = scratch.repository();
        let killed = BaseTree::check_out(&repository, &base, ALONE).unwrap();
        let folder = killed.path().parent().unwrap().to_owned();
        let notes = killed.notes.clone().unwrap();
        std::mem::forget(killed);
        let next = BaseTree::check_out(&repository, &base, ALONE).unwrap();
        assert!(next.path().join("folder/a.py").exists());
        drop(next);
        assert!(notes.exists(), "the folder is there: it may be in use");
        fs::remove_dir_all(&folder).unwrap();
        drop(BaseTree::check_out(&repository, &base, ALONE).unwrap());
        assert!(notes.exists(), "the folder may be another container's");
        let yesterday = SystemTime::now() - 2 * LONGEST;
        File::open(&notes).unwrap().set_modified(yesterday).unwrap();
        drop(BaseTree::check_out(&repository, &base, ALONE).unwrap());
        assert!(!notes.exists());
    }

    #[test]
    fn a_work_tree_of_the_users_is_not_forgotten_with_ours() {
        let (scratch, base) = project();
        let away = Scratch::folder();
        let theirs = away.root.join("theirs");
        scratch.git(&["worktree", "add", "--quiet", theirs.as_str()]);
        fs::rename(&theirs, away.root.join("unplugged")).unwrap();
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        fs::write(tree.path().join(".git"), "nonsense").unwrap();
        drop(tree);
        let known = scratch.git(&["worktree", "list", "--porcelain"]);
        assert!(known.contains(theirs.as_str()), "{known}");
        assert!(!known.contains(PREFIX), "{known}");
    }

    #[test]
    fn it_can_be_made_from_a_linked_work_tree() {
        let (scratch, base) = project();
        let linked = Scratch::folder();
        let target = linked.root.as_str();
        scratch.git(&["worktree", "add", "--quiet", "--detach", target]);
        let tree = BaseTree::check_out(&linked.repository(), &base, ALONE).unwrap();
        let path = tree.map(&linked.root.join("folder/a.py"));
        assert_eq!(fs::read_to_string(path).unwrap(), "old\n");
        drop(tree);
        let notes = scratch.root.join(".git/worktrees").read_dir_utf8().unwrap();
        assert_eq!(notes.count(), 1);
    }

    #[test]
    fn it_has_the_name_and_the_siblings_of_the_users_and_nothing_of_those_goes_away_with_it() {
        let away = Scratch::folder();
        let (scratch, base) = project();
        let root = away.root.join("shop");
        scratch.git(&["worktree", "add", "--quiet", root.as_str()]);
        fs::create_dir(away.root.join("common")).unwrap();
        fs::write(away.root.join("common/rates.txt"), "1").unwrap();
        let repository = Repository::find(&root).unwrap().unwrap();
        for is_broken in [false, true] {
            let siblings = Siblings::of(root.as_std_path(), None);
            let surround = |tree: &Utf8Path| siblings.link_beside(tree.as_std_path());
            let tree = BaseTree::check_out(&repository, &base, &surround).unwrap();
            let folder = tree.path().parent().unwrap().to_owned();
            assert_eq!(tree.path().file_name(), Some("shop"));
            let rates = tree.path().join("../common/rates.txt");
            assert_eq!(fs::read_to_string(rates).unwrap(), "1");
            assert!(folder.join("common").is_symlink());
            if is_broken {
                fs::write(tree.path().join(".git"), "nonsense").unwrap();
            }
            drop(tree);
            assert!(!folder.exists());
            let rates = away.root.join("common/rates.txt");
            assert_eq!(fs::read_to_string(rates).unwrap(), "1");
            let known = scratch.root.join(".git/worktrees").read_dir_utf8().unwrap();
            assert_eq!(known.count(), 1, "the user's own");
        }
    }

    #[test]
    fn two_can_live_side_by_side() {
        let (scratch, base) = project();
        let repository = scratch.repository();
        let one = BaseTree::check_out(&repository, &base, ALONE).unwrap();
        let other = BaseTree::check_out(&repository, &base, ALONE).unwrap();
        assert_ne!(one.path(), other.path());
        drop(one);
        assert!(other.path().join("folder/a.py").exists());
    }

    #[test]
    fn paths_outside_stay_and_links_to_the_inside_are_followed() {
        let (scratch, base) = project();
        let tree = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap();
        assert_eq!(tree.map(&scratch.root), tree.path());
        assert_eq!(
            tree.map(Utf8Path::new("folder")),
            tree.path().join("folder")
        );
        assert_eq!(tree.map(Utf8Path::new("/nonexistent")), "/nonexistent");
        let sibling = Utf8PathBuf::from(format!("{}-sibling", scratch.root));
        assert_eq!(tree.map(&sibling), sibling);
        let outside = Scratch::folder();
        let link = outside.root.join("link");
        symlink(&scratch.root, &link).unwrap();
        assert_eq!(tree.map(&link.join("folder")), tree.path().join("folder"));
    }

    #[test]
    fn a_repository_that_cannot_be_written_is_an_error_in_gits_own_words() {
        let (scratch, base) = project();
        // A file in the way holds off even root, who may write anywhere.
        scratch.write(".git/worktrees", "");
        let error = BaseTree::check_out(&scratch.repository(), &base, ALONE).unwrap_err();
        let expected = format!(
            "cannot check out {base} of {} into a temporary folder",
            scratch.root
        );
        assert_eq!(error.to_string(), expected);
        let BaseTreeError::CheckOut { source, .. } = error else {
            panic!("{error}");
        };
        assert!(
            source.to_string().contains("fatal: could not create"),
            "{source}"
        );
        assert!(scratch.root.join(".git/worktrees").is_file());
    }

    #[test]
    fn a_commit_that_is_none_leaves_nothing_behind() {
        let (scratch, _) = project();
        let absent = "0123456789012345678901234567890123456789";
        let error = BaseTree::check_out(&scratch.repository(), absent, ALONE).unwrap_err();
        assert!(matches!(error, BaseTreeError::CheckOut { .. }));
        assert!(!scratch.root.join(".git/worktrees").exists());
    }
}
