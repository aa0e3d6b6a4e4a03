//! Whether anything happened in some folders, without looking at each file.

use std::path::{Path, PathBuf};

/// Folders of this name are pytest's own: each test has one to itself in there.
const OWN: &str = "pytest-of-";

/// An alarm over folders, from the moment it is set. Without it one has to look.
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    inotify: nix::sys::inotify::Inotify,
    #[cfg(target_os = "linux")]
    folders: std::collections::HashMap<nix::sys::inotify::WatchDescriptor, PathBuf>,
    has_rung: bool,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Sets an alarm on these folders; `None` if the system cannot watch so many.
    pub(crate) fn set(folders: impl Iterator<Item = PathBuf>) -> Option<Self> {
        use nix::sys::inotify::{InitFlags, Inotify};
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let mut alarm = Self {
            inotify,
            folders: std::collections::HashMap::new(),
            has_rung: false,
        };
        for folder in folders {
            alarm.watch(folder)?;
        }
        Some(alarm)
    }

    fn watch(&mut self, folder: PathBuf) -> Option<()> {
        use nix::sys::inotify::AddWatchFlags;
        let mask = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ATTRIB;
        let descriptor = self.inotify.add_watch(&folder, mask).ok()?;
        self.folders.insert(descriptor, folder);
        Some(())
    }

    /// Whether nothing has happened since it was set.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.is_quiet();
        !self.has_rung
    }

    /// Whether nothing that matters to others has happened since it was asked for the last time; folders
    /// that were made meanwhile are looked after too.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut is_quiet = true;
        while let Ok(events) = self.inotify.read_events() {
            self.has_rung = true;
            for event in events {
                let folder = self.folders.get(&event.wd).cloned().unwrap_or_default();
                let path = event.name.map_or(folder.clone(), |name| folder.join(name));
                is_quiet &= is_own(&path);
                if path.symlink_metadata().is_ok_and(|data| data.is_dir()) && !is_own(&path) {
                    self.watch_all(&path);
                }
            }
        }
        is_quiet
    }

    /// Looks after a folder and all in it, as far as it can.
    fn watch_all(&mut self, folder: &Path) {
        let is_new = !self.folders.values().any(|known| known == folder);
        if !is_new || self.watch(folder.to_owned()).is_none() {
            return;
        }
        let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            self.watch_all(&entry.path());
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// No alarm: there is none on this system.
    pub(crate) fn set(_: impl Iterator<Item = PathBuf>) -> Option<Self> {
        None
    }

    /// Never asked.
    pub(crate) fn is_silent(&mut self) -> bool {
        !self.has_rung
    }

    /// Never asked.
    pub(crate) fn is_quiet(&mut self) -> bool {
        false
    }
}

/// Whether a path is in a folder that pytest gives to one test alone.
fn is_own(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.any(|part| part.to_string_lossy().starts_with(OWN))
}
