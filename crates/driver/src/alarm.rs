//! Whether anything happened in some folders, without looking at each file.

use std::path::PathBuf;

/// An alarm over folders, from the moment it is set. Without it one has to look.
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    inotify: nix::sys::inotify::Inotify,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Sets it; `None` if the system has no room for so many folders.
    pub(crate) fn set(folders: impl Iterator<Item = PathBuf>) -> Option<Self> {
        use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let mask = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ATTRIB;
        for folder in folders {
            inotify.add_watch(&folder, mask).ok()?;
        }
        Some(Self { inotify })
    }

    /// Whether nothing has happened.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.inotify.read_events(), Err(nix::errno::Errno::EAGAIN))
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// There is none here.
    pub(crate) fn set(_: impl Iterator<Item = PathBuf>) -> Option<Self> {
        None
    }

    /// Never asked.
    pub(crate) fn is_silent(&self) -> bool {
        false
    }
}
