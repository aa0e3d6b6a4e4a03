//! The things that a run of a test used: the code that ran, the files it read or looked for, what it started.
//!
//! Paths are relative to the repository's root with `/` between the parts, unless a field says that they lie outside.
//! The reader of a runner's facts puts them into this form.

use std::collections::{BTreeMap, BTreeSet};

/// The things that a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The files of the repository that it used.
    pub files: BTreeMap<String, FileUse>,
    /// The folders of the repository whose entries it listed; `""` is the root.
    pub listed: BTreeSet<String>,
    /// The folders among them that it listed with the sizes and times of their files.
    pub scanned: BTreeSet<String>,
    /// The modules that it looked for, as the folder and the last part of the name.
    pub sought: BTreeSet<(String, String)>,
    /// The files outside the repository, or inside but not git's, that it ran or read: absolute paths.
    pub elsewhere: BTreeSet<String>,
    /// The native libraries that are no part of the language itself.
    pub natives: BTreeSet<Native>,
    /// Files in the work tree that git does not track, that the run did not make itself, and that are
    /// younger than the base: they may have been made from what changed.
    pub generated: BTreeSet<String>,
    /// Files that git is told not to look at, so that nobody knows whether they changed.
    pub hidden: BTreeSet<String>,
    /// The programs that it started and that could not be followed.
    pub unfollowed: BTreeSet<String>,
    /// Why the functions that ran are not known: then each function of a file that ran may have.
    pub blind: Option<String>,
    /// Whether some of its code depends on line numbers, which every line above changes.
    pub is_by_line: bool,
    /// The processes on this machine that it talked to and did not start: what they hold may come from any file.
    pub talked: BTreeSet<String>,
    /// The parts that were missed, so that it may have used anything.
    pub missed: BTreeSet<String>,
    /// The folders of the sources whose classes are watched, if nothing but code is.
    pub only_code: Option<BTreeSet<String>>,
    /// Files in the work tree that git does not track and the base lacks, and that were there before the run: where
    /// only code is watched, nobody sees who uses them.
    pub left: BTreeSet<String>,
    /// Whether the system itself watched who opens the changed files, so that no reader is missed.
    pub is_kernel_watched: bool,
}

/// A native library that a run loaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Native {
    /// Its absolute path.
    pub path: String,
    /// Whether it is made from sources of the repository.
    pub is_own: bool,
}

/// The ways in which a run used a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileUse {
    /// Its module-level code ran.
    pub is_imported: bool,
    /// It was read, loaded or run as a whole.
    pub is_read: bool,
    /// The most that something asked about it, without reading it.
    pub asked: Option<Asked>,
    /// The first lines of the code in it that ran: functions, lambdas, classes, generator expressions.
    pub ran: BTreeSet<u32>,
}

/// The questions that a run can ask about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// Whether it is there.
    Presence,
    /// What its size, times and mode are.
    Status,
}

impl FileUse {
    /// Whether anything of its content was used.
    pub fn has_content(&self) -> bool {
        self.is_imported || self.is_read || !self.ran.is_empty()
    }
}
