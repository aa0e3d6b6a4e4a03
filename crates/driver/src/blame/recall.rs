//! The history's word: how often a test failed so at the base and before it, under the names that it had there.

use camino::Utf8Path;
use unflake_core::blame::Known;
use unflake_core::failure::Fingerprint;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use super::renames::{Renames, under_name};
use crate::blame::memory::AskedFailure;
use crate::git::blob::text_at;
use crate::git::difference::{Difference, Kept};
use crate::lab::session::Session;

impl Session {
    /// What the history knows of the failure at the base and before it.
    pub(super) fn recall_failure(&self, at: usize) -> Option<Known> {
        let (memory, difference) = (self.memory()?, self.known_difference()?);
        let git = difference.git.as_ref()?;
        let first = self.suspects[at].trials.first()?;
        let base = &git.commit;
        let is_before = |commit: &str| {
            let arguments = ["merge-base", "--is-ancestor", commit, base.as_str()];
            commit == base || git.repository.run(&arguments).is_ok()
        };
        memory.known(&AskedFailure {
            names: &self.names_of(first, &difference, git),
            commits: &is_before,
            installed: &self.installed()?,
        })
    }

    /// The names of a failing test, old ones too, with the failure as it is told under each.
    fn names_of(
        &self,
        first: &Trial,
        difference: &Difference,
        git: &Kept,
    ) -> Vec<(TestId, Fingerprint)> {
        let project = &self.home.project;
        let renames = Renames {
            project,
            tests_root: Utf8Path::new(&self.listed().root),
            difference,
        };
        let then = |path: &str| {
            let text = text_at(&git.repository, &git.commit, path);
            // Without an answer nobody knows an old name, and nothing is excused by it.
            String::from_utf8(text.ok()??).ok()
        };
        let test = &first.test;
        let old = renames.old_names(test, then);
        let names = std::iter::once(test.clone()).chain(old);
        let told = names.map(|name| {
            let account = under_name(first.account.clone(), project, (test, &name));
            let fingerprint = Fingerprint::of(&first.outcome, &account);
            (name, fingerprint)
        });
        told.collect()
    }
}
