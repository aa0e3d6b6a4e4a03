//! Private copies of a project's files, so that experiments do not disturb each other or the user.
//!
//! A test that leaves a file behind would decide how the next experiment ends. So experiments run in a
//! copy of the work tree with a temporary folder of its own, and what they change there is undone.
//! Caches of bytecode are not counted. What lies outside both folders cannot be undone; the siblings of the work
//! tree, to which links lead, do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::files::copy::{
    CopyTrouble, Load, MOST_BYTES, MOST_FILES, copy_file, copy_tree, is_made_after,
};
use crate::files::fingerprint::{Look, look_around, remove};
use crate::files::quiet::Alarm;
use crate::files::siblings::Siblings;
use crate::git::repository::Repository;
use crate::git::worktree;

/// The work tree as it was at the start. Nothing runs in it.
pub(crate) struct Original {
    folder: TempDir,
    /// The user's work tree.
    root: Utf8PathBuf,
    siblings: Siblings,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It would take too much load.
    #[error("{root} is too large to be copied: more than {MOST_FILES} files or {} MB", MOST_BYTES >> 20)]
    TooLarge {
        /// The work tree.
        root: Utf8PathBuf,
    },
    /// A file cannot be copied.
    #[error("cannot copy {root}")]
    Copy {
        /// The work tree.
        root: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Original {
    /// Copies a work tree, without environments, caches and the repository's own records, and without the files that
    /// came after `until`.
    pub(crate) fn copy(root: &Utf8Path, until: Option<SystemTime>) -> Result<Self, CopyError> {
        let failed = |source| CopyError::Copy {
            root: root.to_owned(),
            source,
        };
        let folder = TempDir::with_prefix("unflake-original-").map_err(failed)?;
        let mut load = Load::default();
        let files = folder.path().join("files");
        let is_left_out = |path: &Path, data: &Metadata| {
            let is_repository = path.file_name().is_some_and(|name| name == ".git");
            is_repository
                || data.is_dir() && is_left_out(path)
                || until.is_some_and(|until| is_made_after(data, until))
        };
        let copied = copy_tree(root.as_std_path(), &files, &mut load, &is_left_out);
        copied.map_err(|error| match error {
            CopyTrouble::TooLarge => CopyError::TooLarge {
                root: root.to_owned(),
            },
            CopyTrouble::Io(source) => failed(source),
        })?;
        let original = Self {
            folder,
            root: root.to_owned(),
            siblings: Siblings::of(root.as_std_path(), until),
        };
        original.borrow_repository().map_err(failed)?;
        Ok(original)
    }

    /// Gives the copy a repository of its own that borrows the user's objects: a test may ask git, or
    /// write into its configuration.
    fn borrow_repository(&self) -> io::Result<()> {
        let own = self.root.join(".git");
        let Ok(Some(repository)) = Repository::find(&self.root) else {
            return Ok(());
        };
        if repository.root() != self.root || !own.exists() {
            return Ok(());
        }
        let clone = self.folder.path().join("clone");
        let clone = Utf8PathBuf::try_from(clone).map_err(io::Error::other)?;
        let arguments = [
            "clone",
            "--quiet",
            "--shared",
            "--no-checkout",
            self.root.as_str(),
            clone.as_str(),
        ];
        // A repository without commits cannot be cloned; then the copy has none.
        if repository.run(&arguments).is_err() {
            return Ok(());
        }
        fs::rename(clone.join(".git"), self.folder.path().join("files/.git"))?;
        let index = own.join("index");
        if index.is_file() {
            copy_file(
                index.as_std_path(),
                &self.folder.path().join("files/.git/index"),
            )?;
        }
        Ok(())
    }

    /// A new workspace with all files as they were at the start.
    pub(crate) fn workspace(&self) -> io::Result<Workspace> {
        let path = TempDir::with_prefix(self.prefix())?.keep();
        let path = path.canonicalize()?;
        let path = Utf8PathBuf::try_from(path).map_err(io::Error::other)?;
        // From here on the folder is removed, whatever happens.
        // A folder of the same name: it can be that of a package.
        let part = Path::new("files").join(self.root.file_name().unwrap_or("root"));
        let files = path.as_std_path().join(&part);
        let mut workspace = Workspace {
            files: Utf8PathBuf::try_from(files).map_err(io::Error::other)?,
            part,
            original: self.folder.path().join("files"),
            new: BTreeMap::new(),
            marked: BTreeMap::new(),
            alarm: None,
            path,
        };
        fs::create_dir(workspace.path.join("files"))?;
        self.siblings.link_beside(workspace.files.as_std_path())?;
        copy_tree(
            &self.folder.path().join("files"),
            workspace.files.as_std_path(),
            &mut Load::default(),
            &|_, _| false,
        )
        .map_err(|trouble| match trouble {
            CopyTrouble::Io(error) => error,
            CopyTrouble::TooLarge => io::Error::other("the copy has grown"),
        })?;
        fs::create_dir(workspace.temporary())?;
        workspace.new = workspace.look()?;
        Ok(workspace)
    }

    /// The beginning of the folder's name. A copy of a checkout of the base lies in a folder like that of the
    /// checkout: its path shows which of the two sides it is.
    fn prefix(&self) -> &'static str {
        let around = self.root.parent().and_then(Utf8Path::file_name);
        let is_base = around.is_some_and(|name| name.starts_with(worktree::PREFIX));
        if is_base {
            worktree::PREFIX
        } else {
            "unflake-"
        }
    }

    /// A number that tells these files from others: by their paths, sizes and times.
    pub(crate) fn fingerprint(&self) -> io::Result<u64> {
        let mut found = BTreeMap::new();
        look_around(self.folder.path(), Path::new("files"), &mut found)?;
        let mut hasher = DefaultHasher::new();
        for (path, look) in found {
            if !path.starts_with("files/.git") && !look.is_folder() {
                format!("{} {look:?}", path.display()).hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    /// The user's work tree.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }
}

/// A copy of the work tree, and a temporary folder, for experiments.
pub(crate) struct Workspace {
    path: Utf8PathBuf,
    files: Utf8PathBuf,
    /// The place of the copy below `path`.
    part: PathBuf,
    original: PathBuf,
    /// The look of each path when the workspace was made.
    new: BTreeMap<PathBuf, Look>,
    /// The look of each path when the workspace was marked.
    marked: BTreeMap<PathBuf, Look>,
    alarm: Option<Alarm>,
}

/// The changes that `Workspace::restore` has undone.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The paths that were not as marked, from the work tree's root; those in the temporary folder are
    /// left out.
    pub(crate) changed: Vec<String>,
    /// Whether a folder had to be made anew: a process that works in the old one works in a folder that is gone.
    pub(crate) is_rebuilt: bool,
}

impl Workspace {
    /// The copy of the work tree.
    pub(crate) fn files(&self) -> &Utf8Path {
        &self.files
    }

    /// The folder for temporary files.
    pub(crate) fn temporary(&self) -> Utf8PathBuf {
        self.path.join("tmp")
    }

    /// A text in which paths of the copy and of its siblings are told as those of the work tree.
    pub(crate) fn tell(&self, text: &str, root: &Utf8Path) -> String {
        match (self.files.parent(), root.parent()) {
            (Some(folder), Some(parent)) if parent != "/" => {
                text.replace(folder.as_str(), parent.as_str())
            }
            (Some(_) | None, Some(_) | None) => text.replace(self.files.as_str(), root.as_str()),
        }
    }

    /// Makes what is there now the state that `restore` goes back to.
    pub(crate) fn mark(&mut self) -> io::Result<()> {
        self.marked = self.look()?;
        let kept = self.path.join("kept");
        remove(kept.as_std_path())?;
        for (path, look) in &self.marked {
            let is_original = path.strip_prefix(&self.part).is_ok_and(|inside| {
                Look::at(&self.original.join(inside)).is_ok_and(|other| other == *look)
            });
            let is_link = matches!(look, Look::Link { .. });
            if !is_original && !is_link && !look.is_folder() {
                let kept = kept.as_std_path().join(path);
                fs::create_dir_all(kept.parent().unwrap_or(&kept))?;
                copy_file(&self.path.as_std_path().join(path), &kept)?;
            }
        }
        self.watch();
        Ok(())
    }

    /// Whether there is a state to go back to.
    pub(crate) fn is_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// Whether nothing that matters to others has happened since this was asked for the last time; false
    /// if that cannot be told.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.alarm.as_mut().is_some_and(Alarm::is_quiet)
    }

    /// Undoes what happened since the mark.
    pub(crate) fn restore(&mut self) -> io::Result<Restored> {
        if self.alarm.as_mut().is_some_and(Alarm::is_silent) {
            return Ok(Restored::default());
        }
        let restored = self.undo()?;
        self.watch();
        Ok(restored)
    }

    /// Makes it as new again: all files as they were at the start, and no mark. Nobody may work in it.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        self.alarm = None;
        remove(self.path.join("kept").as_std_path())?;
        self.marked = std::mem::take(&mut self.new);
        self.undo()?;
        self.new = std::mem::take(&mut self.marked);
        Ok(())
    }

    fn undo(&mut self) -> io::Result<Restored> {
        let now = self.look()?;
        let mut restored = Restored::default();
        let mut changed = BTreeSet::new();
        for (path, look) in &now {
            if self.marked.get(path) != Some(look) {
                changed.insert(path.clone());
                let was_folder = self.marked.get(path).is_some_and(Look::is_folder);
                if !(was_folder && look.is_folder()) {
                    remove(&self.path.as_std_path().join(path))?;
                }
            }
        }
        let mut anew = BTreeMap::new();
        for (path, look) in &self.marked {
            if now.get(path) != Some(look) {
                changed.insert(path.clone());
                let look = self.bring_back(path, look)?;
                restored.is_rebuilt |= look.is_some();
                anew.extend(look.map(|look| (path.clone(), look)));
            }
        }
        self.marked.extend(anew);
        let inside = changed
            .iter()
            .filter_map(|path| path.strip_prefix(&self.part).ok());
        let inside = inside.filter(|path| *path != Path::new(""));
        restored.changed = inside.map(|path| path.display().to_string()).collect();
        Ok(restored)
    }

    /// Makes a path look as it was marked; a folder that had to be made anew looks a little different.
    fn bring_back(&self, path: &Path, look: &Look) -> io::Result<Option<Look>> {
        let target = self.path.as_std_path().join(path);
        let kept = self.path.as_std_path().join("kept").join(path);
        let source = if kept.symlink_metadata().is_ok() {
            kept
        } else {
            self.original
                .join(path.strip_prefix(&self.part).unwrap_or(path))
        };
        match look {
            Look::Folder { mode, .. } => {
                match fs::create_dir(&target) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    Ok(()) | Err(_) => {}
                }
                fs::set_permissions(&target, Permissions::from_mode(*mode))?;
                let anew = Look::at(&target)?;
                return Ok((anew != *look).then_some(anew));
            }
            Look::File { .. } => copy_file(&source, &target)?,
            Look::Link { target: led } => symlink(led, &target)?,
            // A pipe or a socket is of no use to anybody but who made it.
            Look::Other => {}
        }
        Ok(None)
    }

    fn look(&self) -> io::Result<BTreeMap<PathBuf, Look>> {
        let mut found = BTreeMap::new();
        for part in ["files", "tmp"] {
            look_around(self.path.as_std_path(), Path::new(part), &mut found)?;
        }
        Ok(found)
    }

    fn watch(&mut self) {
        let folders = self.marked.iter().filter(|(_, look)| look.is_folder());
        let folders = folders.map(|(path, _)| self.path.as_std_path().join(path));
        self.alarm = Alarm::set(folders);
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system, as all temporary folders are.
        drop(remove(self.path.as_std_path()));
    }
}

/// Folders that no test reads, or that are found by their absolute path anyway.
fn is_left_out(folder: &Path) -> bool {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let names = [
        ".git",
        ".hg",
        ".tox",
        ".nox",
        "node_modules",
        ".mypy_cache",
        ".unflake",
        ".ruff_cache",
    ];
    names.contains(&name) || folder.join("pyvenv.cfg").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repository::scratch::Scratch;

    /// The workspace goes back to the original's files, so all three live as long.
    fn project() -> (Scratch, Original, Workspace) {
        let scratch = Scratch::new();
        scratch.write("data.txt", "one");
        scratch.write("deep/inner.txt", "one");
        scratch.write("venv/pyvenv.cfg", "");
        scratch.write("venv/large", "");
        scratch.commit();
        let original = Original::copy(&scratch.root, None).unwrap();
        let mut workspace = original.workspace().unwrap();
        workspace.mark().unwrap();
        (scratch, original, workspace)
    }

    #[test]
    fn a_copy_has_the_name_of_its_original_which_can_be_that_of_a_package() {
        let (scratch, _original, workspace) = project();
        assert_eq!(workspace.files().file_name(), scratch.root.file_name());
    }

    #[test]
    fn what_was_marked_and_what_came_after_is_gone_from_one_that_is_as_new() {
        let (_scratch, _original, mut workspace) = project();
        let at = |name: &str| workspace.files().join(name);
        let [data, deep, new] = ["data.txt", "deep", "new.txt"].map(at);
        fs::write(&data, "two").unwrap();
        fs::write(&new, "two").unwrap();
        workspace.mark().unwrap();
        fs::remove_dir_all(&deep).unwrap();
        fs::write(workspace.temporary().join("left"), "two").unwrap();
        for _ in 0..2 {
            workspace.renew().unwrap();
            assert!(!workspace.is_marked());
            assert_eq!(fs::read_to_string(&data).unwrap(), "one");
            assert_eq!(fs::read_to_string(deep.join("inner.txt")).unwrap(), "one");
            assert!(!new.exists() && !workspace.temporary().join("left").exists());
        }
        workspace.mark().unwrap();
        fs::write(&new, "three").unwrap();
        assert_eq!(workspace.restore().unwrap().changed, ["new.txt"]);
    }

    #[test]
    fn everything_that_an_experiment_changes_is_undone_and_told() {
        let (_scratch, _original, mut workspace) = project();
        let files = workspace.files().to_owned();
        assert_eq!(workspace.restore().unwrap().changed, [""; 0]);
        fs::write(files.join("data.txt"), "two").unwrap();
        fs::write(files.join("new.txt"), "").unwrap();
        fs::remove_dir_all(files.join("deep")).unwrap();
        fs::create_dir_all(files.join("made/inside")).unwrap();
        fs::write(workspace.temporary().join("left"), "").unwrap();
        let changed = workspace.restore().unwrap().changed;
        let expected = [
            "data.txt",
            "deep",
            "deep/inner.txt",
            "made",
            "made/inside",
            "new.txt",
        ];
        assert_eq!(changed, expected);
        assert_eq!(fs::read_to_string(files.join("data.txt")).unwrap(), "one");
        assert_eq!(
            fs::read_to_string(files.join("deep/inner.txt")).unwrap(),
            "one"
        );
        assert!(!files.join("made").exists() && !files.join("new.txt").exists());
        assert!(!workspace.temporary().join("left").exists());
        assert_eq!(
            workspace.restore().unwrap().changed,
            [""; 0],
            "and it stays so"
        );
    }

    #[test]
    fn a_hostile_test_is_undone_too() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let (_scratch, _original, mut workspace) = project();
        let files = workspace.files().to_owned();
        let odd = files.as_std_path().join(OsStr::from_bytes(b"\xff"));
        fs::write(&odd, "").unwrap();
        nix::unistd::mkfifo(
            files.join("pipe").as_std_path(),
            nix::sys::stat::Mode::S_IRWXU,
        )
        .unwrap();
        fs::create_dir(workspace.temporary().join("closed")).unwrap();
        fs::write(workspace.temporary().join("closed/in"), "").unwrap();
        for folder in [workspace.temporary().join("closed"), files.join("deep")] {
            fs::set_permissions(folder, Permissions::from_mode(0o0)).unwrap();
        }
        let restored = workspace.restore().unwrap();
        assert_eq!(restored.changed, ["deep", "pipe", "\u{fffd}"]);
        assert!(!restored.is_rebuilt);
        assert!(!odd.exists() && files.join("deep/inner.txt").exists());
        assert_eq!(fs::read_dir(workspace.temporary()).unwrap().count(), 0);

        fs::remove_dir_all(&files).unwrap();
        assert!(workspace.restore().unwrap().is_rebuilt);
        assert!(files.join("deep/inner.txt").exists());
        assert_eq!(workspace.restore().unwrap().changed, [""; 0], "once");
        fs::set_permissions(files.join("deep"), Permissions::from_mode(0o0)).unwrap();
        let path = workspace.path.clone();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn nothing_of_the_users_is_lost_beside_the_work_tree_whatever_happens_to_the_links() {
        let folder = Scratch::folder();
        let root = folder.root.join("shop");
        fs::create_dir_all(folder.root.join("common/deep")).unwrap();
        fs::create_dir(&root).unwrap();
        let real = ["common/deep/rates.txt", "shared.cfg", "other.cfg"];
        for name in real {
            fs::write(folder.root.join(name), name).unwrap();
        }
        let is_whole = || {
            for name in real {
                assert_eq!(fs::read_to_string(folder.root.join(name)).unwrap(), name);
            }
        };
        let original = Original::copy(&root, None).unwrap();
        let before = original.fingerprint().unwrap();
        let mut workspace = original.workspace().unwrap();
        workspace.mark().unwrap();
        let beside = workspace.files().parent().unwrap().to_owned();
        for _ in 0..2 {
            fs::remove_file(beside.join("shared.cfg")).unwrap();
            fs::rename(beside.join("common"), beside.join("moved")).unwrap();
            fs::create_dir(beside.join("common")).unwrap();
            fs::write(beside.join("new.cfg"), "").unwrap();
            symlink(&folder.root, beside.join("up")).unwrap();
            symlink(&folder.root, workspace.files().join("up")).unwrap();
            assert_eq!(workspace.restore().unwrap().changed, ["up"]);
            assert!(!beside.join("new.cfg").exists() && !beside.join("moved").exists());
            let rates = beside.join("common/deep/rates.txt");
            assert_eq!(fs::read_to_string(rates).unwrap(), real[0]);
            assert!(beside.join("shared.cfg").is_symlink());
        }
        fs::remove_file(beside.join("common")).unwrap();
        workspace.renew().unwrap();
        assert!(beside.join("common/deep").exists());
        is_whole();
        assert_eq!(original.fingerprint().unwrap(), before);
        drop((workspace, original));
        assert!(!beside.exists());
        is_whole();
    }

    #[test]
    fn paths_beside_the_copy_are_told_as_those_beside_the_work_tree() {
        let (scratch, _original, workspace) = project();
        let files = workspace.files();
        let (root, beside) = (&scratch.root, files.parent().unwrap());
        let text = format!("{files}/a.py: no {beside}/shared.cfg; rootdir: {beside}");
        let parent = root.parent().unwrap();
        let expected = format!("{root}/a.py: no {parent}/shared.cfg; rootdir: {parent}");
        assert_eq!(workspace.tell(&text, root), expected);
        let name = files.file_name().unwrap();
        let top = Utf8PathBuf::from(format!("/{name}"));
        assert_eq!(workspace.tell(files.as_str(), &top), top.as_str());
    }

    #[test]
    fn what_collecting_left_is_kept() {
        let (_scratch, _original, mut workspace) = project();
        let log = workspace.files().join("import.log");
        fs::write(&log, "from import").unwrap();
        workspace.mark().unwrap();
        fs::remove_file(&log).unwrap();
        workspace.restore().unwrap();
        assert_eq!(fs::read_to_string(log).unwrap(), "from import");
    }

    #[test]
    fn the_copy_has_a_repository_of_its_own_and_no_environment() {
        let (scratch, _original, workspace) = project();
        let files = workspace.files();
        assert!(!files.join("venv").exists());
        let repository = Repository::find(files).unwrap().unwrap();
        assert_eq!(repository.root(), files);
        repository.run(&["config", "shop.left", "behind"]).unwrap();
        assert!(!scratch.try_git(&["config", "shop.left"]).status.success());
        let status = repository.run(&["status", "--porcelain"]).unwrap();
        let status = String::from_utf8(status).unwrap();
        assert!(!status.contains("data.txt"), "{status}");
    }
}
