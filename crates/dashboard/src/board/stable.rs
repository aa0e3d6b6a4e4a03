//! The last stable run, and what failed since.
//!
//! A run is what was tested as one: all that names the same revision, or the same job where no revision is known.
//! It is stable if nothing failed in it but what fails as often as it is used to. A run that is much smaller than
//! others says little, and is passed over.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use unflake_history::dates;
use unflake_history::store::kept::KeptFailure;
use unflake_history::store::{Store, StoreError};

use crate::board::builds::is_fault;
use crate::board::snapshot::{Known, Snapshot};
use crate::board::suspicion::{Suspicion, span_of};

/// The last stable run, as people know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StableRun {
    pub(crate) revision: String,
    pub(crate) jobs: Vec<String>,
    /// When it began, in milliseconds since 1970.
    pub(crate) time: i64,
}

/// What failed since the last stable run.
pub(crate) struct Since {
    /// None if no run of the current period was stable: then all its failures are here.
    pub(crate) stable_run: Option<StableRun>,
    /// The first day that was looked at.
    pub(crate) first_day: i32,
    /// In the order of time.
    pub(crate) failures: Vec<KeptFailure>,
}

/// Looks for the last stable run of the current period, from its end.
pub(crate) fn find(
    store: &dyn Store,
    snapshot: &Snapshot,
    known: &Known,
) -> Result<Since, StoreError> {
    let period = known.periods.current.period;
    let mut runs = runs(store, snapshot, known)?.into_iter().peekable();
    let mut usual = Usual::default();
    let mut failures: Vec<KeptFailure> = Vec::new();
    for day in (period.first..=period.last).rev() {
        let (from, to) = span_of(day);
        let mut of_day = store.failures_between(from, to)?;
        of_day.retain(|one| known.has_stream(one.stream));
        of_day.append(&mut failures);
        failures = of_day;
        while let Some(run) = runs.next_if(|run| dates::day_of(run.begun) == day) {
            let mut of_run = failures.iter().filter(|one| run.has(one));
            let mut is_stable = true;
            while let Some(failure) = of_run.next().filter(|_| is_stable) {
                is_stable = usual.includes(store, snapshot, known, failure)?;
            }
            if is_stable {
                // Another run may have begun before this one was over.
                failures.retain(|one| one.run.time >= run.begun && !run.has(one));
                return Ok(Since {
                    stable_run: Some(run.into_stable()),
                    first_day: day,
                    failures,
                });
            }
        }
    }
    Ok(Since {
        stable_run: None,
        first_day: period.first,
        failures,
    })
}

/// What was tested as one.
#[derive(Default)]
struct Run {
    revision: String,
    jobs: Vec<String>,
    provenances: Vec<u32>,
    begun: i64,
    size: u64,
}

impl Run {
    fn has(&self, failure: &KeptFailure) -> bool {
        self.provenances.contains(&failure.provenance)
    }

    fn into_stable(mut self) -> StableRun {
        self.jobs.sort();
        self.jobs.dedup();
        StableRun {
            revision: self.revision,
            jobs: self.jobs,
            time: self.begun,
        }
    }
}

/// The runs of the current period that are large enough, the last first.
fn runs(store: &dyn Store, snapshot: &Snapshot, known: &Known) -> Result<Vec<Run>, StoreError> {
    let period = known.periods.current.period;
    let provenances = store.provenances()?;
    let mut found: BTreeMap<(String, String), Run> = BTreeMap::new();
    let builds = snapshot
        .builds
        .between(span_of(period.first).0, span_of(period.last).1);
    for (number, build) in builds {
        let Some((stream, provenance)) = provenances.get(&number) else {
            continue;
        };
        if !known.has_stream(*stream) {
            continue;
        }
        let key = match (provenance.revision.as_str(), provenance.job.as_str()) {
            ("", "") => continue,
            ("", job) => (String::new(), job.to_owned()),
            (revision, _) => (revision.to_owned(), String::new()),
        };
        let run = found.entry(key).or_insert_with(|| Run {
            revision: provenance.revision.clone(),
            begun: build.begun,
            ..Run::default()
        });
        run.begun = run.begun.min(build.begun);
        run.size += build.runs;
        run.provenances.push(number);
        if !provenance.job.is_empty() {
            run.jobs.push(provenance.job.clone());
        }
    }
    let mut runs: Vec<Run> = found.into_values().collect();
    let mut sizes: Vec<u64> = runs.iter().map(|run| run.size).collect();
    sizes.sort_unstable();
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    runs.retain(|run| run.size * 2 >= usual);
    runs.sort_by_key(|run| std::cmp::Reverse(run.begun));
    Ok(runs)
}

/// Which failures are nothing new. What was found of a test and a day is remembered.
#[derive(Default)]
struct Usual(HashMap<(usize, i32), bool>);

impl Usual {
    fn includes(
        &mut self,
        store: &dyn Store,
        snapshot: &Snapshot,
        known: &Known,
        failure: &KeptFailure,
    ) -> Result<bool, StoreError> {
        let is_fault = is_fault(&snapshot.said, failure);
        let Some(place) = known.place(failure.test).filter(|_| !is_fault) else {
            return Ok(false);
        };
        let day = dates::day_of(failure.run.time);
        if let Some(found) = self.0.get(&(place, day)) {
            return Ok(*found);
        }
        let suspicion = Suspicion::of(store, known, place, day)?;
        let is_usual = suspicion.is_some_and(|one| !one.stands_out());
        self.0.insert((place, day), is_usual);
        Ok(is_usual)
    }
}
