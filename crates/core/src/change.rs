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

impl ChangedFile {
    /// Whether it is a Python source.
    pub fn is_python(&self) -> bool {
        is_python(&self.path)
    }
}

/// Whether a path is that of a Python source.
pub fn is_python(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "py" | "pyi")))
}

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content, mode or type differs.
    Modified,
    /// It is gone.
    Deleted,
    /// It is a repository inside this one: its commit differs, or it has changes of its own.
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

/// A changed file with what is needed to tell whether a run depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: ChangedFile,
    /// Its blocks of code; `None` if it has none that can be told apart.
    pub source: Option<Source>,
    /// The folders that have other entries because of it; `""` is the root.
    pub folders: Vec<String>,
}

/// A source file in both versions, as blocks.
///
/// The body of a function is a block. All the rest, the headers of functions included, is the file's
/// own block, which runs at import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whether the file's own block differs.
    pub is_changed: bool,
    /// The functions of the work tree's version, an outer one before those inside it.
    pub functions: Vec<Function>,
}

/// A function of the work tree's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name with those of the classes and functions around it: `Cart.total`.
    pub name: String,
    /// The lines at which its code may be said to begin: its own, or its first decorator's.
    pub starts: Vec<u32>,
    /// Where it stands.
    pub lines: Lines,
    /// Whether its body differs.
    pub is_changed: bool,
}

impl Lines {
    /// Whether a line is among them.
    pub fn contains(self, line: u32) -> bool {
        (self.first..=self.last).contains(&line)
    }

    /// The lines that both have.
    pub fn shared(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let last = self.last.min(other.last);
        (first <= last).then_some(Self { first, last })
    }
}
