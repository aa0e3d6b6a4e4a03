//! The differences between a commit and the work tree, by git's own diff. Their meaning for a test is decided
//! elsewhere.
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

use crate::git::clutter::{Clutter, NAMES, Sieve, is_written_by_people};
use crate::git::patch::{self, Entry};
use crate::git::repository::{GitError, Repository, text};

/// Options that make `git diff` say the same whatever the user's configuration.
const DIFF: [&str; 15] = [
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
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// A submodule with changes of its own counts, whatever `.gitmodules` says.
const ALL_OF_SUBMODULES: &str = "--ignore-submodules=none";
/// The option of git's diff that ignores untracked files in submodules.
const TRACKED_IN_SUBMODULES: &str = "--ignore-submodules=untracked";

/// Files that git neither tracks nor ignores.
const UNTRACKED: [&str; 4] = ["ls-files", "-z", "--others", "--exclude-standard"];

/// The mode of a repository inside a repository.
const SUBMODULE: &str = "160000";

/// The number of bytes that git reads to tell text from the rest.
const LOOKED_AT: usize = 8000;

/// All files that differ between a commit and the work tree, by path: staged or not, and untracked
/// ones that are neither ignored nor clutter.
///
/// A file that git takes for binary, also by a `-diff` attribute, is listed without lines. So is one
/// with another mode and the same content, and an untracked one that cannot be read.
///
/// A name that is not UTF-8 is an error: a path with a mark in it would never equal what a test used,
/// and the test would be called flaky for it.
pub fn changes_since(
    repository: &Repository,
    commit: &str,
    clutter: &Clutter,
) -> Result<Vec<ChangedFile>, GitError> {
    let mut files = BTreeMap::new();
    for (name, entry) in diff(repository, commit, ALL_OF_SUBMODULES)? {
        if let Some(kind) = kind(&entry) {
            let lines = match kind {
                ChangeKind::Added | ChangeKind::Modified => entry.lines,
                ChangeKind::Deleted | ChangeKind::Submodule => Vec::new(),
            };
            let path = text(name)?;
            if !clutter.is_report(&path) {
                files.insert(path.clone(), ChangedFile { path, kind, lines });
            }
        }
    }
    let mut sieve = Sieve::new(clutter, repository.root());
    for path in untracked(repository)? {
        // Files that the commit tracks are the user's, even if the index no longer has them.
        if !files.contains_key(&path) && !sieve.keeps(&path) {
            continue;
        }
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

/// The files that git neither tracks nor ignores, and that an earlier run left behind.
pub(crate) fn left_behind(
    repository: &Repository,
    clutter: &Clutter,
) -> Result<Vec<String>, GitError> {
    let untracked = untracked(repository)?.into_iter();
    let left = untracked.filter(|path| clutter.is_left_behind(repository.root(), path));
    Ok(left.collect())
}

/// The differences between a work tree and its HEAD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirt {
    /// Whether a file that git knows differs.
    is_tracked: bool,
    /// Files that git does not know, and that are no clutter.
    untracked: Vec<String>,
}

impl Dirt {
    /// The differences that there are now, found in the same way as by [`changes_since`].
    pub fn find(repository: &Repository, clutter: &Clutter) -> Result<Self, GitError> {
        let mut is_tracked = false;
        for (name, entry) in diff(repository, "HEAD", ALL_OF_SUBMODULES)? {
            is_tracked |= kind(&entry).is_some() && !clutter.is_report(&text(name)?);
        }
        let mut sieve = Sieve::new(clutter, repository.root());
        let untracked = untracked(repository)?.into_iter();
        Ok(Self {
            is_tracked,
            untracked: untracked.filter(|path| sieve.keeps(path)).collect(),
        })
    }

    /// Whether there is any difference, apart from what the run itself has written since then. A source that was there
    /// before is the user's, whoever has written it since.
    pub fn is_any(&self, repository: &Repository, clutter: &Clutter) -> bool {
        let is_rewritten = |path: &String| {
            let file = repository.root().join(path);
            !is_written_by_people(path) && clutter.is_written_by_run(&file)
        };
        self.is_tracked || !self.untracked.iter().all(is_rewritten)
    }
}

/// Whether tracked files differ from a commit, otherwise than by what this run wrote.
pub(crate) fn has_tracked_changes(
    repository: &Repository,
    commit: &str,
    clutter: &Clutter,
) -> Result<bool, GitError> {
    for (name, entry) in diff(repository, commit, TRACKED_IN_SUBMODULES)? {
        let path = text(name)?;
        let is_ours =
            clutter.is_report(&path) || clutter.is_written_by_run(&repository.root().join(&path));
        if kind(&entry).is_some() && !is_ours {
            return Ok(true);
        }
    }
    Ok(false)
}

fn diff(
    repository: &Repository,
    commit: &str,
    submodules: &str,
) -> Result<patch::Entries, GitError> {
    let rest = [submodules, "--end-of-options", commit, "--"];
    let arguments: Vec<&str> = DIFF.into_iter().chain(rest).collect();
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
    let names = repository.run(&[&UNTRACKED[..], &NAMES].concat())?;
    let names = names.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    names.map(|name| text(name.to_vec())).collect()
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

/// The number of lines that git would show of a file; 0 for a binary one.
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::git::repository::scratch::Scratch;

    /// The changes in short: `kind path first-last …`.
    fn changes(scratch: &Scratch, commit: &str) -> Vec<String> {
        let index = scratch.root.join(".git/index");
        let before = fs::read(&index).ok();
        let files = changes_since(&scratch.repository(), commit, &Clutter::default()).unwrap();
        assert!(fs::read(&index).ok() == before, "the index was written");
        let shown = files.iter().map(|file| {
            let lines = file.lines.iter();
            let lines: Vec<String> = lines
                .map(|it| format!(" {}-{}", it.first, it.last))
                .collect();
            format!("{} {}{}", file.kind.label(), file.path, lines.concat())
        });
        shown.collect()
    }

    #[test]
    fn staged_and_unstaged_changes_are_all_the_same() {
        let scratch = Scratch::new();
        scratch.write("a.py", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        scratch.write("b.py", "1\n");
        let base = scratch.commit();
        scratch.write("a.py", "1\nx\n3\n4\n5\n6\n7\n8\n9\n");
        scratch.git(&["add", "a.py"]);
        scratch.write("a.py", "1\nx\n3\n4\n6\n7\n8\n9\n10\n11\n");
        scratch.write("b.py", "2\n");
        assert_eq!(
            changes(&scratch, &base),
            ["modified a.py 2-2 4-4 9-10", "modified b.py 1-1"]
        );
    }

    #[test]
    fn commits_since_the_base_count_and_what_is_undone_does_not() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n");
        scratch.write("b", "1\n");
        let base = scratch.commit();
        scratch.write("a", "2\n");
        scratch.write("b", "2\n");
        scratch.commit();
        scratch.write("b", "1\n");
        assert_eq!(changes(&scratch, &base), ["modified a 1-1"]);
    }

    #[test]
    fn a_rename_is_a_deletion_and_an_addition() {
        let scratch = Scratch::new();
        scratch.write("old.py", "1\n2\n3\n");
        let base = scratch.commit();
        scratch.git(&["config", "diff.renames", "copies"]);
        scratch.git(&["mv", "old.py", "new.py"]);
        assert_eq!(
            changes(&scratch, &base),
            ["added new.py 1-3", "deleted old.py"]
        );
    }

    #[test]
    fn untracked_files_are_added_unless_they_are_ignored_or_ours() {
        let scratch = Scratch::new();
        scratch.write(".gitignore", "*.log\n");
        scratch.write("sub/.gitignore", "!.unflake\n");
        let base = scratch.commit();
        scratch.write("a.log", "1\n");
        scratch.write("new/a.py", "1\n2");
        scratch.write("new/empty.py", "");
        scratch.write(".unflake/history", "1\n");
        scratch.write("sub/.unflake/history", "1\n");
        assert_eq!(
            changes(&scratch, &base),
            ["added new/a.py 1-2", "added new/empty.py"]
        );
    }

    #[test]
    fn our_own_folder_alone_does_not_make_a_tree_dirty() {
        let scratch = Scratch::new();
        let base = scratch.commit();
        scratch.write(".unflake/history", "1\n");
        assert!(changes(&scratch, &base).is_empty());
    }

    #[test]
    fn a_file_that_was_only_touched_has_not_changed() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n");
        scratch.write("b", "1\n");
        let base = scratch.commit();
        let later = SystemTime::now() + Duration::from_secs(60);
        let touched = File::options()
            .write(true)
            .open(scratch.root.join("a"))
            .unwrap();
        touched.set_modified(later).unwrap();
        assert!(changes(&scratch, &base).is_empty());
        scratch.write("b", "2\n");
        assert_eq!(changes(&scratch, &base), ["modified b 1-1"]);
    }

    #[test]
    fn a_file_taken_out_of_the_index_is_still_there() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n2\n");
        let base = scratch.commit();
        scratch.git(&["rm", "--quiet", "--cached", "a"]);
        assert_eq!(changes(&scratch, &base), ["modified a 1-2"]);
    }

    #[test]
    fn a_change_of_mode_or_type_is_a_modification() {
        let scratch = Scratch::new();
        for name in ["mode", "to-link", "to-folder"] {
            scratch.write(name, "1\n2\n");
        }
        symlink("mode", scratch.root.join("from-link")).unwrap();
        let base = scratch.commit();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scratch.root.join("mode"), mode).unwrap();
        for name in ["to-link", "to-folder", "from-link"] {
            fs::remove_file(scratch.root.join(name)).unwrap();
        }
        symlink("mode", scratch.root.join("to-link")).unwrap();
        scratch.write("from-link", "1\n2\n3\n");
        scratch.write("to-folder/file", "1\n");
        assert_eq!(
            changes(&scratch, &base),
            [
                "modified from-link 1-3",
                "modified mode",
                "deleted to-folder",
                "added to-folder/file 1-1",
                "modified to-link 1-1",
            ]
        );
    }

    #[test]
    fn links_are_not_followed() {
        let scratch = Scratch::new();
        symlink("nowhere", scratch.root.join("tracked")).unwrap();
        let base = scratch.commit();
        fs::remove_file(scratch.root.join("tracked")).unwrap();
        symlink("elsewhere", scratch.root.join("tracked")).unwrap();
        symlink("/", scratch.root.join("untracked")).unwrap();
        assert_eq!(
            changes(&scratch, &base),
            ["modified tracked 1-1", "added untracked 1-1"]
        );
    }

    #[test]
    fn binary_files_have_no_lines() {
        let scratch = Scratch::new();
        scratch.write(".gitattributes", "*.lock -diff\n");
        scratch.write("a.png", "1\n\0\n");
        scratch.write("a.lock", "1\n");
        let base = scratch.commit();
        scratch.write("a.png", "2\n\0\n");
        scratch.write("a.lock", "2\n");
        scratch.write("b.png", "1\n\0\n");
        scratch.write("late-zero", [&[b'\n'; 8000][..], b"\0\n"].concat());
        assert_eq!(
            changes(&scratch, &base),
            [
                "modified a.lock",
                "modified a.png",
                "added b.png",
                "added late-zero 1-8001"
            ]
        );
    }

    #[test]
    fn an_intended_addition_is_an_addition() {
        let scratch = Scratch::new();
        let base = scratch.commit();
        scratch.write("a", "1\n2\n");
        scratch.git(&["add", "--intent-to-add", "a"]);
        assert_eq!(changes(&scratch, &base), ["added a 1-2"]);
    }

    #[test]
    fn a_file_that_git_is_told_not_to_look_at_counts_as_its_index_has_it() {
        let scratch = Scratch::new();
        for name in ["assumed", "skipped", "staged"] {
            scratch.write(name, "1\n");
        }
        let base = scratch.commit();
        scratch.write("staged", "2\n");
        scratch.git(&["add", "staged"]);
        scratch.git(&["update-index", "--assume-unchanged", "assumed", "staged"]);
        scratch.git(&["update-index", "--skip-worktree", "skipped"]);
        for name in ["assumed", "skipped", "staged"] {
            scratch.write(name, "1\n2\n3\n");
        }
        assert_eq!(changes(&scratch, &base), ["modified staged 1-1"]);
    }

    #[test]
    fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
        let scratch = Scratch::new();
        scratch.write("in/a", "1\n");
        scratch.write("out/a", "1\n");
        let base = scratch.commit();
        scratch.git(&["sparse-checkout", "set", "in"]);
        assert!(!scratch.root.join("out").exists());
        assert!(changes(&scratch, &base).is_empty());
        scratch.write("in/a", "2\n");
        assert_eq!(changes(&scratch, &base), ["modified in/a 1-1"]);
    }

    #[test]
    fn unmerged_files_are_modified_where_the_work_tree_differs() {
        let scratch = Scratch::new();
        scratch.write("both", "1\n");
        scratch.write("gone", "1\n");
        scratch.write("kept", "1\n");
        let base = scratch.commit();
        scratch.git(&["checkout", "--quiet", "-b", "other"]);
        scratch.write("both", "2\n");
        scratch.write("gone", "2\n");
        fs::remove_file(scratch.root.join("kept")).unwrap();
        scratch.commit();
        scratch.git(&["checkout", "--quiet", "main"]);
        scratch.write("both", "3\n");
        scratch.write("kept", "3\n");
        fs::remove_file(scratch.root.join("gone")).unwrap();
        scratch.commit();
        assert!(!scratch.try_git(&["merge", "other"]).status.success());
        let expected = [
            "modified both 1-5",
            "modified gone 1-1",
            "modified kept 1-1",
        ];
        assert_eq!(changes(&scratch, &base), expected);
    }

    #[test]
    fn a_submodule_differs_by_its_commit_or_by_changes_of_its_own() {
        let library = Scratch::new();
        library.write("a", "1\n");
        library.commit();
        let scratch = Scratch::new();
        scratch.commit();
        let url = format!("file://{}", library.root);
        let allowed = "protocol.file.allow=always";
        scratch.git(&[
            "-c",
            allowed,
            "submodule",
            "--quiet",
            "add",
            &url,
            "library",
        ]);
        scratch.git(&[
            "config",
            "-f",
            ".gitmodules",
            "submodule.library.ignore",
            "all",
        ]);
        scratch.git(&["config", "diff.submodule", "log"]);
        let base = scratch.commit();
        assert!(changes(&scratch, &base).is_empty());
        scratch.write("library/new", "1\n");
        assert_eq!(changes(&scratch, &base), ["submodule library"]);
        scratch.git(&["-C", "library", "add", "."]);
        scratch.git(&["-C", "library", "commit", "--quiet", "-m", "new"]);
        assert_eq!(changes(&scratch, &base), ["submodule library"]);
        scratch.git(&["rm", "--quiet", "--force", "library"]);
        let changed = changes(&scratch, &base);
        assert_eq!(changed, ["modified .gitmodules 1-1", "submodule library"]);
    }

    #[test]
    fn a_repository_that_is_no_submodule_is_not_looked_into() {
        let scratch = Scratch::new();
        let base = scratch.commit();
        scratch.git(&["init", "--quiet", "vendored"]);
        scratch.write("vendored/a", "1\n");
        assert_eq!(changes(&scratch, &base), ["submodule vendored"]);
    }

    #[test]
    fn names_may_be_odd() {
        let scratch = Scratch::new();
        let names = [
            " ",
            "a b/c d",
            "q\"uote",
            "back\\slash",
            "new\nline",
            "ü\t-",
            "-dash",
            ":(top)",
        ];
        for name in names {
            scratch.write(name, "1\n2\n");
        }
        let base = scratch.commit();
        for name in names {
            scratch.write(name, "1\nx\n");
        }
        scratch.write("new\n \"file\"", "1\n");
        let mut expected: Vec<String> = names.map(|name| format!("modified {name} 2-2")).into();
        expected.push("added new\n \"file\" 1-1".to_owned());
        let mut found = changes(&scratch, &base);
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_an_error() {
        let scratch = Scratch::new();
        let base = scratch.commit();
        let name = scratch
            .root
            .as_std_path()
            .join(OsStr::from_bytes(b"caf\xe9"));
        if fs::write(name, "1\n").is_err() {
            // This system allows no such names.
            return;
        }
        for how in ["untracked", "tracked"] {
            let error =
                changes_since(&scratch.repository(), &base, &Clutter::default()).unwrap_err();
            let message = error.to_string();
            assert_eq!(message, "the name of `caf\u{fffd}` is not UTF-8", "{how}");
            scratch.git(&["add", "--all"]);
        }
    }

    #[test]
    fn line_ends_that_git_converts_are_no_change() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n2\n3\n");
        let base = scratch.commit();
        scratch.git(&["config", "core.autocrlf", "true"]);
        scratch.write("a", "1\r\n2\r\n3\r\n");
        assert!(changes(&scratch, &base).is_empty());
        scratch.write("a", "1\r\n2\r\nx\r\n");
        assert_eq!(changes(&scratch, &base), ["modified a 3-3"]);
    }

    #[test]
    fn the_users_configuration_changes_nothing() {
        let scratch = Scratch::new();
        scratch.write(".gitattributes", "*.py diff=loud\n");
        scratch.write("a.py", "1\n2\n3\n4\n5\n");
        let base = scratch.commit();
        let settings = [
            ("color.ui", "always"),
            ("core.quotePath", "true"),
            ("diff.autoRefreshIndex", "true"),
            ("diff.context", "9"),
            ("diff.external", "false"),
            ("diff.interHunkContext", "9"),
            ("diff.loud.command", "false"),
            ("diff.loud.textconv", "false"),
            ("diff.mnemonicPrefix", "true"),
            ("diff.noprefix", "true"),
            ("diff.relative", "true"),
            ("status.showUntrackedFiles", "no"),
        ];
        for (name, value) in settings {
            scratch.git(&["config", name, value]);
        }
        scratch.write("a.py", "x\n2\ny\n4\n5\n");
        scratch.write("ü", "1\n");
        assert_eq!(
            changes(&scratch, &base),
            ["modified a.py 1-1 3-3", "added ü 1-1"]
        );
    }

    #[test]
    fn a_subfolder_of_a_repository_sees_all_of_it() {
        let scratch = Scratch::new();
        scratch.write("project/a", "1\n");
        scratch.write("b", "1\n");
        let base = scratch.commit();
        scratch.write("b", "2\n");
        let repository = Repository::find(&scratch.root.join("project"))
            .unwrap()
            .unwrap();
        let files = changes_since(&repository, &base, &Clutter::default()).unwrap();
        assert_eq!(files[0].path, "b");
    }

    #[test]
    fn a_git_that_holds_the_index_does_not_hold_us_up() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n");
        let base = scratch.commit();
        scratch.write("a", "2\n");
        scratch.write(".git/index.lock", "");
        assert_eq!(changes(&scratch, &base), ["modified a 1-1"]);
    }

    #[test]
    fn a_partial_clone_fetches_what_the_diff_needs() {
        let server = Scratch::new();
        server.git(&["config", "uploadpack.allowFilter", "true"]);
        server.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        server.write("a", "1\n2\n");
        let base = server.commit();
        server.write("a", "1\n3\n");
        server.commit();
        let scratch = Scratch::clone_of(&server, &["--filter=blob:none"]);
        assert_eq!(changes(&scratch, &base), ["modified a 2-2"]);
    }

    #[test]
    fn without_any_commit_the_empty_tree_is_a_base() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n");
        let empty = scratch.git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
        assert_eq!(changes(&scratch, &empty), ["added a 1-1"]);
    }

    #[test]
    fn a_large_diff_is_read_to_its_end() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n".repeat(200_000));
        let base = scratch.commit();
        scratch.write("a", ["2\n".repeat(200_000), "x".repeat(1_000_000)].concat());
        assert_eq!(changes(&scratch, &base), ["modified a 1-200001"]);
    }

    #[test]
    fn a_commit_that_is_none_is_gits_error() {
        let scratch = Scratch::new();
        scratch.commit();
        for commit in ["nothing", "--output=leak"] {
            let error =
                changes_since(&scratch.repository(), commit, &Clutter::default()).unwrap_err();
            assert!(matches!(error, GitError::Failed { .. }), "{error:?}");
        }
        assert!(!scratch.root.join("leak").exists());
    }
}
