//! What changed since the base, for a session; and what is needed to hold a run against it.

use std::sync::Arc;
use std::time::SystemTime;

use camino::Utf8PathBuf;
use unflake_core::event::Note;

use crate::blame::memory::LastPass;
use crate::git::difference::{Difference, DifferenceError, Workshop};
use crate::git::repository::Repository;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::protocol::messages::Command;
use crate::usage::facts::Ground;

/// What is known about the latest changes.
pub(crate) enum Changes {
    /// Nobody wants to know.
    Unwanted,
    /// They have not been looked at yet.
    Unread,
    /// They cannot be known; it was said why.
    Unknowable {
        /// Why not.
        why: String,
        /// The command that would help, if there is one.
        fetch: Option<String>,
    },
    /// They are known.
    Known(Arc<Difference>),
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
            Ok(Some(repository)) => crate::git::difference::choose_base(&repository, against)
                .map(drop)
                .map_err(DifferenceError::from),
            Ok(None) => Err(DifferenceError::NoRepository { folder }),
            Err(error) => Err(error.into()),
        };
        found.map_err(|error| Halt::Error(RunError::Against(error)))
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
                    let (reason, command) = (why.clone(), fetch.clone());
                    self.note(Note::NoBase { why, fetch });
                    Changes::Unknowable {
                        why: reason,
                        fetch: command,
                    }
                }
            };
        }
        match &self.changes {
            Changes::Known(difference) => Some(Arc::clone(difference)),
            Changes::Unwanted | Changes::Unread | Changes::Unknowable { .. } => None,
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
            return Ok(self.last_pass().map(Difference::from));
        };
        let folder = self.fleet.folder();
        let workshop = Workshop {
            python: project.python(),
            folder: &folder,
        };
        Difference::read(repository, against, &workshop).map(Some)
    }

    /// The last run that passed, where no git tells what changed. Tests that are told from another folder use files that
    /// nobody looked at.
    fn last_pass(&self) -> Option<LastPass> {
        let against = self.wish.against.as_ref()?;
        let memory = against.memory.as_ref().filter(|_| against.base.is_none())?;
        let root = Utf8PathBuf::from(self.home_path(&self.listed().root));
        let last = memory.last_pass(&self.installed()?)?;
        (root.canonicalize_utf8().ok()? == last.root).then_some(last)
    }
}

impl Difference {
    pub(crate) fn ground(&self, run_began: SystemTime) -> Ground<'_> {
        Ground {
            root: &self.root,
            known: &self.known,
            hidden: &self.hidden,
            base_tree: None,
            run_began,
            opened: None,
            test: None,
        }
    }
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
