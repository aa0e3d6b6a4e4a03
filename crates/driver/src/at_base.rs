//! A suspect's run at the base: how it is made, and when it says nothing about the base.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use camino::Utf8Path;
use unflake_core::comparison::AtBase;
use unflake_core::intersect::is_copy;
use unflake_core::trial::{Rung, Trial};
use unflake_core::usage::Usage;

use crate::comparing::{chain, fails_alike, watch};
use crate::difference::Difference;
use crate::project::Project;
use crate::session::{Halt, Session};
use crate::start_error::StartError;
use crate::worktree::BaseTree;

impl Session {
    /// Runs a suspect in a checkout of the base.
    pub(crate) fn check_base(
        &mut self,
        at: usize,
        difference: &Difference,
    ) -> Result<AtBase, Halt> {
        let since = Instant::now();
        let project = match self.project_at_base(at, difference) {
            Ok(project) => project,
            Err(why) => return Ok(AtBase::NotRun { why }),
        };
        let test = self.suspects[at].test.clone();
        let tree = self.base_tree.as_ref().expect("the project is in it");
        let setup = self.wish.project.setup(self.listed());
        let setup = setup.moved(difference.repository.root(), tree.path());
        let Some(start) = project.start_alone(&setup, &test) else {
            let why = "its file is not there".to_owned();
            return Ok(AtBase::NotRun { why });
        };
        let start = watch(start);
        let process = project.process(&self.fleet.folder(), &start);
        let process = process.map_err(StartError::Scratch)?;
        let vm = self.fleet.spawn(process, Some(start))?;
        self.watched_vms.insert(vm);
        let at_base = if let Some(said) = self.await_test(at, vm)? {
            let last = said.trim_end().lines().last();
            let last = last.unwrap_or("the test is not there").trim();
            let why = format!("{} could not list it there: {last}", project.framework());
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
        if let Project::Maven(project) = &self.wish.project {
            let folder = tree.map(&project.folder);
            let built = project.built_in(&folder, &self.fleet.folder().join("base-build"));
            return built
                .map(Project::Maven)
                .map_err(|error| format!("it cannot be built there: {}", chain(&error)));
        }
        let used = self.suspects[at].used.as_ref();
        let roots = used.map_or_else(Vec::new, |used| used.facts.import_roots(root));
        let roots = roots.iter().map(|folder| tree.map(folder));
        Ok(self.wish.project.moved(root, tree.path(), roots))
    }

    fn judge_base(&mut self, at: usize, trial: &Trial, difference: &Difference) -> AtBase {
        let Ok(facts) = self.read_facts(trial.vm) else {
            let why = "it is not known what it used there".to_owned();
            return AtBase::NotRun { why };
        };
        let usage = facts.to_usage(&difference.ground(SystemTime::now()));
        self.suspects[at].used_at_base = Some(facts);
        if let Some(why) = self.stray_use(&usage, difference) {
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
        let alike = |own: &Trial| fails_alike(own, trial);
        // Alike in the suite too: being watched may itself be what makes both fail.
        let trials = &self.suspects[at].trials;
        let mut watched = trials.iter().filter(|own| own.is_watched);
        let is_alike = watched.any(alike) && trials.first().is_some_and(alike);
        // What nobody followed may have used the work tree there, and failed because of it.
        let unseen = usage.unfollowed.iter().chain(&usage.missed).next();
        match unseen {
            Some(what) if is_alike => AtBase::NotRun {
                why: format!("it failed alike, but what it used there is not known: {what}"),
            },
            None if is_alike => AtBase::FailsAlike,
            Some(_) | None => AtBase::FailsOtherwise { message },
        }
    }

    /// Why a run at the base was none of the base, if it was none.
    fn stray_use(&self, usage: &Usage, difference: &Difference) -> Option<String> {
        if let Some(path) = used_in_work_tree(usage, difference) {
            return Some(format!("the run at the base used {path} of the work tree"));
        }
        let tree = self.base_tree.as_ref().map(BaseTree::path);
        if let Some((copy, path)) = used_copy(usage, difference, tree) {
            return Some(format!("the run at the base used {copy}, a copy of {path}"));
        }
        None
    }
}

/// A file or folder of the work tree that a run at the base used.
///
/// What git does not know there, a virtual environment for example, is the same for both.
fn used_in_work_tree(usage: &Usage, difference: &Difference) -> Option<String> {
    let is_known = |path: &&String| {
        let mut changes = difference.changes.iter();
        difference.known.contains(*path) || changes.any(|change| change.file.path == **path)
    };
    let has_known = |folder: &&String| {
        let is_inside = |path: &String| {
            let rest = path.strip_prefix(folder.as_str());
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        difference.known.iter().any(is_inside)
    };
    let file = usage.files.keys().find(is_known);
    file.or_else(|| usage.listed.iter().find(has_known))
        .cloned()
}

/// A file elsewhere that a run at the base used and that may hold what changed: a copy of a changed
/// file, or of any file of a project that is installed.
fn used_copy<'a>(
    usage: &'a Usage,
    difference: &'a Difference,
    tree: Option<&Utf8Path>,
) -> Option<(&'a String, &'a String)> {
    let name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let changed = difference.changes.iter().map(|change| &change.file.path);
    let mut ours: BTreeMap<&str, Vec<(&String, bool)>> = BTreeMap::new();
    for path in &difference.known {
        ours.entry(name(path)).or_default().push((path, false));
    }
    for path in changed {
        ours.entry(name(path)).or_default().push((path, true));
    }
    let copies = usage.elsewhere.iter();
    let copies = copies.filter(|copy| tree.is_none_or(|tree| !copy.starts_with(tree.as_str())));
    for copy in copies {
        let is_installed = copy.contains("/site-packages/") || copy.contains("/dist-packages/");
        let namesakes = ours.get(name(copy)).into_iter().flatten();
        for (path, is_changed) in namesakes {
            if (*is_changed || is_installed) && is_copy(path, copy) {
                return Some((copy, path));
            }
        }
    }
    None
}
