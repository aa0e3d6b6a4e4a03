//! The failures of a day, or since the last stable run, the most suspicious first (Rehman 2019, 5.1 and Figure 12).
//!
//! The paper's rule forgets a fault that lasts: after some bad days its failures are what is usual. So a test that
//! has become unstable by the evidence stands in the first list too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use unflake_core::owners::Owners;
use unflake_core::quantify::anomaly::BASELINE_DAYS;
use unflake_core::quantify::cluster::{self, Bond, Failing};
use unflake_core::quantify::interval::wilson;
use unflake_core::quantify::normal::Level;
use unflake_history::book::Entry;
use unflake_history::dates;
use unflake_history::store::kept::KeptFailure;
use unflake_history::store::{Store, StoreError};

use crate::board::labels::{FIRST_LIST, Fault, SECOND_LIST};
use crate::board::score::Score;
use crate::board::snapshot::{Known, Snapshot};
use crate::board::stable::{self, StableRun};
use crate::board::suspicion::{Suspicion, span_of};
use crate::http::problem::Problem;
use crate::http::query::Fields;

/// So many lines of each list are shown on a page.
const SHOWN: usize = 200;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) which: Which,
    /// Only failures there.
    pub(crate) environment: Option<String>,
    /// So many clusters of each list at most.
    pub(crate) most: usize,
}

impl Wanted {
    /// What a query asks for.
    pub(crate) fn parse(fields: &Fields) -> Result<Self, Problem> {
        let which = match (fields.day("day")?, fields.text("since")?) {
            (None, None) => Which::LastDay,
            (Some(day), None) => Which::Day(day),
            (None, Some("stable")) => Which::SinceStable,
            (None, Some(_)) => return Err(Problem::Bad("`since` is one of: stable".to_owned())),
            (Some(_), Some(_)) => {
                return Err(Problem::Bad(
                    "`day` and `since` exclude each other".to_owned(),
                ));
            }
        };
        Ok(Self {
            which,
            most: SHOWN,
            environment: fields.text("environment")?.map(ToOwned::to_owned),
        })
    }
}

/// The failures of when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Which {
    /// The last day with runs.
    #[default]
    LastDay,
    /// A day, in days since 1970.
    Day(i32),
    /// All since the last stable run.
    SinceStable,
}

/// The board of a day, or since the last stable run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Triage {
    /// None if it is about more than a day.
    pub(crate) day: Option<String>,
    /// The first day, if it is about what failed since the last stable run.
    pub(crate) since: Option<String>,
    /// None too if there was no such run lately.
    pub(crate) stable_run: Option<StableRun>,
    /// The last day with runs.
    pub(crate) last_day: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) environment: Option<String>,
    /// All environments in which tests failed.
    pub(crate) environments: Vec<String>,
    pub(crate) potential_product_faults: List,
    pub(crate) potential_flaky_failures: List,
    pub(crate) ranking: Score,
}

/// One of the two lists.
#[derive(Debug, Default, Serialize)]
pub(crate) struct List {
    /// How many tests are in it.
    pub(crate) tests: usize,
    /// How many clusters are not shown.
    pub(crate) more: usize,
    pub(crate) clusters: Vec<Cluster>,
}

/// Failures that belong together.
#[derive(Debug, Serialize)]
pub(crate) struct Cluster {
    /// `alone`, `signature` or `together`.
    pub(crate) bond: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// A test that failed. Of several days it is about the one on which its failures stand out most.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    /// The test's number.
    pub(crate) number: u32,
    pub(crate) test: String,
    pub(crate) copy: u32,
    /// The day, as 2026-11-18.
    pub(crate) day: String,
    /// On how many of the days that were asked for it failed.
    pub(crate) days: usize,
    /// The day's last failure, by its number, in milliseconds since 1970.
    pub(crate) run: i64,
    pub(crate) time: i64,
    pub(crate) jobs: Vec<String>,
    pub(crate) environments: Vec<String>,
    pub(crate) revision: String,
    pub(crate) release: String,
    /// How far the day's share of failures is above the limit: the paper's magnitude.
    pub(crate) priority: f64,
    pub(crate) failures: u32,
    pub(crate) runs: u32,
    pub(crate) limit: f64,
    /// The flake rate of the current period, with its interval.
    pub(crate) rate: Option<f64>,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) stable_rate: Option<f64>,
    /// Reruns that passed in the 30 days up to the day.
    pub(crate) passed_reruns: u32,
    pub(crate) verdict: Option<String>,
    pub(crate) rung: Option<String>,
    pub(crate) signature: Option<String>,
    pub(crate) message: Option<String>,
    /// What reports themselves say about a bug.
    pub(crate) reported_bug: Option<String>,
    pub(crate) fault: Option<Fault>,
    pub(crate) is_quarantined: bool,
    /// Whether the evidence said on that day that it fails more often than in its baseline.
    pub(crate) is_unstable: bool,
    pub(crate) owner: String,
    #[serde(skip)]
    stands_out: bool,
    #[serde(skip)]
    reports: Vec<u32>,
}

impl Triage {
    pub(crate) fn read(
        store: &dyn Store,
        snapshot: &Snapshot,
        owners: &Owners,
        wanted: &Wanted,
    ) -> Result<Self, StoreError> {
        let ranking = Score::of(&snapshot.said);
        let Some(known) = &*snapshot.known else {
            return Ok(Self {
                ranking,
                ..Self::default()
            });
        };
        let last = known.periods.current.period.last;
        let day = match wanted.which {
            Which::LastDay => Some(last),
            Which::Day(day) => Some(day),
            Which::SinceStable => None,
        };
        let (since, stable_run, mut failures) = if let Some(day) = day {
            let (from, to) = span_of(day);
            (None, None, store.failures_between(from, to)?)
        } else {
            let since = stable::find(store, snapshot, known)?;
            (Some(since.first_day), since.stable_run, since.failures)
        };
        failures.retain(|one| known.has_stream(one.stream));
        let environments: BTreeSet<String> = failures
            .iter()
            .map(|one| one.run.provenance.environment.clone())
            .filter(|name| !name.is_empty())
            .collect();
        if let Some(only) = &wanted.environment {
            failures.retain(|one| one.run.provenance.environment == *only);
        }
        let mut lines = to_lines(store, snapshot, known, (day.unwrap_or(last), failures))?;
        for line in &mut lines {
            owners.of_test(&line.test).clone_into(&mut line.owner);
        }
        let (first, second): (Vec<Line>, Vec<Line>) =
            lines.drain(..).partition(|line| line.stands_out);
        Ok(Self {
            day: day.map(dates::to_text),
            since: since.map(dates::to_text),
            stable_run,
            last_day: Some(dates::to_text(last)),
            branch: known.periods.named.branch.clone(),
            environment: wanted.environment.clone(),
            environments: environments.into_iter().collect(),
            potential_product_faults: to_list(first, wanted.most),
            potential_flaky_failures: to_list(second, wanted.most),
            ranking,
        })
    }

    /// The list that a test stands in, and all of its failures there.
    pub(crate) fn standing(&self, number: u32) -> Option<(&'static str, &Line)> {
        let lists = [
            (FIRST_LIST, &self.potential_product_faults),
            (SECOND_LIST, &self.potential_flaky_failures),
        ];
        lists.into_iter().find_map(|(name, list)| {
            let mut lines = list.clusters.iter().flat_map(|one| &one.lines);
            lines
                .find(|line| line.number == number)
                .map(|line| (name, line))
        })
    }
}

/// The last day that was asked for, and the failures.
type Failures = (i32, Vec<KeptFailure>);

/// One line for each test, the most suspicious first.
fn to_lines(
    store: &dyn Store,
    snapshot: &Snapshot,
    known: &Known,
    (last, failures): Failures,
) -> Result<Vec<Line>, StoreError> {
    let (month, end) = (span_of(last - BASELINE_DAYS).0, span_of(last).1);
    let passed = store.passed_reruns(month, end)?;
    let mut reports: HashMap<usize, Vec<u32>> = HashMap::new();
    for (test, provenance) in store.failure_places(month, end)? {
        if let Some(place) = known.place(test) {
            reports.entry(place).or_default().push(provenance);
        }
    }
    let mut of_tests: BTreeMap<usize, BTreeMap<i32, Vec<KeptFailure>>> = BTreeMap::new();
    for failure in failures {
        // A test without runs in either period is not on the board: nothing is known of it.
        if let Some(place) = known.place(failure.test) {
            let days = of_tests.entry(place).or_default();
            let day = dates::day_of(failure.run.time);
            days.entry(day).or_default().push(failure);
        }
    }
    let mut lines = Vec::new();
    for (place, days) in of_tests {
        let entry = &known.entries[place];
        let Some(suspicion) = worst(store, known, place, days.keys())? else {
            continue;
        };
        let failures = &days[&suspicion.day];
        let mut line = to_line(entry, failures, suspicion);
        line.days = days.len();
        let numbers = &entry.numbers;
        line.passed_reruns = numbers.iter().filter_map(|one| passed.get(one)).sum();
        let faults = failures
            .iter()
            .rev()
            .filter_map(|one| snapshot.said.faults.get(&one.run.number));
        line.fault = faults.into_iter().next().cloned();
        let quarantined = &snapshot.said.quarantined;
        line.is_quarantined = numbers.iter().any(|one| quarantined.contains_key(one));
        line.reports = reports.remove(&place).unwrap_or_default();
        line.reports.sort_unstable();
        lines.push(line);
    }
    lines.sort_by(|one, other| {
        let by_priority = other.priority.total_cmp(&one.priority);
        let by_passes = one.passed_reruns.cmp(&other.passed_reruns);
        by_priority
            .then(by_passes)
            .then_with(|| one.test.cmp(&other.test))
    });
    Ok(lines)
}

/// The day on which a test's failures stand out most; of equal ones the last.
fn worst<'a>(
    store: &dyn Store,
    known: &Known,
    place: usize,
    days: impl Iterator<Item = &'a i32>,
) -> Result<Option<Suspicion>, StoreError> {
    let mut worst: Option<Suspicion> = None;
    for day in days {
        let Some(found) = Suspicion::of(store, known, place, *day)? else {
            continue;
        };
        let is_worse = worst.is_none_or(|worst| {
            let by_list = found.stands_out().cmp(&worst.stands_out());
            let by_priority = found.priority().total_cmp(&worst.priority());
            by_list.then(by_priority).is_ge()
        });
        if is_worse {
            worst = Some(found);
        }
    }
    Ok(worst)
}

fn to_line(entry: &Entry, failures: &[KeptFailure], suspicion: Suspicion) -> Line {
    let last = failures.last().expect("a line is made of failures");
    let now = entry.flaked();
    let interval = wilson(now, Level::DEFAULT);
    let distinct = |text: fn(&KeptFailure) -> &str| -> Vec<String> {
        let all: BTreeSet<&str> = failures
            .iter()
            .map(text)
            .filter(|one| !one.is_empty())
            .collect();
        all.into_iter().map(ToOwned::to_owned).collect()
    };
    Line {
        number: entry.numbers[0],
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        day: dates::to_text(suspicion.day),
        days: 1,
        run: last.run.number,
        time: last.run.time,
        jobs: distinct(|one| &one.run.provenance.job),
        environments: distinct(|one| &one.run.provenance.environment),
        revision: last.run.provenance.revision.clone(),
        release: last.run.provenance.release.clone(),
        priority: suspicion.priority(),
        failures: suspicion.failures,
        runs: suspicion.runs,
        limit: suspicion.anomaly.limit,
        rate: now.rate(),
        low: interval.low,
        high: interval.high,
        stable_rate: entry.course.baseline.rate(),
        passed_reruns: 0,
        verdict: last.run.verdict.clone(),
        rung: last.rung.clone(),
        signature: last.run.signature.clone(),
        message: last.run.example.clone(),
        reported_bug: last.run.bug.clone(),
        fault: None,
        is_quarantined: false,
        is_unstable: suspicion.is_unstable,
        owner: String::new(),
        stands_out: suspicion.stands_out(),
        reports: Vec::new(),
    }
}

fn to_list(lines: Vec<Line>, most: usize) -> List {
    let failing: Vec<Failing<'_>> = lines
        .iter()
        .map(|line| Failing {
            signature: line.signature.as_deref(),
            reports: &line.reports,
        })
        .collect();
    let clusters = cluster::gather(&failing);
    let tests = lines.len();
    let all = clusters.len();
    let mut lines: Vec<Option<Line>> = lines.into_iter().map(Some).collect();
    let clusters = clusters.into_iter().take(most).map(|cluster| Cluster {
        bond: match cluster.bond {
            Bond::Alone => "alone",
            Bond::Signature => "signature",
            Bond::Together => "together",
        },
        lines: cluster
            .members
            .into_iter()
            .filter_map(|place| lines[place].take())
            .collect(),
    });
    List {
        tests,
        clusters: clusters.collect(),
        more: all.saturating_sub(most),
    }
}
