//! Files and folders copied with their times and modes.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::SystemTime;

/// The most bytes that are copied.
pub(crate) const MOST_BYTES: u64 = 1 << 30;
pub(crate) const MOST_FILES: usize = 100_000;

/// The amount that was copied.
#[derive(Default)]
pub(crate) struct Load {
    bytes: u64,
    files: usize,
}

pub(crate) enum CopyTrouble {
    TooLarge,
    Io(io::Error),
}

impl From<io::Error> for CopyTrouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Copies a folder with the times and modes of its files.
pub(crate) fn copy_tree(
    from: &Path,
    to: &Path,
    load: &mut Load,
    is_left_out: &dyn Fn(&Path, &Metadata) -> bool,
) -> Result<(), CopyTrouble> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let data = source.symlink_metadata()?;
        if is_left_out(&source, &data) {
            continue;
        }
        if data.is_dir() {
            copy_tree(&source, &target, load, is_left_out)?;
            continue;
        }
        load.bytes += data.len();
        load.files += 1;
        if load.bytes > MOST_BYTES || load.files > MOST_FILES {
            return Err(CopyTrouble::TooLarge);
        }
        copy_file(&source, &target)?;
    }
    Ok(())
}

/// Whether a file or folder came into being after a moment. Where the system does not know, none did.
pub(crate) fn is_made_after(data: &Metadata, until: SystemTime) -> bool {
    data.created().is_ok_and(|born| born > until)
}

/// Copies a file with its times and mode, or a link as a link. Sockets and pipes are left out.
pub(crate) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let data = from.symlink_metadata()?;
    if data.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !data.is_file() {
        return Ok(());
    }
    fs::copy(from, to)?;
    // A file that its owner may not write cannot be opened for its times; it keeps the new ones.
    if let Ok(file) = File::options().write(true).open(to) {
        file.set_modified(data.modified()?)?;
    }
    Ok(())
}
