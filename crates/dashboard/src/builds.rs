//! Builds, and which of them failures hit: a provenance is a build if it names a job or a revision.

use std::collections::HashMap;

use unflake_history::sqlite::Sqlite;
use unflake_history::store::StoreError;

/// All provenances that have runs, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builds {
    found: HashMap<u32, Build>,
    /// The last run that was looked at.
    last: i64,
}

/// One provenance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build {
    /// Its first run, in milliseconds since 1970.
    pub(crate) begun: i64,
    /// Whether a test failed in its first run there.
    pub(crate) has_failure: bool,
}

impl Builds {
    /// Looks at the runs that came since it looked last.
    pub(crate) fn read(&mut self, store: &Sqlite) -> Result<(), StoreError> {
        let last = store.extent()?.run;
        let found = &mut self.found;
        store.scan_after(self.last, |run| {
            let build = found.entry(run.provenance).or_insert(Build {
                begun: run.time,
                has_failure: false,
            });
            build.begun = build.begun.min(run.time);
            build.has_failure |= run.is_failure && run.is_first;
        })?;
        self.last = last;
        Ok(())
    }

    /// The builds of a range of times, by the number of their provenance.
    pub(crate) fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (u32, Build)> {
        let inside = self.found.iter().map(|(number, build)| (*number, *build));
        inside.filter(move |(_, build)| (from..=to).contains(&build.begun))
    }
}
