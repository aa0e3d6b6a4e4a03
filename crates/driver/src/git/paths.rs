//! The places of paths in a repository, and the symbolic links on the way there.

use std::collections::{BTreeMap, VecDeque};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// The most links that are followed: the system gives up after as many.
const MOST_LINKS: usize = 40;

/// Finds the places of paths in one repository, and remembers those of folders.
pub(crate) struct Places<'a> {
    root: &'a Utf8Path,
    folders: BTreeMap<String, Way>,
}

/// The way to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The end of the path, as far as it exists.
    pub(crate) end: Utf8PathBuf,
    /// The end of the path from the repository's root, if it is in there; `""` is the root itself.
    pub(crate) place: Option<String>,
    /// The links of the repository that it goes through, from its root.
    pub(crate) links: Vec<String>,
}

impl<'a> Places<'a> {
    /// `root` is the repository's, without symbolic links.
    pub(crate) fn new(root: &'a Utf8Path) -> Self {
        let folders = BTreeMap::new();
        Self { root, folders }
    }

    /// The way to a file, which may be gone.
    pub(crate) fn file(&mut self, path: &str) -> Way {
        let path = Utf8Path::new(path);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return self.folder(path.as_str());
        };
        let folder = self.folder(folder.as_str());
        let mut way = self.follow(&folder.end.join(name));
        way.links.extend(folder.links);
        way
    }

    /// The way to a folder, which may be gone.
    pub(crate) fn folder(&mut self, path: &str) -> Way {
        if let Some(known) = self.folders.get(path) {
            return known.clone();
        }
        let way = self.follow(Utf8Path::new(path));
        self.folders.insert(path.to_owned(), way.clone());
        way
    }

    fn follow(&self, path: &Utf8Path) -> Way {
        let inside = |path: &Utf8Path| {
            let inside = path.strip_prefix(self.root).ok();
            inside.map(ToString::to_string)
        };
        let mut end = Utf8PathBuf::from("/");
        let mut links = Vec::new();
        let mut hops = 0;
        let mut ahead: VecDeque<String> = parts(path);
        while let Some(part) = ahead.pop_front() {
            if part == ".." {
                end.pop();
                continue;
            }
            let next = end.join(&part);
            match next.read_link_utf8() {
                Ok(target) if hops < MOST_LINKS => {
                    hops += 1;
                    links.extend(inside(&next));
                    if target.is_absolute() {
                        end = Utf8PathBuf::from("/");
                    }
                    for part in parts(&target).into_iter().rev() {
                        ahead.push_front(part);
                    }
                }
                // No link, or not there.
                Ok(_) | Err(_) => end = next,
            }
        }
        let place = inside(&end);
        Way { end, place, links }
    }
}

fn parts(path: &Utf8Path) -> VecDeque<String> {
    let parts = path.components().filter_map(|part| match part {
        Utf8Component::ParentDir | Utf8Component::Normal(_) => Some(part.as_str().to_owned()),
        Utf8Component::Prefix(_) | Utf8Component::RootDir | Utf8Component::CurDir => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let root = root.canonicalize_utf8().unwrap();
        fs::create_dir_all(root.join("data/new")).unwrap();
        symlink("data", root.join("link")).unwrap();
        symlink("../link/new/b.txt", root.join("data/a.txt")).unwrap();
        symlink(root.join("data"), root.join("data/new/up")).unwrap();
        let mut places = Places::new(&root);
        let way = places.file(root.join("link/new/up/a.txt").as_str());
        assert_eq!(way.place.as_deref(), Some("data/new/b.txt"));
        let mut links = way.links;
        links.sort();
        links.dedup();
        assert_eq!(links, ["data/a.txt", "data/new/up", "link"]);
    }

    #[test]
    fn a_path_outside_has_no_place_and_a_circle_ends() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let root = root.canonicalize_utf8().unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let mut places = Places::new(&root);
        assert_eq!(places.file("/elsewhere/a.txt").place, None);
        assert_eq!(places.folder(root.as_str()).place.as_deref(), Some(""));
        let way = places.file(root.join("circle/../gone.txt").as_str());
        assert_eq!(way.place.as_deref(), Some("gone.txt"));
    }
}
