//! The system's own eye on files: who opens them, in whatever language and process.
//!
//! A runner sees what its own process does. Native libraries and other programs open files unseen by
//! it, but not unseen by the kernel.

use std::collections::BTreeSet;

use camino::Utf8Path;

/// A watch over some files of a folder, from its start until it is dropped. Of a folder among them it sees who lists it,
/// and who opens what lies in it.
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    eye: linux::Eye,
}

impl Watch {
    /// Begins to watch the files with these paths from `root`; those that are not there are left out.
    ///
    /// `None` if the system cannot do it, or has no room for so many.
    #[cfg(target_os = "linux")]
    pub(crate) fn begin<'a>(root: &Utf8Path, paths: impl Iterator<Item = &'a str>) -> Option<Self> {
        linux::Eye::open(root, paths).map(|eye| Self { eye })
    }

    /// Begins to watch; here the system cannot do it.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn begin<'a>(_: &Utf8Path, _: impl Iterator<Item = &'a str>) -> Option<Self> {
        None
    }

    /// The files that were opened since the beginning; `None` if some of it was missed.
    #[cfg(target_os = "linux")]
    pub(crate) fn opened(&self) -> Option<BTreeSet<String>> {
        self.eye.opened()
    }

    /// The files that were opened: never asked where there is no watch.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn opened(&self) -> Option<BTreeSet<String>> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::collections::{BTreeSet, HashMap};

    use camino::{Utf8Path, Utf8PathBuf};
    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

    pub(super) struct Eye {
        inotify: Inotify,
        paths: HashMap<WatchDescriptor, Vec<String>>,
        /// The paths that were opened until the last question; `None` once some of them were missed.
        opened: RefCell<Option<BTreeSet<String>>>,
    }

    impl Eye {
        pub(super) fn open<'a>(
            root: &Utf8Path,
            paths: impl Iterator<Item = &'a str>,
        ) -> Option<Self> {
            let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
            let inotify = Inotify::init(flags).ok()?;
            let mut watched: HashMap<WatchDescriptor, Vec<String>> = HashMap::new();
            for path in paths {
                let file = root.join(path);
                match inotify.add_watch(file.as_std_path(), AddWatchFlags::IN_OPEN) {
                    // Two names of one file share a descriptor.
                    Ok(descriptor) => {
                        let names = watched.entry(descriptor).or_default();
                        names.push(path.to_owned());
                    }
                    Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                    Err(_) => return None,
                }
            }
            Some(Self {
                inotify,
                paths: watched,
                opened: RefCell::new(Some(BTreeSet::new())),
            })
        }

        pub(super) fn opened(&self) -> Option<BTreeSet<String>> {
            let new = self.opened_since();
            let mut opened = self.opened.borrow_mut();
            match (opened.as_mut(), new) {
                (Some(all), Some(new)) => all.extend(new),
                (Some(_), None) => *opened = None,
                (None, _) => {}
            }
            opened.clone()
        }

        /// The paths that were opened since the last question; `None` if some of them were missed.
        fn opened_since(&self) -> Option<BTreeSet<String>> {
            let mut opened = BTreeSet::new();
            loop {
                match self.inotify.read_events() {
                    Ok(events) => {
                        for event in events {
                            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                                return None;
                            }
                            let names = self.paths.get(&event.wd).into_iter().flatten();
                            let Some(child) = event.name else {
                                opened.extend(names.cloned());
                                continue;
                            };
                            let child = child.to_string_lossy();
                            let inside = names.map(|name| Utf8PathBuf::from(name).join(&*child));
                            opened.extend(inside.map(Utf8PathBuf::into_string));
                        }
                    }
                    Err(Errno::EAGAIN) => return Some(opened),
                    Err(_) => return None,
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_that_another_program_opens_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["read.txt", "left.txt"] {
            fs::write(root.join(name), "text").unwrap();
        }
        let paths = ["read.txt", "left.txt", "gone.txt"];
        let watch = Watch::begin(root, paths.into_iter()).unwrap();
        assert_eq!(watch.opened(), Some(BTreeSet::new()));
        let cat = Command::new("cat").arg(root.join("read.txt")).output();
        assert!(cat.unwrap().status.success());
        let expected = BTreeSet::from(["read.txt".to_owned()]);
        assert_eq!(watch.opened(), Some(expected));
    }

    #[test]
    fn what_was_opened_before_an_earlier_question_is_still_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::write(root.join("read.txt"), "text").unwrap();
        let watch = Watch::begin(root, ["read.txt"].into_iter()).unwrap();
        fs::read(root.join("read.txt")).unwrap();
        for _ in 0..2 {
            assert_eq!(
                watch.opened(),
                Some(BTreeSet::from(["read.txt".to_owned()]))
            );
        }
    }

    #[test]
    fn a_folder_that_is_listed_and_what_is_opened_in_it_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir_all(root.join("docs/deep")).unwrap();
        fs::write(root.join("docs/new.md"), "text").unwrap();
        let watch = Watch::begin(root, ["docs", ""].into_iter()).unwrap();
        fs::metadata(root.join("docs/new.md")).unwrap();
        assert_eq!(watch.opened(), Some(BTreeSet::new()), "nobody opened it");
        assert_eq!(fs::read_dir(root.join("docs")).unwrap().count(), 2);
        fs::read(root.join("docs/new.md")).unwrap();
        let names = ["docs", "docs/new.md"].map(ToOwned::to_owned);
        assert_eq!(watch.opened(), Some(BTreeSet::from(names)));
    }
}
