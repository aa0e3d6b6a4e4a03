//! The files that git ignores in a work tree: a change may have made or altered them without git knowing.

use std::collections::BTreeSet;
use std::fs;
use std::time::SystemTime;

use camino::Utf8Path;

use crate::git::clutter::{Clutter, Sieve, changed, is_of_tools};
use crate::git::repository::Repository;

/// The most files and folders that are followed.
const MOST: usize = 2000;

/// Files and folders that git ignores, by their paths in the work tree: all but caches, virtual environments and the like.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ignored {
    pub(crate) files: BTreeSet<String>,
    pub(crate) folders: BTreeSet<String>,
}

impl Ignored {
    /// Looks at all of them. `None` if git does not say, if there are too many, or if one is a link: nobody sees who
    /// goes through it.
    pub(crate) fn read(repository: &Repository, clutter: &Clutter) -> Option<Self> {
        let listed = repository.run(&[
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
        ]);
        let listed = String::from_utf8(listed.ok()?).ok()?;
        let mut found = Self::default();
        let mut sieve = Sieve::new(clutter, repository.root());
        let names = listed.split('\0').filter(|name| !name.is_empty());
        for name in names {
            found.add(name, repository.root(), &mut sieve)?;
        }
        Some(found)
    }

    /// Whether nothing about a file has changed since a time.
    pub(crate) fn is_older(&self, root: &Utf8Path, than: SystemTime) -> bool {
        self.files.iter().all(|file| {
            let data = fs::symlink_metadata(root.join(file));
            data.is_ok_and(|data| changed(&data) <= than)
        })
    }

    fn add(&mut self, name: &str, root: &Utf8Path, sieve: &mut Sieve<'_>) -> Option<()> {
        let name = name.trim_end_matches('/');
        let place = root.join(name);
        // A file that is gone again was nobody's input.
        let Ok(kind) = fs::symlink_metadata(&place).map(|data| data.file_type()) else {
            return Some(());
        };
        let is_folder = place.is_dir();
        let as_git_says = if is_folder {
            format!("{name}/")
        } else {
            name.to_owned()
        };
        if is_of_tools(name) || !sieve.keeps(&as_git_says) {
            return Some(());
        }
        if kind.is_symlink() || self.files.len() + self.folders.len() >= MOST {
            return None;
        }
        if !is_folder {
            self.files.insert(name.to_owned());
            return Some(());
        }
        self.folders.insert(name.to_owned());
        for entry in place.read_dir_utf8().ok()? {
            self.add(&format!("{name}/{}", entry.ok()?.file_name()), root, sieve)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::git::repository::scratch::Scratch;

    fn read(scratch: &Scratch) -> Option<Ignored> {
        Ignored::read(&scratch.repository(), &Clutter::default())
    }

    #[test]
    fn what_is_ignored_is_listed_but_not_what_tools_leave() {
        let scratch = Scratch::new();
        scratch.write(
            ".gitignore",
            "build/\n_version.py\nenv\n__pycache__/\n.mypy_cache/\n",
        );
        scratch.write("shop/__init__.py", "");
        scratch.commit();
        for path in [
            "build/deep/table.txt",
            "build/deep/__pycache__/a.pyc",
            "shop/_version.py",
            "shop/__pycache__/a.pyc",
            ".mypy_cache/a.json",
            "env/pyvenv.cfg",
            "env/lib/a.py",
        ] {
            scratch.write(path, "1\n");
        }
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let expected = Ignored {
            files: names(&["build/deep/table.txt", "shop/_version.py"]),
            folders: names(&["build", "build/deep"]),
        };
        assert_eq!(read(&scratch), Some(expected));
    }

    #[test]
    fn a_link_cannot_be_followed() {
        let scratch = Scratch::new();
        scratch.write(".gitignore", "bazel-bin\n.venv\n");
        scratch.commit();
        scratch.write("elsewhere/pyvenv.cfg", "");
        symlink("elsewhere", scratch.root.join(".venv")).unwrap();
        assert_eq!(read(&scratch), Some(Ignored::default()));
        symlink("/usr", scratch.root.join("bazel-bin")).unwrap();
        assert_eq!(read(&scratch), None);
    }
}
