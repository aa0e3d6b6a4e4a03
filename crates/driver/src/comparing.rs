//! INTERSECT in a session: watches a failing run, holds what it used against what changed, and runs the
//! test at the base. What that means is decided in `unflake_core::comparison`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::comparison::{AtBase, Comparison, is_same_failure};
use unflake_core::event::Note;
use unflake_core::intersect::{Unknown, intersect};
use unflake_core::trial::{Rung, Trial, VmId};
use unflake_core::verdict::{Blame, Verdict};

use crate::difference::{CheckBase, Difference, DifferenceError, Workshop};
use crate::facts::{Facts, Ground};
use crate::git::Repository;
use crate::memory::Asked;
use crate::protocol::Command;
use crate::run_error::RunError;
use crate::session::{Halt, Session};
use crate::watch::Watch;

/// A run at the base is cheap if the same run in the work tree took no longer than this.
const CHEAP: Duration = Duration::from_secs(30);
/// Runs at the base are cheap while they took no longer than this together.
const CHEAP_TOGETHER: Duration = Duration::from_secs(120);

/// What stands where Java has constants.
const CONSTANTS: [&str; 3] = ["static final", "final static", "interface "];

/// What is known about the latest changes.
pub(crate) enum Changes {
    /// Nobody wants to know.
    Unwanted,
    /// They have not been looked at yet.
    Unread,
    /// They cannot be known; it was said why.
    Unknowable,
    /// They are known.
    Known(Arc<Difference>),
}

/// What a watched run used.
pub(crate) struct Used {
    pub(crate) facts: Facts,
    /// The changed files that somebody opened meanwhile; `None` if the system did not watch.
    opened: Option<BTreeSet<String>>,
    began: SystemTime,
}

/// A run that is being watched.
pub(crate) struct Watched {
    watch: Option<Watch>,
    began: SystemTime,
}

impl Session {
    /// Makes sure that there is a base before anything runs, if the user named one or asked for it.
    pub(crate) fn check_against(&mut self) -> Result<(), Halt> {
        let Some(against) = &self.wish.against else {
            return Ok(());
        };
        if !against.is_required {
            return Ok(());
        }
        let folder = self.wish.project.folder().to_owned();
        let found = match Repository::find(&folder) {
            Ok(Some(repository)) => crate::difference::choose_base(&repository, against)
                .map(drop)
                .map_err(DifferenceError::from),
            Ok(None) => Err(DifferenceError::NoRepository { folder }),
            Err(error) => Err(error.into()),
        };
        found.map_err(|error| Halt::Error(RunError::Against(error)))
    }

    /// Begins to watch, if a run of this suspect on this rung is to be watched.
    pub(crate) fn begin_watch(&mut self, at: usize, rung: Rung) -> Option<Watched> {
        let is_wanted = rung == Rung::Fresh && self.suspects[at].used.is_none();
        let difference = if is_wanted {
            self.difference()?
        } else {
            return None;
        };
        let paths = difference.changes.iter();
        let paths = paths.map(|change| change.file.path.as_str());
        let watch = Watch::begin(difference.repository.root(), paths);
        Some(Watched {
            watch,
            began: SystemTime::now(),
        })
    }

    /// Keeps what a watched run has used.
    pub(crate) fn end_watch(&mut self, at: usize, vm: VmId, watched: &Watched) {
        let opened = watched.watch.as_ref().and_then(Watch::opened);
        // Without its facts nothing is known of the run, and `compare` says so.
        if let Ok(facts) = self.read_facts(vm) {
            self.suspects[at].used = Some(Used {
                facts,
                opened,
                began: watched.began,
            });
        }
    }

    /// What a watched VM has written about itself so far.
    pub(crate) fn read_facts(&self, vm: VmId) -> io::Result<Facts> {
        Facts::read(&self.fleet.folder().join(format!("{}.usage", vm.0)))
    }

    /// What changed since the base; read at the first call. `None` if it cannot be known.
    pub(crate) fn difference(&mut self) -> Option<Arc<Difference>> {
        if let Changes::Unread = self.changes {
            self.changes = match self.read_difference() {
                Ok(Some(difference)) => Changes::Known(Arc::new(difference)),
                Ok(None) => Changes::Unwanted,
                Err(error) => {
                    let fetch = error.fetch_command();
                    let why = chain(&error);
                    self.note(Note::NoBase { why, fetch });
                    Changes::Unknowable
                }
            };
        }
        match &self.changes {
            Changes::Known(difference) => Some(Arc::clone(difference)),
            Changes::Unwanted | Changes::Unread | Changes::Unknowable => None,
        }
    }

    /// `None` outside a repository.
    fn read_difference(&self) -> Result<Option<Difference>, DifferenceError> {
        let Some(against) = &self.wish.against else {
            return Ok(None);
        };
        // Not of a copy of it, in which experiments may run.
        let project = &self.home.project;
        let Some(repository) = Repository::find(project.folder())? else {
            return Ok(None);
        };
        let folder = self.fleet.folder();
        let workshop = Workshop {
            python: project.python(),
            folder: &folder,
        };
        Difference::read(repository, against, &workshop).map(Some)
    }

    /// Judges a suspect that failed each time it was run.
    pub(crate) fn compare(&mut self, at: usize) -> Result<(Verdict, Option<Comparison>), Halt> {
        let difference = match &self.changes {
            Changes::Known(difference) => Arc::clone(difference),
            Changes::Unknowable => return Ok((Verdict::Broken(Blame::NoBase), None)),
            Changes::Unwanted | Changes::Unread => {
                return Ok((Verdict::Broken(Blame::NotAsked), None));
            }
        };
        let rules = self
            .wish
            .against
            .as_ref()
            .map(|against| against.rules.clone());
        let rules = rules.unwrap_or_default();
        let mut intersection = unflake_core::intersect::Intersection::default();
        match &self.suspects[at].used {
            Some(used) => {
                let usage = used.to_usage(&difference, &self.path_of(at));
                intersection = intersect(&difference.changes, &usage, &rules);
            }
            None => intersection.unknowns.push(Unknown::NotWatched),
        }
        if !self.is_watched_failure(at) {
            intersection.unknowns.push(Unknown::AnotherFailure);
        }
        // A run there says how things are now, and beats what the history says of another day.
        let at_base = match self.why_no_check(at) {
            None => self.check_base(at, &difference)?,
            Some(why) => match self.recall_pass(at, &difference) {
                Some(time) => AtBase::PassedBefore { time },
                None => AtBase::NotChecked { why },
            },
        };
        let missed = self.copied_constants(at, &difference, &intersection);
        intersection.unknowns.extend(missed);
        let comparison = Comparison {
            base: difference.base.clone(),
            changed_files: difference.changes.len(),
            intersection,
            at_base,
        };
        Ok((comparison.conclude(), Some(comparison)))
    }

    /// The changed Java files that no class was loaded from, and whose constants the compiler may have copied
    /// into other classes: those that a run at the base does not show to be the same there.
    fn copied_constants(
        &self,
        at: usize,
        difference: &Difference,
        intersection: &unflake_core::intersect::Intersection,
    ) -> Vec<Unknown> {
        let suspect = &self.suspects[at];
        let here = suspect.used.as_ref().map(|used| &used.facts);
        let root = difference.repository.root();
        let is_same = |path: &str| {
            let (here, there) = (here?, suspect.used_at_base.as_ref()?);
            let file = root.join(path);
            let own = here.constants_of(&file)?;
            let tree = self.base_tree.as_ref()?;
            Some(there.constants_of(&tree.map(&file))? == own)
        };
        let is_java = |path: &str| Utf8Path::new(path).extension() == Some("java");
        let is_touched = |path: &str| intersection.touches.iter().any(|touch| touch.path == path);
        let java = difference.changes.iter().map(|change| &change.file.path);
        let java = java.filter(|path| is_java(path) && !is_touched(path));
        let has_constants = |path: &str| {
            // One that is gone may have had some.
            fs::read_to_string(root.join(path)).map_or(true, |text| {
                CONSTANTS.iter().any(|word| text.contains(word))
            })
        };
        let differs = java.filter(|path| is_same(path) != Some(true) && has_constants(path));
        let missed = differs.map(|path| Unknown::Missed(format!("constants of {path}")));
        missed.collect()
    }

    /// When the suspect passed at the base before this session, with all that is installed as it is now.
    fn recall_pass(&self, at: usize, difference: &Difference) -> Option<i64> {
        let memory = self.wish.against.as_ref()?.memory.as_ref()?;
        memory.recall(&Asked {
            test: &self.suspects[at].test,
            commit: &difference.base.commit,
            installed: &self.installed()?,
        })
    }

    /// The file that a suspect's name begins with.
    fn path_of(&self, at: usize) -> Utf8PathBuf {
        let name = self.suspects[at].test.name();
        let file = name.split("::").next().unwrap_or(name);
        Utf8Path::new(&self.listed().root).join(file)
    }

    /// Whether the run that was watched failed as the one in the suite did.
    fn is_watched_failure(&self, at: usize) -> bool {
        let trials = &self.suspects[at].trials;
        let watched = trials.iter().find(|trial| trial.is_watched);
        match (trials.first(), watched) {
            (Some(first), Some(watched)) => fails_alike(first, watched),
            (_, None) | (None, _) => true,
        }
    }

    fn why_no_check(&self, at: usize) -> Option<String> {
        let against = self.wish.against.as_ref()?;
        let watched = self.suspects[at]
            .trials
            .iter()
            .find(|trial| trial.is_watched);
        let cost = watched.map_or(Duration::ZERO, |trial| trial.cost);
        let is_cheap = cost <= CHEAP && self.spent_at_base + cost <= CHEAP_TOGETHER;
        let why = match against.check_base {
            CheckBase::Always => return None,
            CheckBase::WhenCheap if is_cheap => return None,
            CheckBase::WhenCheap => "it would take long: --check-base does it all the same",
            CheckBase::Never => "it was not asked for: --check-base does it",
        };
        Some(why.to_owned())
    }
}

impl Used {
    fn to_usage(&self, difference: &Difference, test: &Utf8Path) -> unflake_core::usage::Usage {
        let ground = Ground {
            test: Some(test),
            opened: self.opened.as_ref(),
            ..difference.ground(self.began)
        };
        self.facts.to_usage(&ground)
    }
}

impl Difference {
    pub(crate) fn ground(&self, run_began: SystemTime) -> Ground<'_> {
        Ground {
            root: self.repository.root(),
            known: &self.known,
            hidden: &self.hidden,
            base_time: self.base_time,
            run_began,
            opened: None,
            test: None,
        }
    }
}

/// Whether two trials ended in the same way, with the same message.
pub(crate) fn fails_alike(one: &Trial, other: &Trial) -> bool {
    one.outcome.label() == other.outcome.label()
        && is_same_failure(&one.account.message, &other.account.message)
}

/// The same start, watched.
pub(crate) fn watch(start: Command) -> Command {
    match start {
        Command::Start {
            args,
            guest,
            trace,
            delays,
            ..
        } => Command::Start {
            args,
            guest,
            watch: true,
            trace,
            delays,
        },
        Command::Collect { .. }
        | Command::Run { .. }
        | Command::Rerun { .. }
        | Command::Twice { .. }
        | Command::Go {}
        | Command::Mark {}
        | Command::Compare { .. }
        | Command::Locate { .. }
        | Command::Fork { .. }
        | Command::Finish {} => start,
    }
}

/// An error with its causes, in a line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
