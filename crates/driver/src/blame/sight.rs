//! What a failing run here used of the changes: as the system saw it in the suite, as it was watched, as its own account
//! tells; and what of it nobody saw.

use std::collections::BTreeSet;
use std::fs;

use camino::Utf8Path;
use unflake_core::failure::condense;
use unflake_core::intersect::{Intersection, Touch, Unknown, on_stack};
use unflake_core::usage::Usage;

use super::side::Written;
use super::sides::Sides;
use crate::framework::project::Project;
use crate::git::clutter::{Clutter, NAMES};
use crate::git::difference::Difference;
use crate::git::repository::GitError;
use crate::lab::session::Session;
use crate::usage::lookout::Outlook;

/// What Maven and its usual plugins put into a work tree, and editors beside it: the base has its own.
const BUILT: [&str; 22] = [
    "--exclude=**/target/classes/",
    "--exclude=**/target/test-classes/",
    "--exclude=**/target/generated-sources/",
    "--exclude=**/target/generated-test-sources/",
    "--exclude=**/target/generated-resources/",
    "--exclude=**/target/maven-status/",
    "--exclude=**/target/maven-archiver/",
    "--exclude=**/target/maven-shared-archive-resources/",
    "--exclude=**/target/surefire-reports/",
    "--exclude=**/target/failsafe-reports/",
    "--exclude=**/target/surefire/",
    "--exclude=**/target/site/",
    "--exclude=**/target/reports/",
    "--exclude=**/target/apidocs/",
    "--exclude=**/target/*.jar",
    "--exclude=**/target/*.war",
    "--exclude=**/target/*.exec",
    "--exclude=*.iml",
    "--exclude=.classpath",
    "--exclude=.project",
    "--exclude=.settings/",
    "--exclude=dependency-reduced-pom.xml",
];

impl Session {
    /// Opens the system's eye on the changes, while the first VM starts.
    pub(crate) fn look_out(&mut self) {
        let project = &self.wish.project;
        // A JVM runs what a build has made of the tree: nobody knows of what it was made.
        if let (Some(against), Some(_)) = (&self.wish.against, project.python()) {
            self.outlook = Outlook::begin(project.folder(), against);
        }
    }

    /// What was used of the changes when a suspect failed; `None` if nobody looked.
    pub(super) fn used_at_failure(&self, at: usize) -> Option<Intersection> {
        let lookout = self.outlook.there()?;
        let opened = self.suspects[at].opened.as_ref()?;
        let search_path = self.listed().search_path.as_ref()?;
        let difference = self.known_difference()?;
        Some(lookout.intersection(opened, &difference, search_path, &self.rules()))
    }

    /// What a run that has just been made here used of the changes: what was watched, and what stands on the stack of its failure.
    pub(super) fn used_here(&self, at: usize, sides: &Sides, written: &Written) -> Intersection {
        let mut found = self.watched_here(at, sides, written);
        let last = self.suspects[at].trials.last();
        let (Some(difference), Some(last)) = (self.known_difference(), last) else {
            return found;
        };
        let mut account = last.account.clone();
        condense(&mut account);
        for touch in on_stack(&difference.changes, &account.frames, &self.rules()) {
            let is_known = |one: &Touch| one.path == touch.path && one.function == touch.function;
            if !found.touches.iter().any(is_known) {
                found.touches.push(touch);
            }
        }
        // A JVM tells what it used before each message, and this one sent none after its test.
        let is_cut = last.outcome.ends_vm() && self.follows_only_code();
        if is_cut && !found.unknowns.contains(&Unknown::NotWatched) {
            found.unknowns.push(Unknown::NotWatched);
        }
        found
    }

    fn follows_only_code(&self) -> bool {
        matches!(self.home.project, Project::Maven(_))
    }

    /// What a run used, with the files that an earlier run may have left where nobody sees who uses them.
    pub(super) fn with_left_behind(
        &self,
        mut usage: Usage,
        difference: &Difference,
        tree: Option<&Utf8Path>,
    ) -> Usage {
        if self.follows_only_code() {
            match self.left_behind(difference, tree) {
                Ok(left) => usage.left = left,
                Err(error) => {
                    let what = format!("what earlier runs left: {error}");
                    usage.missed.insert(what);
                }
            }
        }
        usage
    }

    /// The files that git does not track, that were there before this run, and that the base lacks or has otherwise.
    fn left_behind(
        &self,
        difference: &Difference,
        tree: Option<&Utf8Path>,
    ) -> Result<BTreeSet<String>, GitError> {
        let Some(git) = &difference.git else {
            return Ok(difference.left.clone());
        };
        let root = git.repository.root();
        let against = self.wish.against.as_ref();
        let reports = against.map_or(&[][..], |against| &against.reports);
        let clutter = Clutter::new(root, reports, None);
        let listed = ["ls-files", "-z", "--others"];
        let listed = [&listed[..], &NAMES, &BUILT].concat();
        let listed = git.repository.run(&listed)?;
        let names = listed.split(|byte| *byte == 0).filter(|it| !it.is_empty());
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
        let is_older = |name: &String| {
            let data = fs::symlink_metadata(root.join(name));
            let came = data.and_then(|data| data.created().or_else(|_| data.modified()));
            came.is_ok_and(|came| came <= self.began)
        };
        let is_at_base = |name: &String| {
            tree.is_some_and(|tree| has_same_bytes(&root.join(name), &tree.join(name)))
        };
        let left = names.filter(|name| {
            // What git does not ignore either is a change.
            let is_told = difference.known.contains(name) || clutter.is_report(name);
            !is_told && is_older(name) && !is_at_base(name)
        });
        Ok(left.collect())
    }
}

fn has_same_bytes(one: &Utf8Path, other: &Utf8Path) -> bool {
    let size = |path: &Utf8Path| fs::metadata(path).map(|data| data.len()).ok();
    size(one).is_some()
        && size(one) == size(other)
        && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}
