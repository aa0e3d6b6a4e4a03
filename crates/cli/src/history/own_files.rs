//! What a run itself adds to a folder, and what was in it when the run began.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;
use unflake_driver::blame::memory::LastPass;
use unflake_driver::files::snapshot::{FileState, Snapshot, States};
use unflake_driver::git::clutter::{Clutter, Leftover};
use unflake_driver::git::repository::Repository;
use unflake_history::dates;
use unflake_history::engine::{self, Missing};
use unflake_history::store::folder::{Left, PassedFile, PassedRun};
use unflake_history::store::{StoreError, digest_of};

use super::whence;
use super::whole_pass::Passed;

/// How far the times of files may lag behind the clock.
const TICK: Duration = Duration::from_millis(10);

/// What a run itself adds to a folder.
#[derive(Clone, Debug)]
pub(crate) struct OwnFiles {
    /// The history.
    pub(crate) store: Utf8PathBuf,
    /// The project's folder.
    pub(crate) folder: Utf8PathBuf,
    /// Reports that it reads or writes.
    reports: Vec<Utf8PathBuf>,
    /// When it began: what is written later is its own.
    began: SystemTime,
    /// Where no git tells what changed: the files when it began, if they can all be known.
    files: Arc<OnceLock<Option<Snapshot>>>,
}

impl OwnFiles {
    /// Those of a run that begins in a folder, with a history and reports.
    pub(crate) fn new(
        store: &Utf8Path,
        folder: &Utf8Path,
        reports: Vec<Utf8PathBuf>,
        began: SystemTime,
    ) -> Self {
        Self {
            store: store.to_owned(),
            folder: folder.to_owned(),
            reports,
            began,
            files: Arc::default(),
        }
    }

    /// What is no change in the folder.
    pub(crate) fn clutter(&self, root: &Utf8Path) -> Clutter {
        let beside = ["-wal", "-shm"].map(|end| Utf8PathBuf::from(format!("{}{end}", self.store)));
        let store = std::iter::once(self.store.clone()).chain(beside);
        let own: Vec<Utf8PathBuf> = self.reports.iter().cloned().chain(store).collect();
        Clutter::new(root, &own, Some(self.began)).with(left_behind(&self.store, root))
    }

    /// Keeps what the run left behind in the repository around a folder, or in the folder, by which the next run tells it
    /// from the user's.
    pub(crate) fn keep(&self, ended: SystemTime) -> Result<(), StoreError> {
        let repository = Repository::find(&self.folder).ok().flatten();
        let root = match &repository {
            Some(repository) => repository.root().to_owned(),
            None => real(&self.folder),
        };
        let left = Clutter::new(&root, &self.reports, Some(self.began));
        let left = left.left_behind(&root, ended.checked_sub(TICK).unwrap_or(ended));
        let left: Vec<Left> = left.into_iter().map(to_left).collect();
        let mut store = engine::open(self.store.as_std_path(), Missing::Make)?;
        store.add_leftovers(&place(&root), &left)
    }

    /// The files of a folder in no repository as they were when the run began; read at the first call.
    pub(crate) fn at_start(&self) -> Option<&Snapshot> {
        let root = real(&self.folder);
        let take = || {
            let then = self.last_passed().map(|last| states(&last));
            let then = then.unwrap_or_default();
            Snapshot::take(&root, &self.clutter(&root), &then, digest_of)
        };
        self.files.get_or_init(take).as_ref()
    }

    /// Keeps the files of a folder in no repository: with them, these tests have passed, or were left out, in this order.
    pub(crate) fn keep_passed(&self, passed: &Passed) -> Result<(), StoreError> {
        if !matches!(Repository::find(&self.folder), Ok(None)) {
            return Ok(());
        }
        let Some(snapshot) = self.at_start() else {
            return Ok(());
        };
        let files = snapshot.files.iter().map(|(path, state)| PassedFile {
            path: path.clone(),
            digest: state.digest,
            size: state.size,
            changed: state.changed,
        });
        let names = passed
            .tests
            .iter()
            .map(|(test, has_passed)| (test.name().to_owned(), test.copy(), *has_passed));
        let run = PassedRun {
            time: dates::now(),
            installed: passed.installed,
            tests: names.collect(),
            files: files.collect(),
        };
        let mut store = engine::open(self.store.as_std_path(), Missing::Make)?;
        store.keep_passed(
            &whence::project(&self.folder),
            &whence::source(&self.folder),
            &run,
        )
    }

    /// What differs from the last run that passed with the same installed.
    pub(crate) fn since_passed(&self, installed: &[String]) -> Option<LastPass> {
        let last = self.last_passed()?;
        if last.installed != whence::installed(installed) {
            return None;
        }
        let (root, now, then) = (real(&self.folder), self.at_start()?, states(&last));
        let day = dates::to_text(dates::day_of(last.time));
        let tests = last.tests.iter();
        let files = now.since(&then, &root, &self.clutter(&root));
        let is_changed = |path: &String| files.iter().any(|file| file.path == *path);
        let is_known = |path: &String| then.contains_key(path) || is_changed(path);
        let (known, left) = now.names().into_iter().partition(is_known);
        Some(LastPass {
            what: format!("the last run that passed, on {day}"),
            tests: tests
                .map(|(name, copy, has_passed)| (TestId::copy_of(name, *copy), *has_passed))
                .collect(),
            files,
            known,
            left,
            known_then: then.into_keys().collect::<BTreeSet<String>>(),
            root,
        })
    }

    fn last_passed(&self) -> Option<PassedRun> {
        // Without a history that can be read, nothing is known.
        let store = engine::open(self.store.as_std_path(), Missing::Refuse).ok()?;
        let (project, source) = (whence::project(&self.folder), whence::source(&self.folder));
        store.passed(&project, &source).ok()?
    }
}

fn states(run: &PassedRun) -> States {
    let states = run.files.iter().map(|file| {
        let state = FileState {
            digest: file.digest,
            size: file.size,
            changed: file.changed,
        };
        (file.path.clone(), state)
    });
    states.collect()
}

/// What runs left behind in the work tree at `root`, by the history at `store`. Without one, nothing is excused.
pub(crate) fn left_behind(store: &Utf8Path, root: &Utf8Path) -> Vec<Leftover> {
    let left = engine::open(store.as_std_path(), Missing::Refuse)
        .and_then(|store| store.leftovers(&place(root)))
        .unwrap_or_default();
    let to_time = |nanoseconds: i64| {
        let nanoseconds = u64::try_from(nanoseconds).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds)
    };
    let left = left.into_iter().map(|left| Leftover {
        path: left.path,
        first: to_time(left.first),
        last: to_time(left.last),
    });
    left.collect()
}

fn to_left(left: Leftover) -> Left {
    let to_number = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
    };
    Left {
        path: left.path,
        first: to_number(left.first),
        last: to_number(left.last),
    }
}

/// A folder of this machine: several may share a history.
fn place(folder: &Utf8Path) -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    format!("{}:{folder}", host.to_string_lossy())
}

fn real(folder: &Utf8Path) -> Utf8PathBuf {
    folder
        .canonicalize_utf8()
        .unwrap_or_else(|_| folder.to_owned())
}
