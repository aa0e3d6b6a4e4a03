//! Builds, and which of them failures hit: a provenance is a build if it names a job or a revision.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use unflake_core::chart::{Chart, Line};
use unflake_core::quantify::curve::share;
use unflake_core::quantify::period::Period;
use unflake_history::dates;
use unflake_history::store::kept::KeptFailure;
use unflake_history::store::{Store, StoreError};

use crate::board::labels::Said;
use crate::board::snapshot::{Known, Snapshot};
use crate::board::suspicion::span_of;

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
    /// How many runs it has that count.
    pub(crate) runs: u64,
    /// Whether a test failed in its first run there.
    pub(crate) has_failure: bool,
}

impl Builds {
    /// Looks at the runs that came since it looked last.
    pub(crate) fn read(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let last = store.extent()?.run;
        let found = &mut self.found;
        store.scan_after(self.last, &mut |run| {
            let build = found.entry(run.provenance).or_insert(Build {
                begun: run.time,
                runs: 0,
                has_failure: false,
            });
            build.begun = build.begun.min(run.time);
            build.runs += 1;
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

/// Builds of the period, and those that failures hit.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct BuildCounts {
    pub(crate) builds: usize,
    /// In which a test failed at first.
    pub(crate) with_failures: usize,
    /// In which a test failed at first, and nothing says that the product was at fault.
    pub(crate) hit_by_flaky_tests: usize,
    pub(crate) share: Option<f64>,
}

/// One build of the period.
pub(crate) struct Found {
    /// When it began, in days since 1970.
    day: i32,
    has_failure: bool,
    is_hit: bool,
}

impl BuildCounts {
    pub(crate) fn of(builds: &[Found]) -> Self {
        let hit = builds.iter().filter(|one| one.is_hit).count();
        Self {
            builds: builds.len(),
            with_failures: builds.iter().filter(|one| one.has_failure).count(),
            hit_by_flaky_tests: hit,
            share: (!builds.is_empty()).then(|| share(hit, builds.len())),
        }
    }
}

/// The builds of the current period, and which of them flaky tests hit.
pub(crate) fn find(
    store: &dyn Store,
    snapshot: &Snapshot,
    known: &Known,
) -> Result<Vec<Found>, StoreError> {
    let period = known.periods.current.period;
    let (from, to) = (span_of(period.first).0, span_of(period.last).1);
    let provenances = store.provenances()?;
    let is_build = |number: u32| {
        let found = provenances.get(&number);
        found.is_some_and(|(stream, one)| {
            known.has_stream(*stream) && !(one.job.is_empty() && one.revision.is_empty())
        })
    };
    let builds: Vec<(u32, Build)> = snapshot
        .builds
        .between(from, to)
        .filter(|(number, _)| is_build(*number))
        .collect();
    let mut hit = HashSet::new();
    if builds.iter().any(|(_, build)| build.has_failure) {
        for failure in store.failures_between(from, to)? {
            if !is_fault(&snapshot.said, &failure) {
                hit.insert(failure.provenance);
            }
        }
    }
    let to_found = |(number, build): &(u32, Build)| Found {
        day: dates::day_of(build.begun),
        has_failure: build.has_failure,
        is_hit: hit.contains(number),
    };
    Ok(builds.iter().map(to_found).collect())
}

/// Whether anybody says that the product was at fault.
pub(crate) fn is_fault(said: &Said, failure: &KeptFailure) -> bool {
    let run = &failure.run;
    run.bug.is_some()
        || said.faults.contains_key(&run.number)
        || matches!(run.verdict.as_deref(), Some("broken" | "pre-existing"))
}

/// The share of each day's builds that flaky tests hit.
pub(crate) fn chart(builds: &[Found], period: Period) -> Chart {
    let mut days: BTreeMap<i32, (usize, usize)> = BTreeMap::new();
    for build in builds {
        let (hit, all) = days.entry(build.day).or_default();
        *hit += usize::from(build.is_hit);
        *all += 1;
    }
    let points = days
        .into_iter()
        .map(|(day, (hit, all))| (f64::from(day - period.first), share(hit, all)));
    Chart {
        title: "Builds hit by flaky tests".to_owned(),
        across: "days since the period began".to_owned(),
        up: "share of the day's builds".to_owned(),
        lines: vec![Line {
            name: "hit".to_owned(),
            points: points.collect(),
        }],
        marks: Vec::new(),
        is_share: true,
    }
}
