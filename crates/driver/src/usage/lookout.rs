//! The system's watch over changed documents, which begins before the suite: it tells who has used them when a test
//! fails.
//!
//! The suite runs unwatched and pays nothing for it. There is an answer only if nobody can use the changes without
//! opening a file or listing a folder, and if that holds for the files that git does not follow as well.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::change::ChangeKind;
use unflake_core::intersect::{Intersection, intersect_at_failure, is_copy};
use unflake_core::rules::Rules;
use unflake_core::usage::Usage;

use crate::git::changes::left_behind;
use crate::git::difference::{Against, Difference};
use crate::git::repository::Repository;
use crate::usage::ignored::Ignored;
use crate::usage::kernel::Watch;

/// The longest time that the suite waits for git. An interpreter needs longer than git for its start, as a rule.
const PATIENCE: Duration = Duration::from_secs(2);

/// The eye, as far as it is open.
pub(crate) enum Outlook {
    /// It is not wanted, or cannot tell anything.
    None,
    /// Git is being asked what to watch.
    Coming(Receiver<Option<Lookout>>),
    /// It is open.
    There(Box<Lookout>),
}

impl Outlook {
    /// Begins to ask git for what changed in the repository around a folder.
    pub(crate) fn begin(folder: &Utf8Path, against: &Against) -> Self {
        let (sender, receiver) = channel();
        let (folder, against) = (folder.to_owned(), against.clone());
        thread::spawn(move || {
            // Nobody waits any more if it took too long.
            drop(sender.send(Lookout::begin(&folder, &against)));
        });
        Self::Coming(receiver)
    }

    /// Waits until it is open, for what comes now may read what changed.
    pub(crate) fn settle(&mut self) {
        if let Self::Coming(coming) = self {
            let there = coming.recv_timeout(PATIENCE).ok().flatten();
            *self = there.map_or(Self::None, |there| Self::There(Box::new(there)));
        }
    }

    /// The paths that were opened up to now; `None` if that is not known.
    pub(crate) fn opened(&self) -> Option<BTreeSet<String>> {
        self.there()?.watch.opened()
    }

    /// The eye, if it is open.
    pub(crate) fn there(&self) -> Option<&Lookout> {
        match self {
            Self::There(lookout) => Some(lookout),
            Self::None | Self::Coming(_) => None,
        }
    }
}

/// The things that are watched, and why.
pub(crate) struct Lookout {
    watch: Watch,
    root: Utf8PathBuf,
    base: Option<String>,
    changes: BTreeMap<String, ChangeKind>,
    /// The folders that show that a file came.
    folders: BTreeSet<String>,
    /// The files and folders that git ignores, or is told not to look at.
    ignored: BTreeSet<String>,
    hidden: BTreeSet<String>,
    /// The folders with git's own records.
    records: Vec<Utf8PathBuf>,
}

impl Lookout {
    /// Asks git what changed, and begins to watch it. `None` where that cannot tell who uses the changes.
    fn begin(folder: &Utf8Path, against: &Against) -> Option<Self> {
        if env::var_os("PYTHONPYCACHEPREFIX").is_some() {
            return None; // Compiled sources lie we do not know where.
        }
        // Whoever needs the changes later will hear what is wrong with git.
        let repository = Repository::find(folder).ok()??;
        if repository.root().join(".gitmodules").exists() {
            return None; // What a repository inside this one ignores is not listed.
        }
        let difference = Difference::read_ahead(repository.clone(), against, folder);
        let difference = difference.ok()??;
        let clutter = against.clutter(&repository);
        let mut ignored = Ignored::read(&repository, &clutter.of_this_run())?;
        // Nobody's work, but it may have been made from the changes.
        ignored
            .files
            .extend(left_behind(&repository, &clutter).ok()?);
        let root = repository.root();
        let is_there = |path: &&String| root.join(path).symlink_metadata().is_ok();
        let hidden: BTreeSet<String> = difference.hidden.iter().filter(is_there).cloned().collect();
        let records = records(&repository)?;
        let mut changes = BTreeMap::new();
        let mut folders = BTreeSet::new();
        for change in &difference.changes {
            let path = &change.file.path;
            if against.rules.is_never(path) {
                continue;
            }
            // Nobody sees who reads where a link leads.
            fs::symlink_metadata(root.join(path))
                .ok()
                .filter(fs::Metadata::is_file)?;
            changes.insert(path.clone(), change.file.kind);
            folders.extend(change.folders.iter().cloned());
        }
        let files = changes.keys().chain(&ignored.files).chain(&hidden);
        let compiled: BTreeSet<String> = files.clone().filter_map(|path| cache_of(path)).collect();
        let ignored_folders = ignored.folders.iter();
        let inside = files
            .chain(&folders)
            .chain(ignored_folders)
            .chain(&compiled);
        let inside = inside.map(String::as_str);
        let paths = inside.chain(records.iter().map(|path| path.as_str()));
        // Up to here the readers were this process and others of ours.
        if let Some(readers) = &against.readers {
            readers.wait();
        }
        let watch = Watch::begin(root, paths)?;
        Some(Self {
            watch,
            root: root.to_owned(),
            base: difference.base.commit.clone(),
            changes,
            folders,
            ignored: ignored.files.into_iter().chain(ignored.folders).collect(),
            hidden,
            records,
        })
    }

    /// What a run may have to do with the changes, if it opened these paths and had this search path of modules.
    pub(crate) fn intersection(
        &self,
        opened: &BTreeSet<String>,
        difference: &Difference,
        search_path: &[String],
        rules: &Rules,
    ) -> Intersection {
        let is_same_base = difference.base.commit == self.base;
        let watched = difference.changes.iter().filter(|change| {
            let known = self.changes.get(&change.file.path);
            is_same_base && known == Some(&change.file.kind)
        });
        let watched = watched.map(|change| change.file.path.clone()).collect();
        let seen = self.seen(opened, search_path);
        intersect_at_failure(&difference.changes, &seen, &watched, rules)
    }

    fn seen(&self, opened: &BTreeSet<String>, search_path: &[String]) -> Usage {
        let mut seen = Usage {
            is_kernel_watched: true,
            ..Usage::default()
        };
        for path in opened {
            let source = source_of(path);
            for path in [Some(path), source.as_ref()].into_iter().flatten() {
                if self.changes.contains_key(path) {
                    seen.files.entry(path.clone()).or_default().is_read = true;
                }
                if self.folders.contains(path) {
                    seen.listed.insert(path.clone());
                }
                if self.ignored.contains(path) {
                    seen.generated.insert(path.clone());
                }
                if self.hidden.contains(path) {
                    seen.hidden.insert(path.clone());
                }
                if self
                    .records
                    .iter()
                    .any(|record| Utf8Path::new(path).starts_with(record))
                {
                    seen.listed.insert(".git".to_owned());
                }
            }
        }
        for path in self.changes.keys() {
            seen.elsewhere.extend(self.copies(path, search_path));
        }
        seen
    }

    /// Installed copies of a file.
    fn copies(&self, path: &str, search_path: &[String]) -> Vec<String> {
        let mut copies = Vec::new();
        let tails = Utf8Path::new(path).ancestors().filter_map(|head| {
            let parent = head.parent()?;
            Utf8Path::new(path).strip_prefix(parent).ok()
        });
        let tails: Vec<&Utf8Path> = tails.collect();
        let is_elsewhere = |folder: &&String| {
            let is_installed = folder.contains("-packages");
            is_installed || !Utf8Path::new(folder.as_str()).starts_with(&self.root)
        };
        for folder in search_path.iter().filter(is_elsewhere) {
            let places = tails.iter().map(|tail| Utf8Path::new(folder).join(tail));
            let found = places.filter(|place| place.is_file() && is_copy(path, place.as_str()));
            copies.extend(found.map(Utf8PathBuf::into_string));
        }
        copies
    }
}

/// The places in which git keeps what every commit changes.
fn records(repository: &Repository) -> Option<Vec<Utf8PathBuf>> {
    let words = [
        "rev-parse",
        "--path-format=absolute",
        "--git-dir",
        "--git-common-dir",
    ];
    let said = String::from_utf8(repository.run(&words).ok()?).ok()?;
    let mut places = vec![repository.root().join(".git")];
    for folder in said.lines().map(Utf8Path::new) {
        places.push(folder.to_owned());
        places.extend(["logs", "refs", "refs/heads"].map(|name| folder.join(name)));
    }
    Some(places)
}

/// The folder in which the compiled form of a source lies.
fn cache_of(path: &str) -> Option<String> {
    let path = Utf8Path::new(path);
    let is_source = path.extension() == Some("py");
    is_source.then(|| path.with_file_name("__pycache__").into_string())
}

/// The source of a compiled file.
fn source_of(path: &str) -> Option<String> {
    let path = Utf8Path::new(path);
    let cache = path.parent()?;
    let stem = path.file_name()?.split('.').next()?;
    let is_compiled = cache.file_name() == Some("__pycache__");
    is_compiled.then(|| cache.with_file_name(format!("{stem}.py")).into_string())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::git::difference::CheckBase;
    use crate::git::repository::scratch::Scratch;

    fn against() -> Against {
        Against {
            base: Some("HEAD".to_owned()),
            rules: Rules::default(),
            check_base: CheckBase::Never,
            is_required: true,
            budget: None,
            setup: None,
            memory: None,
            tested: None,
            reports: Vec::new(),
            run_began: None,
            readers: None,
        }
    }

    /// A tree with a document that changed, and what git ignores.
    fn tree() -> Scratch {
        let scratch = Scratch::new();
        scratch.write(".gitignore", "build/\n_version.py\n__pycache__/\n");
        scratch.write("docs/notes.md", "Tea.\n");
        scratch.write("shop.py", "");
        scratch.commit();
        scratch.write("docs/notes.md", "Coffee.\n");
        scratch.write("build/table.txt", "1\n");
        scratch.write("_version.py", "1\n");
        scratch.write("__pycache__/_version.cpython-311.pyc", "1\n");
        scratch
    }

    /// Whether what somebody does there counts as a use of the changes; `None` if nobody could tell.
    fn is_used(scratch: &Scratch, act: impl FnOnce(&Utf8Path)) -> Option<bool> {
        let mut outlook = Outlook::begin(&scratch.root, &against());
        outlook.settle();
        let lookout = outlook.there()?;
        act(&scratch.root);
        let opened = outlook.opened().unwrap();
        let difference = Difference::read_ahead(scratch.repository(), &against(), &scratch.root);
        let difference = difference.unwrap().unwrap();
        let found = lookout.intersection(&opened, &difference, &[], &Rules::default());
        Some(!found.is_disjoint())
    }

    fn read(path: &str) -> impl FnOnce(&Utf8Path) + use<'_> {
        move |root| drop(fs::read(root.join(path)).unwrap())
    }

    #[test]
    fn what_is_no_part_of_the_change_may_be_read() {
        let scratch = tree();
        assert_eq!(is_used(&scratch, |_| ()), Some(false));
        assert_eq!(is_used(&scratch, read("shop.py")), Some(false));
        let list = |root: &Utf8Path| drop(fs::read_dir(root.join("docs")).unwrap());
        assert_eq!(
            is_used(&scratch, list),
            Some(false),
            "it has the same names"
        );
    }

    #[test]
    fn who_reads_the_document_or_what_git_does_not_follow_has_used_it() {
        let scratch = tree();
        for path in [
            "docs/notes.md",
            "build/table.txt",
            "_version.py",
            "__pycache__/_version.cpython-311.pyc",
            ".git/HEAD",
        ] {
            assert_eq!(is_used(&scratch, read(path)), Some(true), "{path}");
        }
        let list = |root: &Utf8Path| drop(fs::read_dir(root.join("build")).unwrap());
        assert_eq!(is_used(&scratch, list), Some(true));
        let link = |root: &Utf8Path| {
            fs::hard_link(root.join("docs/notes.md"), root.join("other")).unwrap();
            drop(fs::read(root.join("other")).unwrap());
            fs::remove_file(root.join("other")).unwrap();
        };
        assert_eq!(is_used(&scratch, link), Some(true));
        scratch.git(&["update-index", "--assume-unchanged", "shop.py"]);
        assert_eq!(is_used(&scratch, read("shop.py")), Some(true));
    }

    #[test]
    fn what_a_run_makes_in_an_ignored_folder_is_its_own() {
        let own = |root: &Utf8Path| {
            fs::write(root.join("build/log.txt"), "1").unwrap();
            drop(fs::read(root.join("build/log.txt")).unwrap());
        };
        assert_eq!(is_used(&tree(), own), Some(false));
    }

    #[test]
    fn a_new_document_is_used_by_who_lists_its_folder() {
        let scratch = tree();
        scratch.write("docs/new.md", "New.\n");
        assert_eq!(is_used(&scratch, read("shop.py")), Some(false));
        let list = |folder: &'static str| {
            move |root: &Utf8Path| drop(fs::read_dir(root.join(folder)).unwrap())
        };
        assert_eq!(is_used(&scratch, list("docs")), Some(true));
        assert_eq!(is_used(&scratch, list("")), Some(false));
        scratch.write("news/1.md", "New.\n");
        assert_eq!(is_used(&scratch, list("")), Some(true));
    }

    #[test]
    fn nobody_can_tell_who_uses_code_data_what_is_gone_or_a_link() {
        let scratch = tree();
        scratch.write("shop.py", "1\n");
        assert_eq!(is_used(&scratch, |_| ()), None, "code");
        let scratch = tree();
        scratch.write("rates.json", "1\n");
        assert_eq!(is_used(&scratch, |_| ()), None, "data");
        let scratch = tree();
        fs::remove_file(scratch.root.join("docs/notes.md")).unwrap();
        assert_eq!(is_used(&scratch, |_| ()), None, "gone");
        let scratch = tree();
        symlink("docs/notes.md", scratch.root.join("README.md")).unwrap();
        assert_eq!(is_used(&scratch, |_| ()), None, "a link");
        let scratch = tree();
        symlink("/usr", scratch.root.join("build/out")).unwrap();
        assert_eq!(is_used(&scratch, |_| ()), None, "an ignored link");
        let scratch = tree();
        scratch.write(".gitmodules", "");
        scratch.commit();
        scratch.write("docs/notes.md", "Milk.\n");
        assert_eq!(is_used(&scratch, |_| ()), None, "repositories inside");
    }

    #[test]
    fn what_changed_after_the_watch_began_was_not_watched() {
        let later = |root: &Utf8Path| fs::write(root.join("docs/later.md"), "1\n").unwrap();
        assert_eq!(is_used(&tree(), later), Some(true));
    }

    #[test]
    fn an_installed_copy_may_have_been_read_in_its_place() {
        let scratch = tree();
        let mut outlook = Outlook::begin(&scratch.root, &against());
        outlook.settle();
        let lookout = outlook.there().unwrap();
        let venv = tempfile::tempdir().unwrap();
        let site = Utf8Path::from_path(venv.path())
            .unwrap()
            .join("site-packages");
        fs::create_dir_all(site.join("docs")).unwrap();
        let path = [site.to_string(), scratch.root.to_string()];
        assert_eq!(lookout.copies("docs/notes.md", &path), [""; 0]);
        fs::write(site.join("docs/notes.md"), "Tea.\n").unwrap();
        let expected = [site.join("docs/notes.md").into_string()];
        assert_eq!(lookout.copies("docs/notes.md", &path), expected);
    }
}
