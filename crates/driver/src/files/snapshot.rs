//! The files of a project that is in no repository, by their digests: what differs from an earlier run, and nothing of
//! what it was (Eloussi 2015, Ch. 5, after EKSTAZI).
//!
//! It is all or nothing. Where a file cannot be read, a link leads out of the folder or there are too many files, nobody
//! knows what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8DirEntry, Utf8Path};
use unflake_core::change::{ChangeKind, ChangedFile};

use crate::git::clutter::{Clutter, is_made_by_tools};

/// The most files, and the most bytes of them, that are looked at.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 1 << 30;

/// A file as it was once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The digest of its content, or of where it leads if it is a link.
    pub digest: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
    /// The last time that anything about it changed, in nanoseconds since 1970: the system's own time, which nobody
    /// can set back.
    pub changed: i64,
}

/// The files of a folder by their paths in it.
pub type States = BTreeMap<String, FileState>;

/// The files of a folder when a run began.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The files that nobody has written since.
    pub files: States,
    /// The files that were written since, before they could be read.
    rewritten: BTreeSet<String>,
}

impl Snapshot {
    /// Reads the files of a folder, those of which `then` does not know the content at this size and time. `None` if they
    /// cannot all be known.
    pub fn take(
        root: &Utf8Path,
        clutter: &Clutter,
        then: &States,
        digest: fn(&[u8]) -> [u8; 32],
    ) -> Option<Self> {
        let mut walk = Walk {
            root,
            clutter,
            then,
            digest,
            bytes: 0,
            found: Self::default(),
        };
        // Whatever the trouble is: the answer is that nothing is known.
        walk.enter(Utf8Path::new("")).ok()?;
        Some(walk.found)
    }

    /// The differences from earlier files. A file that came since, and that a run left there, is no difference.
    pub fn since(&self, then: &States, root: &Utf8Path, clutter: &Clutter) -> Vec<ChangedFile> {
        let names = self.files.keys().chain(&self.rewritten).chain(then.keys());
        let names: BTreeSet<&String> = names.collect();
        let changed = names.into_iter().filter_map(|path| {
            let kind = match (then.get(path), self.files.get(path)) {
                (Some(then), Some(now)) if then.digest == now.digest => return None,
                (Some(_), Some(_)) => ChangeKind::Modified,
                (Some(_), None) if self.rewritten.contains(path) => ChangeKind::Modified,
                (Some(_), None) => ChangeKind::Deleted,
                (None, _) if clutter.is_of_runs(root, path) => return None,
                (None, _) => ChangeKind::Added,
            };
            let path = path.clone();
            Some(ChangedFile {
                path,
                kind,
                lines: Vec::new(),
            })
        });
        changed.collect()
    }

    /// The names of all its files.
    pub fn names(&self) -> BTreeSet<String> {
        self.files.keys().chain(&self.rewritten).cloned().collect()
    }
}

struct Walk<'a> {
    root: &'a Utf8Path,
    clutter: &'a Clutter,
    then: &'a States,
    digest: fn(&[u8]) -> [u8; 32],
    bytes: u64,
    found: Snapshot,
}

impl Walk<'_> {
    fn enter(&mut self, folder: &Utf8Path) -> io::Result<()> {
        for entry in self.root.join(folder).read_dir_utf8()? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if is_made_by_tools(self.root, &path) || self.clutter.is_report(path.as_str()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.enter(&path)?;
            } else {
                self.look_at(&entry, path.as_str())?;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, entry: &Utf8DirEntry, path: &str) -> io::Result<()> {
        let data = entry.path().symlink_metadata()?;
        let changed = changed(&data);
        if self.clutter.is_written_by_run(entry.path()) {
            self.found.rewritten.insert(path.to_owned());
            return Ok(());
        }
        let known = self.then.get(path);
        let known = known.filter(|then| then.size == data.len() && then.changed == changed);
        let digest = match known {
            Some(then) => then.digest,
            None => self.read(entry, &data)?,
        };
        // Who was written meanwhile may have been read as it is now.
        if self.clutter.is_written_by_run(entry.path()) {
            self.found.rewritten.insert(path.to_owned());
            return Ok(());
        }
        let size = data.len();
        let state = FileState {
            digest,
            size,
            changed,
        };
        self.found.files.insert(path.to_owned(), state);
        let count = self.found.files.len() + self.found.rewritten.len();
        if count > MOST_FILES || self.bytes > MOST_BYTES {
            return Err(io::Error::other("there are too many files"));
        }
        Ok(())
    }

    fn read(&mut self, entry: &Utf8DirEntry, data: &Metadata) -> io::Result<[u8; 32]> {
        if data.is_symlink() {
            let end = entry.path().canonicalize_utf8()?;
            if !end.starts_with(self.root) {
                return Err(io::Error::other("a link leads out of the folder"));
            }
            return Ok((self.digest)(
                entry.path().read_link_utf8()?.as_str().as_bytes(),
            ));
        }
        self.bytes += data.len();
        if !data.is_file() || self.bytes > MOST_BYTES {
            return Err(io::Error::other("it cannot be read"));
        }
        // Nobody can run a file by its content alone.
        let mode = [u8::from(data.mode() & 0o100 != 0)];
        let content = [&fs::read(entry.path())?[..], &mode].concat();
        Ok((self.digest)(&content))
    }
}

fn changed(data: &Metadata) -> i64 {
    let seconds = data.ctime().saturating_mul(1_000_000_000);
    seconds.saturating_add(data.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use camino::Utf8PathBuf;
    use tempfile::TempDir;

    use super::*;

    /// A digest that is good enough for a test.
    fn digest(bytes: &[u8]) -> [u8; 32] {
        let mut digest = [0; 32];
        for (at, byte) in bytes.iter().enumerate() {
            digest[at % 32] ^= byte.rotate_left(u32::try_from(at % 8).unwrap());
        }
        digest
    }

    fn scratch() -> (TempDir, Utf8PathBuf) {
        let scratch = TempDir::new().unwrap();
        let root = Utf8PathBuf::try_from(scratch.path().canonicalize().unwrap()).unwrap();
        (scratch, root)
    }

    fn write(root: &Utf8Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn take(root: &Utf8Path, then: &States) -> Snapshot {
        Snapshot::take(root, &Clutter::default(), then, digest).unwrap()
    }

    #[test]
    fn what_differs_is_told_by_content_and_not_by_time() {
        let (_scratch, root) = scratch();
        for path in ["same.py", "modified.py", "gone.py", "deep/same.json"] {
            write(&root, path, "1");
        }
        write(&root, ".venv/pyvenv.cfg", "");
        write(&root, "deep/__pycache__/a.pyc", "");
        let then = take(&root, &States::new()).files;
        assert_eq!(then.len(), 4);
        assert_eq!(take(&root, &then).files, then);
        write(&root, "same.py", "1");
        write(&root, "modified.py", "2");
        write(&root, "new/a.py", "1");
        fs::remove_file(root.join("gone.py")).unwrap();
        write(&root, ".venv/lib/b.py", "1");
        let now = take(&root, &then);
        let told = now.since(&then, &root, &Clutter::default());
        let told = told.iter();
        let told: Vec<String> = told
            .map(|file| format!("{} {}", file.kind.label(), file.path))
            .collect();
        assert_eq!(
            told,
            ["deleted gone.py", "modified modified.py", "added new/a.py"]
        );
    }

    #[test]
    fn what_the_run_wrote_before_it_could_be_read_is_a_change_if_it_was_there() {
        let (_scratch, root) = scratch();
        write(&root, "prices.json", "1");
        let then = take(&root, &States::new()).files;
        let began = SystemTime::now() - Duration::from_secs(60);
        let clutter = Clutter::new(&root, &[], Some(began));
        write(&root, "left.txt", "1");
        let now = Snapshot::take(&root, &clutter, &then, digest).unwrap();
        assert_eq!(now.files, States::new());
        let told = now.since(&then, &root, &clutter);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].path.as_str(), told[0].kind),
            ("prices.json", ChangeKind::Modified)
        );
    }

    #[test]
    fn a_link_out_of_the_folder_leaves_everything_open() {
        let (_scratch, root) = scratch();
        write(&root, "a/b", "");
        symlink("a", root.join("inside")).unwrap();
        assert_eq!(take(&root, &States::new()).files.len(), 2);
        symlink("/", root.join("outside")).unwrap();
        assert!(Snapshot::take(&root, &Clutter::default(), &States::new(), digest).is_none());
    }
}
