//! The neighbours of a work tree, as links beside a copy of it.
//!
//! A project reaches out of itself: it reads `../shared.cfg`, imports from `../common`, or asks for the name of its
//! own folder. So a copy has the name of its original and a folder to itself, in which links lead to the siblings of
//! the original. Only tests follow these links: code of ours that removes, restores or looks at such a folder takes a
//! link for a link. Files further away (`../../x`) are not found from a copy.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::copy::is_made_after;

/// The most neighbours that are linked.
const MOST: usize = 2_000;

/// The beginning of the names of all our scratch folders.
const OURS: &str = "unflake-";

/// The neighbours of a work tree, by name.
#[derive(Debug)]
pub(crate) struct Siblings(Vec<(OsString, Target)>);

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// To the sibling itself.
    Real(PathBuf),
    /// To a place in the work tree, from its root: a sibling that is a link may lead there, and then the
    /// copy is meant.
    Inside(PathBuf),
}

impl Siblings {
    /// The neighbours of a work tree that did not come after `until`. Those in `/` are found by absolute paths.
    pub(crate) fn of(root: &Path, until: Option<SystemTime>) -> Self {
        let parent = root.parent().filter(|parent| parent.parent().is_some());
        // If the folder may not be listed, a project can only have guessed their names.
        let entries = parent
            .into_iter()
            .filter_map(|parent| fs::read_dir(parent).ok());
        // An entry that cannot be read was removed meanwhile.
        let entries = entries.flatten().flatten();
        let is_scratch = parent.is_some_and(is_temporary);
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            let is_ours = is_scratch && name.to_string_lossy().starts_with(OURS);
            Some(&*name) != root.file_name() && !is_ours && !is_own_record(&name)
        });
        let mut siblings: Vec<_> = named
            .filter(|entry| !until.is_some_and(|until| is_late(entry, until)))
            .map(|entry| (entry.file_name(), target(&entry, root)))
            .collect();
        siblings.sort_by(|one, other| one.0.cmp(&other.0));
        siblings.truncate(MOST);
        Self(siblings)
    }

    /// Makes the links beside a copy, which need not be there yet.
    pub(crate) fn link_beside(&self, copy: &Path) -> io::Result<()> {
        let Some(folder) = copy.parent() else {
            return Ok(());
        };
        for (name, target) in &self.0 {
            let target = match target {
                Target::Real(path) => path.clone(),
                Target::Inside(place) => copy.join(place),
            };
            symlink(target, folder.join(name))?;
        }
        Ok(())
    }
}

fn is_temporary(folder: &Path) -> bool {
    let temporary = std::env::temp_dir();
    // One that is not there has nothing in it.
    temporary.canonicalize().is_ok_and(|it| it == folder)
}

/// A repository around the copy would be taken for its own, and bytecode would be written into the user's.
fn is_own_record(name: &OsStr) -> bool {
    [".git", "__pycache__", ".pytest_cache"]
        .iter()
        .any(|own| name == *own)
}

fn is_late(entry: &DirEntry, until: SystemTime) -> bool {
    // One that is gone has no link either way.
    entry
        .metadata()
        .is_ok_and(|data| is_made_after(&data, until))
}

fn target(entry: &DirEntry, root: &Path) -> Target {
    let path = entry.path();
    // Only links are followed: a folder may be the mount of a server that does not answer.
    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    // One that leads nowhere is linked as it is, and leads nowhere again.
    let Some(real) = path.canonicalize().ok().filter(|_| is_link) else {
        return Target::Real(path);
    };
    match real.strip_prefix(root) {
        Ok(place) => Target::Inside(place.to_owned()),
        Err(_) => Target::Real(real),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::fingerprint::{look_around, remove};
    use std::collections::BTreeMap;

    /// A folder with a work tree `shop` and siblings, and an empty one for copies.
    fn neighbourhood() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for name in ["mono/shop/src", "mono/common/deep", "mono/.git", "copies"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        fs::write(top.join("mono/common/deep/rates.txt"), "1").unwrap();
        fs::write(top.join("mono/shared.cfg"), "5").unwrap();
        symlink("shop/src", top.join("mono/current")).unwrap();
        symlink("nowhere", top.join("mono/dangling")).unwrap();
        let (root, copy) = (top.join("mono/shop"), top.join("copies/shop"));
        (folder, root, copy)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn siblings_are_found_from_a_copy_and_the_repository_around_it_is_not() {
        let (_folder, root, copy) = neighbourhood();
        Siblings::of(&root, None).link_beside(&copy).unwrap();
        let links = ["common", "current", "dangling", "shared.cfg"];
        assert_eq!(names(copy.parent().unwrap()), links);
        fs::create_dir_all(copy.join("src")).unwrap();
        assert_eq!(fs::read_to_string(copy.join("../shared.cfg")).unwrap(), "5");
        let deep = copy.join("../common/deep/rates.txt");
        assert_eq!(fs::read_to_string(deep).unwrap(), "1");
        assert!(!copy.join("../dangling").exists());
    }

    #[test]
    fn a_sibling_that_leads_into_the_work_tree_leads_into_the_copy_and_into_a_copy_of_that() {
        let (folder, root, copy) = neighbourhood();
        Siblings::of(&root, None).link_beside(&copy).unwrap();
        fs::create_dir_all(copy.join("src")).unwrap();
        let lead = copy.parent().unwrap().join("current");
        assert_eq!(lead.canonicalize().unwrap(), copy.join("src"));
        let next = folder.path().canonicalize().unwrap().join("next/shop");
        fs::create_dir_all(next.join("src")).unwrap();
        Siblings::of(&copy, None).link_beside(&next).unwrap();
        let lead = next.parent().unwrap().join("current");
        assert_eq!(lead.canonicalize().unwrap(), next.join("src"));
        assert_eq!(fs::read_to_string(next.join("../shared.cfg")).unwrap(), "5");
    }

    #[test]
    fn what_came_after_a_moment_is_left_out() {
        let (_folder, root, copy) = neighbourhood();
        let none = Siblings::of(&root, Some(SystemTime::UNIX_EPOCH));
        none.link_beside(&copy).unwrap();
        assert!(names(copy.parent().unwrap()).is_empty());
        let all = Siblings::of(&root, Some(SystemTime::now()));
        assert_eq!(all.0.len(), 4);
    }

    #[test]
    fn what_stands_in_the_topmost_folder_and_our_own_scratch_folders_are_no_siblings() {
        assert!(Siblings::of(Path::new("/tmp"), None).0.is_empty());
        assert!(Siblings::of(Path::new("/"), None).0.is_empty());
        let ours = tempfile::TempDir::with_prefix(OURS).unwrap();
        let root = ours.path().canonicalize().unwrap().with_file_name("root");
        let siblings = Siblings::of(&root, None);
        let is_ours = |name: &OsString| name.to_string_lossy().starts_with(OURS);
        assert!(!siblings.0.iter().any(|(name, _)| is_ours(name)));
    }

    #[test]
    fn whoever_looks_at_the_links_or_removes_them_leaves_what_they_lead_to() {
        let (_folder, root, copy) = neighbourhood();
        Siblings::of(&root, None).link_beside(&copy).unwrap();
        let folder = copy.parent().unwrap();
        let mut found = BTreeMap::new();
        look_around(folder.parent().unwrap(), Path::new("copies"), &mut found).unwrap();
        assert!(found.contains_key(Path::new("copies/common")));
        assert!(!found.contains_key(Path::new("copies/common/deep")));
        remove(folder).unwrap();
        assert!(!folder.exists());
        let mono = root.parent().unwrap();
        let kept = mono.join("common/deep/rates.txt");
        assert_eq!(fs::read_to_string(kept).unwrap(), "1");
        assert_eq!(fs::read_to_string(mono.join("shared.cfg")).unwrap(), "5");
    }
}
