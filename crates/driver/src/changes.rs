//! What differs between a commit and the work tree, by git's own diff. What the differences mean for
//! a test is decided elsewhere.
//!
//! Git does not look at files that are marked `assume-unchanged` or `skip-worktree` (a sparse checkout
//! marks all that it leaves out): it takes the index's version for the work tree's. So do we, and a
//! change hidden that way stays hidden, except from the base if the index differs from it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::process::Stdio;

use camino::Utf8Path;
use unflake_core::change::{ChangeKind, ChangedFile, Lines};

use crate::git::{GitError, Repository, text};
use crate::patch::{self, Entry};

/// Options that make `git diff` say the same whatever the user's configuration.
const DIFF: [&str; 17] = [
    "diff",
    "--raw",
    "-z",
    "--patch",
    "--unified=0",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--irreversible-delete",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    // A submodule with changes of its own counts, whatever `.gitmodules` says.
    "--ignore-submodules=none",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--end-of-options",
];

/// Files that git neither tracks nor ignores. Our own folder is no change of the user's.
const UNTRACKED: [&str; 5] = [
    "ls-files",
    "-z",
    "--others",
    "--exclude-standard",
    "--exclude=.unflake/",
];

/// The mode of a repository inside a repository.
const SUBMODULE: &str = "160000";

/// How many bytes git looks at to tell text from the rest.
const LOOKED_AT: usize = 8000;

/// All files that differ between a commit and the work tree, by path: staged or not, and untracked
/// ones that are not ignored.
///
/// A file that git takes for binary, also by a `-diff` attribute, is listed without lines. So is an
/// untracked one that cannot be read. A name that is not UTF-8 is an error: a path with a mark in it
/// would never equal what a test used, and the test would be called flaky for it.
pub fn changes_since(repository: &Repository, commit: &str) -> Result<Vec<ChangedFile>, GitError> {
    let mut files = BTreeMap::new();
    for (name, entry) in diff(repository, commit)? {
        if let Some(kind) = kind(&entry) {
            let lines = match kind {
                ChangeKind::Added | ChangeKind::Modified => entry.lines,
                ChangeKind::Deleted | ChangeKind::Submodule => Vec::new(),
            };
            let path = text(name)?;
            files.insert(path.clone(), ChangedFile { path, kind, lines });
        }
    }
    for path in untracked(repository)? {
        let Some(mut file) = look_at(repository.root(), &path) else {
            continue;
        };
        // Taken out of the index (`git rm --cached`) and still there.
        if files.contains_key(&file.path) && file.kind == ChangeKind::Added {
            file.kind = ChangeKind::Modified;
        }
        files.insert(file.path.clone(), file);
    }
    Ok(files.into_values().collect())
}

/// Whether the work tree differs from a commit, as [`changes_since`] sees it.
pub fn is_dirty(repository: &Repository, commit: &str) -> Result<bool, GitError> {
    let entries = diff(repository, commit)?;
    let is_changed = entries.values().any(|entry| kind(entry).is_some());
    Ok(is_changed || !untracked(repository)?.is_empty())
}

fn diff(repository: &Repository, commit: &str) -> Result<patch::Entries, GitError> {
    let arguments: Vec<&str> = DIFF.into_iter().chain([commit, "--"]).collect();
    let mut running = repository.start(&arguments, Stdio::null())?;
    let entries = patch::read_patch(&mut running.stdout);
    running.finish(entries)
}

/// `None` if the file has only been touched.
fn kind(entry: &Entry) -> Option<ChangeKind> {
    if entry.old_mode == SUBMODULE || entry.new_mode == SUBMODULE {
        return Some(ChangeKind::Submodule);
    }
    match entry.status {
        b'A' => Some(ChangeKind::Added),
        b'D' => Some(ChangeKind::Deleted),
        b'M' if entry.old_mode == entry.new_mode && !entry.has_patch => None,
        // Modified, of another type, or unmerged.
        _ => Some(ChangeKind::Modified),
    }
}

fn untracked(repository: &Repository) -> Result<Vec<String>, GitError> {
    let names = text(repository.run(&UNTRACKED)?)?;
    let names = names.split_terminator('\0');
    Ok(names.map(str::to_owned).collect())
}

/// An untracked file; `None` if it is gone again.
fn look_at(root: &Utf8Path, name: &str) -> Option<ChangedFile> {
    // Git does not look into another repository, and names only its folder.
    if let Some(folder) = name.strip_suffix('/') {
        return Some(ChangedFile {
            path: folder.to_owned(),
            kind: ChangeKind::Submodule,
            lines: Vec::new(),
        });
    }
    let count = match count_lines(&root.join(name)) {
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        // To us it is what a binary file is: something that differs, we cannot say where.
        Err(_) => 0,
    };
    let lines = (count > 0).then_some(Lines {
        first: 1,
        last: count,
    });
    Some(ChangedFile {
        path: name.to_owned(),
        kind: ChangeKind::Added,
        lines: lines.into_iter().collect(),
    })
}

/// How many lines git would show of a file; none of a binary one.
fn count_lines(path: &Utf8Path) -> io::Result<u32> {
    if fs::symlink_metadata(path)?.is_symlink() {
        // To git a link is a text of one line: where it points.
        return Ok(1);
    }
    let mut file = BufReader::with_capacity(64 * 1024, File::open(path)?);
    let head = file.fill_buf()?;
    if head[..head.len().min(LOOKED_AT)].contains(&0) {
        return Ok(0);
    }
    let mut count = 0_u32;
    while file.skip_until(b'\n')? > 0 {
        count = count.saturating_add(1);
    }
    Ok(count)
}
