//! The look of a folder, so that a change shows; and the removal of a folder, whatever is in it.
//!
//! Tests leave folders that nobody may enter, pipes, sockets and names that are not UTF-8.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The look of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// A folder. One that was removed and made again has another number.
    Folder {
        number: u64,
        mode: u32,
    },
    File {
        length: u64,
        modified: (i64, i64),
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    /// A socket or a pipe, that nobody can copy.
    Other,
}

impl Look {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let data = path.symlink_metadata()?;
        Ok(if data.is_dir() {
            Self::Folder {
                number: data.ino(),
                mode: data.permissions().mode(),
            }
        } else if data.is_symlink() {
            Self::Link {
                target: fs::read_link(path)?,
            }
        } else if data.is_file() {
            Self::File {
                length: data.len(),
                modified: (data.mtime(), data.mtime_nsec()),
                mode: data.permissions().mode(),
            }
        } else {
            Self::Other
        })
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}

/// Looks at a folder and all that is in it, by path from `top`. Caches of bytecode are passed over.
///
/// A folder that may not be entered is opened, and stays open: the caller wants to put it back as it was.
pub(crate) fn look_around(
    top: &Path,
    inside: &Path,
    found: &mut BTreeMap<PathBuf, Look>,
) -> io::Result<()> {
    let path = top.join(inside);
    let look = match Look::at(&path) {
        // A test may remove what is looked at.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        look => look?,
    };
    found.insert(inside.to_owned(), look.clone());
    if !look.is_folder() {
        return Ok(());
    }
    open_up(&path, &look)?;
    for entry in fs::read_dir(&path)? {
        let name = entry?.file_name();
        if name != "__pycache__" && name != ".pytest_cache" {
            look_around(top, &inside.join(name), found)?;
        }
    }
    Ok(())
}

/// Removes whatever is there; that there is nothing is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(data) if data.is_dir() => match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_all(path)?;
                fs::remove_dir_all(path)
            }
            removed => removed,
        },
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn open_all(folder: &Path) -> io::Result<()> {
    open_up(folder, &Look::at(folder)?)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_all(&entry.path())?;
        }
    }
    Ok(())
}

/// Lets its owner enter a folder and change it.
fn open_up(path: &Path, look: &Look) -> io::Result<()> {
    match look {
        Look::Folder { mode, .. } if mode & 0o700 != 0o700 => {
            fs::set_permissions(path, Permissions::from_mode(mode | 0o700))
        }
        Look::Folder { .. } | Look::File { .. } | Look::Link { .. } | Look::Other => Ok(()),
    }
}
