//! The checkout of the base: it is made ready to run once for all suspects of a session, and what came of it is kept.

use std::iter;
use std::time::Instant;

use camino::Utf8Path;
use unflake_core::blame::question::{BaseEnvironment, Heard};

use super::setup;
use crate::blame::comparison::chain;
use crate::files::siblings::Siblings;
use crate::framework::project::Project;
use crate::git::difference::Difference;
use crate::git::worktree::BaseTree;
use crate::lab::session::{Halt, Session};
use crate::vm::errand::Limit;

/// A base that can run.
pub(crate) struct Base {
    /// Its files.
    tree: BaseTree,
    /// The project there.
    project: Project,
    /// What it runs with.
    environment: BaseEnvironment,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unready {
    /// It cannot be made to run.
    CannotRun(String),
    /// It was not ready in the time.
    TooSlow(String),
}

impl Unready {
    /// Why, in words.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::CannotRun(why) | Self::TooSlow(why) => why,
        }
    }

    /// What the question is told.
    pub(crate) fn heard(&self) -> Heard {
        let why = self.why().to_owned();
        match self {
            Self::CannotRun(_) => Heard::BaseCannotRun { why },
            Self::TooSlow(_) => Heard::BaseTooSlow { why },
        }
    }
}

impl Session {
    /// The checkout of the base, once there is one that can run.
    pub(crate) fn base_tree(&self) -> Option<&BaseTree> {
        let base = self.base.as_ref()?.as_ref().ok();
        base.map(|base| &base.tree)
    }

    /// What the base runs with, as far as that is known.
    pub(super) fn base_environment(&self) -> BaseEnvironment {
        match &self.base {
            Some(Ok(base)) => base.environment.clone(),
            Some(Err(_)) | None => BaseEnvironment::default(),
        }
    }

    /// The project as it was at the base. It is made ready at the first call.
    pub(super) fn project_at_base(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Result<Project, Unready>, Halt> {
        if self.base.is_none() {
            let limit = Limit {
                interrupter: self.fleet.interrupter(),
                deadline,
            };
            let difference = self.known_difference();
            let difference = difference.expect("only where there is a base");
            self.base = Some(self.make_base(&difference, &limit)?);
        }
        let base = self.base.as_ref().expect("it was just made");
        Ok(base
            .as_ref()
            .map(|base| base.project.clone())
            .map_err(Unready::clone))
    }

    fn make_base(
        &self,
        difference: &Difference,
        limit: &Limit,
    ) -> Result<Result<Base, Unready>, Halt> {
        let (repository, commit) = (&difference.repository, &difference.base.commit);
        let siblings = Siblings::of(repository.root().as_std_path(), Some(self.began));
        let surround = |tree: &Utf8Path| siblings.link_beside(tree.as_std_path());
        let tree = match BaseTree::check_out(repository, commit, &surround) {
            Ok(tree) => tree,
            Err(error) => return Ok(Err(Unready::CannotRun(chain(&error)))),
        };
        let folder = tree.map(self.home.project.folder());
        if !folder.is_dir() {
            let why = format!("it has no folder {}", self.home.project.folder());
            return Ok(Err(Unready::CannotRun(why)));
        }
        let given = setup::interpreter_in(&folder, tree.path());
        if let Some(command) = self.setup()
            && let Err(unready) = setup::run(&command, &folder, limit)?
        {
            return Ok(Err(unready));
        }
        let (project, environment) = match &self.home.project {
            Project::Maven(project) => {
                let cache = self.fleet.folder().join("base-build");
                match project.built_in(&folder, &cache) {
                    Ok(project) => (Project::Maven(project), BaseEnvironment::default()),
                    Err(error) => {
                        let why = format!("it cannot be built there: {}", chain(&error));
                        return Ok(Err(Unready::CannotRun(why)));
                    }
                }
            }
            Project::Pytest(project) => {
                let project =
                    project.moved(difference.repository.root(), tree.path(), iter::empty());
                let (python, environment) = if self.setup().is_some() {
                    let python = setup::interpreter_in(&folder, tree.path());
                    let made = python.as_deref().filter(|_| given.is_none());
                    let environment = setup::environment(made, difference);
                    (python, environment)
                } else {
                    (None, BaseEnvironment::default())
                };
                let project = Project::Pytest(project.with_python(python));
                (project.with_paths_that_exist(self.listed()), environment)
            }
        };
        Ok(Ok(Base {
            tree,
            project,
            environment,
        }))
    }

    /// The user's command that makes a checkout of the base ready.
    fn setup(&self) -> Option<String> {
        self.wish.against.as_ref()?.setup.clone()
    }
}
