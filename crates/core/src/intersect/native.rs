//! What native libraries leave open: they are made from sources that no runner follows, and open files unseen.

use super::Unknown;
use crate::change::{Change, ChangeKind};
use crate::usage::Usage;

/// What native libraries leave open about a change that nothing seems to use.
pub(super) fn native_unknown(change: &Change, usage: &Usage) -> Option<Unknown> {
    let path = change.file.path.clone();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_source = NATIVE_SOURCES.contains(&ending.to_ascii_lowercase().as_str());
    let own = usage.natives.iter().find(|native| native.is_own);
    if let (true, Some(native)) = (is_source, own) {
        let library = native.path.clone();
        return Some(Unknown::NativeSource { library, path });
    }
    let any = usage.natives.iter().next()?;
    let library = any.path.clone();
    // The system tells who opens a file that is there, and not who looks for one that is gone.
    let is_unseen = !usage.is_kernel_watched || change.file.kind == ChangeKind::Deleted;
    (is_unseen && !change.file.is_python()).then_some(Unknown::NativeReader { library, path })
}

/// The endings of files that native libraries are made from.
const NATIVE_SOURCES: [&str; 27] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "inl", "pyx", "pxd", "pxi", "rs",
    "go", "f", "for", "f77", "f90", "f95", "cu", "cuh", "s", "asm", "zig", "m", "mm",
];
