//! INTERSECT in a session: watches a failing run, holds what it used against what changed, and runs the
//! test at the base. What that means is decided in `unflake_core::comparison`.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use unflake_core::comparison::{AtBase, Comparison, is_same_failure};
use unflake_core::event::Note;
use unflake_core::intersect::{Unknown, intersect};
use unflake_core::trial::{Rung, Trial, VmId};
use unflake_core::verdict::{Blame, Verdict};

use crate::difference::{CheckBase, Difference, DifferenceError, Workshop};
use crate::facts::{Facts, Ground};
use crate::git::Repository;
use crate::protocol::Command;
use crate::pytest::Project;
use crate::run_error::RunError;
use crate::session::{Halt, Session};
use crate::watch::Watch;
use crate::worktree::BaseTree;

/// A run at the base is cheap if the same run in the work tree took no longer than this.
const CHEAP: Duration = Duration::from_secs(30);
/// Runs at the base are cheap while they took no longer than this together.
const CHEAP_TOGETHER: Duration = Duration::from_secs(120);

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
    facts: Facts,
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
        let folder = self.wish.project.folder.clone();
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
        // Who runs a Python source is seen by the runner, down to the function.
        let others = difference.changes.iter().map(|change| &change.file);
        let others = others.filter(|file| !file.is_python());
        let others = others.map(|file| file.path.as_str());
        let watch = Watch::begin(difference.repository.root(), others);
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
        let project = &self.wish.project;
        let Some(repository) = Repository::find(&project.folder)? else {
            return Ok(None);
        };
        let folder = self.fleet.folder();
        let workshop = Workshop {
            python: &project.python,
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
                let usage = used.to_usage(&difference);
                intersection = intersect(&difference.changes, &usage, &rules);
            }
            None => intersection.unknowns.push(Unknown::NotWatched),
        }
        let at_base = match self.why_no_check(at) {
            Some(why) => AtBase::NotChecked { why },
            None => self.check_base(at, &difference)?,
        };
        let comparison = Comparison {
            base: difference.base.clone(),
            changed_files: difference.changes.len(),
            intersection,
            at_base,
        };
        Ok((comparison.conclude(), Some(comparison)))
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

    /// Runs a suspect in a checkout of the base.
    fn check_base(&mut self, at: usize, difference: &Difference) -> Result<AtBase, Halt> {
        let since = Instant::now();
        let project = match self.project_at_base(at, difference) {
            Ok(project) => project,
            Err(why) => return Ok(AtBase::NotRun { why }),
        };
        let test = self.suspects[at].test.clone();
        let tree = self.base_tree.as_ref().expect("the project is in it");
        let setup = self.wish.project.setup(self.listed());
        let setup = setup.moved(difference.repository.root(), tree.path());
        let Some(start) = Project::start_alone(&setup, &test) else {
            let why = "its file is not there".to_owned();
            return Ok(AtBase::NotRun { why });
        };
        let process = project.process(&self.fleet.folder());
        let vm = self.fleet.spawn(process, watch(start))?;
        self.watched_vms.insert(vm);
        let at_base = if let Some(said) = self.await_test(at, vm)? {
            let last = said.trim_end().lines().last();
            let last = last.unwrap_or("the test is not there").trim();
            let why = format!("pytest could not collect it there: {last}");
            AtBase::NotRun { why }
        } else {
            let trial = self.try_in(at, Rung::Base, vm, since)?;
            let at_base = self.judge_base(at, &trial, difference);
            let worker = self.suspects[at].worker.clone();
            self.record(trial, worker);
            at_base
        };
        self.leave(Some(vm))?;
        self.spent_at_base += since.elapsed();
        Ok(at_base)
    }

    /// The project as it was at the base. The checkout is made at the first call.
    fn project_at_base(&mut self, at: usize, difference: &Difference) -> Result<Project, String> {
        if self.base_tree.is_none() {
            let tree = BaseTree::check_out(&difference.repository, &difference.base.commit);
            self.base_tree = Some(tree.map_err(|error| chain(&error))?);
        }
        let tree = self.base_tree.as_ref().expect("it was just made");
        let root = difference.repository.root();
        let used = self.suspects[at].used.as_ref();
        let roots = used.map_or_else(Vec::new, |used| used.facts.import_roots(root));
        let roots = roots.iter().map(|folder| tree.map(folder));
        Ok(self.wish.project.moved(root, tree.path(), roots))
    }

    fn judge_base(&self, at: usize, trial: &Trial, difference: &Difference) -> AtBase {
        if let Some(why) = self.stray_use(trial.vm, difference) {
            return AtBase::NotRun { why };
        }
        if trial.outcome.is_pass() {
            return AtBase::Passed;
        }
        let message = trial.account.message.clone();
        if !trial.outcome.is_failure() {
            let why = format!("{} there: {message}", trial.outcome.label());
            return AtBase::NotRun { why };
        }
        let alike = |own: &Trial| {
            own.outcome.label() == trial.outcome.label()
                && is_same_failure(&own.account.message, &message)
        };
        let mut own = self.suspects[at].trials.iter();
        if own.any(|own| own.is_watched && alike(own)) {
            AtBase::FailsAlike
        } else {
            AtBase::FailsOtherwise { message }
        }
    }

    /// Why a run at the base was none: it used files of the work tree, or copies of changed ones.
    fn stray_use(&self, vm: VmId, difference: &Difference) -> Option<String> {
        let Ok(facts) = self.read_facts(vm) else {
            return Some("it is not known what it used there".to_owned());
        };
        let usage = facts.to_usage(&difference.ground(SystemTime::now()));
        let mut own = usage.files.iter();
        let own = own.find(|(path, file)| file.has_content() && difference.known.contains(*path));
        if let Some((path, _)) = own {
            return Some(format!("the run at the base used {path} of the work tree"));
        }
        let paths = difference.changes.iter().map(|change| &change.file.path);
        let tree = self.base_tree.as_ref().map(BaseTree::path);
        let copies = usage.elsewhere.iter();
        let copies = copies.filter(|copy| tree.is_none_or(|tree| !copy.starts_with(tree.as_str())));
        let copies: Vec<&String> = copies.collect();
        for path in paths {
            if let Some(copy) = copies
                .iter()
                .find(|copy| unflake_core::intersect::is_copy(path, copy))
            {
                return Some(format!("the run at the base used {copy}, a copy of {path}"));
            }
        }
        None
    }
}

impl Used {
    fn to_usage(&self, difference: &Difference) -> unflake_core::usage::Usage {
        let mut usage = self.facts.to_usage(&difference.ground(self.began));
        usage.is_kernel_watched = self.opened.is_some();
        for path in self.opened.iter().flatten() {
            usage.files.entry(path.clone()).or_default().is_read = true;
        }
        usage
    }
}

impl Difference {
    pub(crate) fn ground(&self, run_began: SystemTime) -> Ground<'_> {
        Ground {
            root: self.repository.root(),
            known: &self.known,
            base_time: self.base_time,
            run_began,
        }
    }
}

/// The same start, watched.
pub(crate) fn watch(start: Command) -> Command {
    match start {
        Command::Start { args, guest, .. } => Command::Start {
            args,
            guest,
            watch: true,
        },
        Command::Collect { .. }
        | Command::Run { .. }
        | Command::Rerun { .. }
        | Command::Twice { .. }
        | Command::Fork { .. }
        | Command::Finish {} => start,
    }
}

/// An error with its causes, in a line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
