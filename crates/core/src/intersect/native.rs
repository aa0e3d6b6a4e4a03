//! What native libraries leave open: they are made from sources that no runner follows, and open files unseen.

use super::Unknown;
use crate::change::{Change, ChangeKind};
use crate::usage::{Native, Usage};

/// The doubt that native libraries leave about a change that nothing seems to use.
pub(super) fn native_unknown(change: &Change, usage: &Usage) -> Option<Unknown> {
    let path = change.file.path.clone();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_source = NATIVE_SOURCES.contains(&ending.to_ascii_lowercase().as_str());
    let own = usage.natives.iter().find(|native| native.is_own);
    if let (true, Some(native)) = (is_source, own) {
        let library = native.path.clone();
        return Some(Unknown::NativeSource { library, path });
    }
    if change.file.is_python() {
        return None;
    }
    let may_look = |native: &&Native| !usage.is_kernel_watched || may_look(native, change);
    let library = usage.natives.iter().find(may_look)?.path.clone();
    Some(Unknown::NativeReader { library, path })
}

/// Whether a library may depend on a change although the system sees who opens files that are there.
fn may_look(native: &Native, change: &Change) -> bool {
    match change.file.kind {
        // Nobody tells who tries to open a file that is gone.
        ChangeKind::Deleted => true,
        // Only a library that asks for the file or its mode, and never opens it, is not seen. A foreign library that
        // does so for a file of the project is rare, and with numpy nothing would ever be disjoint.
        ChangeKind::Added => native.is_own || native.path == CALLS,
        ChangeKind::Modified => {
            let is_mode_only = change.file.lines.is_empty();
            is_mode_only && (native.is_own || native.path == CALLS)
        }
        ChangeKind::Submodule => false,
    }
}

/// The part of Python with which the project itself calls any function of any library.
const CALLS: &str = "ctypes";

/// The endings of files that native libraries are made from.
const NATIVE_SOURCES: [&str; 27] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "inl", "pyx", "pxd", "pxi", "rs",
    "go", "f", "for", "f77", "f90", "f95", "cu", "cuh", "s", "asm", "zig", "m", "mm",
];
