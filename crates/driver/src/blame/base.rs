//! The checkout of the base: it is made ready to run once for all suspects of a session, and what came of it is kept.

use std::collections::BTreeSet;
use std::iter;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::blame::question::{BaseEnvironment, Heard};

use super::{environment, setup};
use crate::blame::comparison::chain;
use crate::files::siblings::Siblings;
use crate::framework::project::Project;
use crate::framework::pytest::interpreter::package_folders;
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
    /// What of the user's environment it has its own of: whoever uses that there has gone round its own.
    replaced: Vec<Utf8PathBuf>,
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

    /// A file of the user's environment that is used at the base, where the base has its own of it.
    pub(super) fn replaced_file<'a>(&self, used: &'a BTreeSet<String>) -> Option<&'a String> {
        let base = self.base.as_ref()?.as_ref().ok()?;
        let mut used = used.iter();
        used.find(|file| {
            let mut replaced = base.replaced.iter();
            replaced.any(|one| Utf8Path::new(file.as_str()).starts_with(one))
        })
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
        let Some(git) = difference.git.as_ref() else {
            let why = "only the digests of its files are known".to_owned();
            return Ok(Err(Unready::CannotRun(why)));
        };
        let siblings = Siblings::of(difference.root.as_std_path(), Some(self.began));
        let surround = |tree: &Utf8Path| siblings.link_beside(tree.as_std_path());
        let tree = match BaseTree::check_out(&git.repository, &git.commit, &surround) {
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
        let (project, environment, replaced) = match &self.home.project {
            Project::Maven(project) => {
                let cache = self.fleet.folder().join("base-build");
                match project.built_in(&folder, &cache) {
                    Ok(project) => {
                        let environment = BaseEnvironment::default();
                        (Project::Maven(project), environment, Vec::new())
                    }
                    Err(error) => {
                        let why = format!("it cannot be built there: {}", chain(&error));
                        return Ok(Err(Unready::CannotRun(why)));
                    }
                }
            }
            Project::Pytest(project) => {
                let project = project.moved(&difference.root, tree.path(), iter::empty());
                let place = environment::Place {
                    project: &project,
                    difference,
                    tree: &tree,
                    run: &self.fleet.folder(),
                };
                let (own, environment) = self.own_environment(&place, given.is_some(), limit)?;
                let (python, replaced) = own.map(|own| (own.python, own.replaced)).unzip();
                let project = Project::Pytest(project.with_python(python));
                let project = project.with_paths_that_exist(self.listed());
                (project, environment, replaced.unwrap_or_default())
            }
        };
        Ok(Ok(Base {
            tree,
            project,
            environment,
            replaced,
        }))
    }

    /// The environment of the base's own, if it has one by the user's command or can be given one; `is_given` if the
    /// checkout had one before the command.
    fn own_environment(
        &self,
        place: &environment::Place<'_>,
        is_given: bool,
        limit: &Limit,
    ) -> Result<(Option<environment::Own>, BaseEnvironment), Halt> {
        if self.setup().is_none() {
            return environment::make(place, &limit.part(2));
        }
        let python = setup::interpreter_in(&place.project.folder, place.tree.path());
        let made = python.as_deref().filter(|_| !is_given);
        let environment = setup::environment(made, place.difference);
        let mut replaced = package_folders(&place.project.python);
        // Where nothing moved, the user's packages are those of the base.
        replaced.retain(|_| !environment.settled.is_empty());
        let own = python.map(|python| environment::Own { python, replaced });
        Ok((own, environment))
    }

    /// The user's command that makes a checkout of the base ready.
    fn setup(&self) -> Option<String> {
        self.wish.against.as_ref()?.setup.clone()
    }
}
