//! One test: its last runs, its rate over time, its failures by signature, and what fails with it.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use unflake_core::owners::Owners;
use unflake_core::quantify::anomaly::BASELINE_DAYS;
use unflake_core::quantify::change_point::ChangePoint;
use unflake_core::quantify::curve::share;
use unflake_core::quantify::normal::Level;
use unflake_core::quantify::sample::Day;
use unflake_core::quantify::unstable::when;
use unflake_history::book::Entry;
use unflake_history::dates;
use unflake_history::store::kept::KeptRun;
use unflake_history::store::{Store, StoreError};

use crate::board::labels::Fault;
use crate::board::quarantine::Resident;
use crate::board::snapshot::{Known, Snapshot};
use crate::board::suspicion::span_of;
use crate::board::tests_list::{Row, to_row};

/// So many of its last runs are shown, and so many of its failures are looked at.
const RUNS: u32 = 200;
const FAILURES: u32 = 1000;

/// So many companions are shown.
const COMPANIONS: usize = 10;

/// All that the page of a test shows.
#[derive(Debug, Serialize)]
pub(crate) struct OneTest {
    #[serde(flatten)]
    pub(crate) row: Row,
    pub(crate) period: String,
    /// The newest first.
    pub(crate) last_runs: Vec<Shown>,
    /// The days of both periods.
    pub(crate) days: Vec<DayShown>,
    pub(crate) change: Option<Change>,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) fails_with: Vec<Companion>,
    pub(crate) quarantine: Option<Resident>,
    pub(crate) command: Option<String>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) run: i64,
    pub(crate) time: i64,
    pub(crate) outcome: String,
    pub(crate) attempt: u32,
    pub(crate) seconds: Option<f64>,
    pub(crate) revision: String,
    pub(crate) branch: String,
    pub(crate) release: String,
    pub(crate) environment: String,
    pub(crate) job: String,
    pub(crate) signature: Option<String>,
    pub(crate) verdict: Option<String>,
    pub(crate) bug: Option<String>,
    pub(crate) fault: Option<Fault>,
}

/// A day with runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DayShown {
    pub(crate) day: String,
    pub(crate) runs: u32,
    pub(crate) failures: u32,
    pub(crate) flaky_failures: u32,
    #[serde(skip)]
    pub(crate) number: i32,
}

/// When its rate changed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    pub(crate) day: String,
    pub(crate) earliest: String,
    pub(crate) latest: String,
    pub(crate) before: f64,
    pub(crate) after: f64,
    #[serde(skip)]
    pub(crate) number: i32,
}

/// Failures that look alike.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Signature {
    #[serde(rename = "signature")]
    pub(crate) text: String,
    pub(crate) count: usize,
    pub(crate) last: i64,
    pub(crate) example: String,
}

/// A test that fails in the same reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Companion {
    pub(crate) number: u32,
    pub(crate) test: String,
    /// Of the reports of the last month in which this test failed, how many that one failed in too.
    pub(crate) together: usize,
    pub(crate) of: usize,
    pub(crate) share: f64,
}

impl OneTest {
    /// Reads what is known of the test with this number; nothing if there is none.
    pub(crate) fn read(
        store: &dyn Store,
        snapshot: &Snapshot,
        owners: &Owners,
        number: u32,
    ) -> Result<Option<Self>, StoreError> {
        let Some(known) = &*snapshot.known else {
            return Ok(None);
        };
        let Some(place) = known.place(number) else {
            return Ok(None);
        };
        let entry = &known.entries[place];
        let last_runs = store.last_runs_of(&entry.numbers, RUNS)?;
        let mut days: Vec<Day> = entry.before.clone();
        days.extend(&entry.course.days);
        let flagged = known.instabilities[place].flagged;
        let change =
            flagged.and_then(|flagged| when(&entry.course, &entry.before, flagged, Level::DEFAULT));
        let quarantine = Resident::of(store, snapshot, entry)?;
        Ok(Some(Self {
            row: to_row(snapshot, known, owners, place),
            period: known.periods.named.sentence(),
            last_runs: last_runs
                .into_iter()
                .map(|run| to_shown(run, snapshot))
                .collect(),
            days: days.into_iter().map(to_day).collect(),
            change: change.map(to_change),
            signatures: signatures(store, entry)?,
            fails_with: companions(store, known, entry)?,
            quarantine,
            command: command(entry),
        }))
    }
}

/// How to run it again under unflake's eyes. A name out of a report is none that a framework takes.
fn command(entry: &Entry) -> Option<String> {
    let name = &entry.name.name;
    if !entry.name.is_own || name.contains(char::is_control) {
        return None;
    }
    let quoted = format!("'{}'", name.replace('\'', "'\\''"));
    Some(format!("unflake run --fresh 20 -- {quoted}"))
}

fn to_shown(run: KeptRun, snapshot: &Snapshot) -> Shown {
    Shown {
        fault: snapshot.said.faults.get(&run.number).cloned(),
        run: run.number,
        time: run.time,
        outcome: run.outcome,
        attempt: run.attempt,
        #[expect(clippy::cast_precision_loss, reason = "no run takes years")]
        seconds: run.duration.map(|micros| micros as f64 / 1e6),
        revision: run.provenance.revision,
        branch: run.provenance.branch,
        release: run.provenance.release,
        environment: run.provenance.environment,
        job: run.provenance.job,
        signature: run.signature,
        verdict: run.verdict,
        bug: run.bug,
    }
}

fn to_day(day: Day) -> DayShown {
    DayShown {
        day: dates::to_text(day.day),
        runs: day.runs,
        failures: day.failures,
        flaky_failures: day.flaky,
        number: day.day,
    }
}

fn to_change(change: ChangePoint) -> Change {
    Change {
        day: dates::to_text(change.day),
        earliest: dates::to_text(change.earliest),
        latest: dates::to_text(change.latest),
        before: change.before.rate().unwrap_or(0.0),
        after: change.after.rate().unwrap_or(0.0),
        number: change.day,
    }
}

/// The kinds of its failures, the commonest first.
fn signatures(store: &dyn Store, entry: &Entry) -> Result<Vec<Signature>, StoreError> {
    let failures = store.failures_of(&entry.numbers, FAILURES)?;
    Ok(group(failures))
}

/// Failures, the newest first, by kind.
fn group(failures: Vec<KeptRun>) -> Vec<Signature> {
    let mut found: Vec<Signature> = Vec::new();
    // Old failures have no fingerprint, and two fingerprints can read alike: people see one kind then.
    let (mut by_fingerprint, mut by_text) = (HashMap::new(), HashMap::new());
    for run in failures {
        let text = run.signature.unwrap_or_default();
        let fingerprint = run.fingerprint;
        let known = fingerprint.as_ref().and_then(|one| by_fingerprint.get(one));
        let place = known.or_else(|| by_text.get(&text)).copied();
        let place = place.unwrap_or_else(|| {
            found.push(Signature {
                text: text.clone(),
                count: 0,
                last: run.time,
                example: run.example.unwrap_or_default(),
            });
            found.len() - 1
        });
        found[place].count += 1;
        by_text.entry(text).or_insert(place);
        if let Some(fingerprint) = fingerprint {
            by_fingerprint.entry(fingerprint).or_insert(place);
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse((one.count, one.last)));
    found
}

/// The tests that failed in the same reports of the last month.
fn companions(
    store: &dyn Store,
    known: &Known,
    entry: &Entry,
) -> Result<Vec<Companion>, StoreError> {
    let last = known.periods.current.period.last;
    let span = (span_of(last - BASELINE_DAYS).0, span_of(last).1);
    let places = store.failure_places(span.0, span.1)?;
    let own: HashSet<u32> = places
        .iter()
        .filter(|(test, _)| entry.numbers.contains(test))
        .map(|(_, report)| *report)
        .collect();
    let mut together: HashMap<u32, usize> = HashMap::new();
    for (test, report) in &places {
        if own.contains(report) && !entry.numbers.contains(test) {
            *together.entry(*test).or_default() += 1;
        }
    }
    let companions = together.into_iter().filter(|(_, count)| *count >= 2);
    let mut found: Vec<Companion> = companions
        .filter_map(|(test, count)| {
            let other = known.entry(test)?;
            Some(Companion {
                number: other.numbers[0],
                test: other.name.name.clone(),
                together: count,
                of: own.len(),
                share: share(count, own.len()),
            })
        })
        .collect();
    found.sort_by(|one, other| {
        other
            .together
            .cmp(&one.together)
            .then_with(|| one.test.cmp(&other.test))
    });
    found.truncate(COMPANIONS);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use unflake_history::run::Provenance;

    use super::*;

    fn failure(text: &str, fingerprint: Option<&str>) -> KeptRun {
        KeptRun {
            number: 1,
            time: 5,
            outcome: "failed".to_owned(),
            attempt: 1,
            duration: None,
            provenance: Provenance::default(),
            signature: Some(text.to_owned()),
            example: None,
            bug: None,
            verdict: None,
            fingerprint: fingerprint.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn failures_are_one_kind_by_their_fingerprint_and_those_of_old_stores_by_their_words() {
        let failures = vec![
            failure("no user anna", Some("f1")),
            failure("no user bob", Some("f1")),
            failure("no route", Some("f2")),
            failure("no user bob", None),
            failure("no route", Some("f3")),
            failure("no memory", None),
        ];
        let found = group(failures);
        let counts: Vec<(&str, usize)> = found
            .iter()
            .map(|one| (one.text.as_str(), one.count))
            .collect();
        assert_eq!(
            counts,
            [("no user anna", 3), ("no route", 2), ("no memory", 1)]
        );
    }
}
