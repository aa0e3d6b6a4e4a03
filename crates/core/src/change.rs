//! What differs between the base and the work tree, by file and by block of code.

/// A file that differs between the base and the work tree.
///
/// A renamed file is two of them: one deleted, one added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path from the repository's root, with `/` between the parts.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// The lines of the work tree's version that differ, in order. A deletion between two lines is the
    /// line before it (the first, if there is none). Empty for deleted files and for binary ones.
    pub lines: Vec<Lines>,
}

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content, mode or type is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It is a repository inside this one, at another commit or with changes of its own.
    Submodule,
}

impl ChangeKind {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Submodule => "submodule",
        }
    }
}

/// Lines of a file, from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lines {
    /// The first.
    pub first: u32,
    /// The last; never before the first.
    pub last: u32,
}
