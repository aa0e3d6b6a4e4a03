//! All tests: searched, sorted and paged.

use serde::Serialize;
use unflake_core::owners::Owners;
use unflake_core::quantify::interval::wilson;
use unflake_core::quantify::needed::{Aim, runs_by_wilson};
use unflake_core::quantify::normal::Level;
use unflake_core::quantify::sample::{Day, Sample, to_float};
use unflake_history::book::Entry;
use unflake_history::dates;

use crate::board::snapshot::{Known, Snapshot};
use crate::http::problem::Problem;
use crate::http::query::Fields;

/// So many tests are on a page.
pub(crate) const PAGE: usize = 50;

/// How far off a rate may be before a test counts as known.
pub(crate) const MARGIN: f64 = 0.05;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Part of a name, with `*` for anything; upper and lower case are the same.
    pub(crate) query: String,
    pub(crate) sort: Sort,
    /// Only these.
    pub(crate) only: Only,
    /// From 1.
    pub(crate) page: usize,
}

impl Wanted {
    /// What a query asks for.
    pub(crate) fn parse(fields: &Fields) -> Result<Self, Problem> {
        let page = fields.number("page")?.unwrap_or(1);
        Ok(Self {
            query: fields.text("query")?.unwrap_or_default().to_owned(),
            sort: fields.word("sort", &Sort::ALL)?,
            only: fields.word("only", &Only::ALL)?,
            page: usize::try_from(page)
                .map_err(|_| Problem::Bad("`page` is below 1".to_owned()))?,
        })
    }
}

/// What tests are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Rate,
    Trend,
    Runs,
    Needed,
    LastFlake,
    Name,
}

impl Sort {
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Rate, "rate"),
        (Self::Trend, "trend"),
        (Self::Runs, "runs"),
        (Self::Needed, "needed"),
        (Self::LastFlake, "last-flake"),
        (Self::Name, "name"),
    ];

    pub(crate) fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(sort, _)| *sort == self);
        found.expect("all are listed").1
    }
}

/// Which tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Only {
    #[default]
    All,
    Flaky,
    Unstable,
    Quarantined,
}

impl Only {
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::All, "all"),
        (Self::Flaky, "flaky"),
        (Self::Unstable, "unstable"),
        (Self::Quarantined, "quarantined"),
    ];

    pub(crate) fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(only, _)| *only == self);
        found.expect("all are listed").1
    }
}

/// One page of the list.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TestsList {
    pub(crate) query: String,
    pub(crate) sort: &'static str,
    pub(crate) only: &'static str,
    /// How many tests match.
    pub(crate) matching: usize,
    /// How many there are.
    pub(crate) all: usize,
    pub(crate) page: usize,
    pub(crate) pages: usize,
    pub(crate) period: Option<String>,
    pub(crate) tests: Vec<Row>,
}

/// One test.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) number: u32,
    pub(crate) test: String,
    pub(crate) copy: u32,
    pub(crate) runs: u64,
    pub(crate) flaky_failures: u64,
    pub(crate) rate: Option<f64>,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) stable_rate: Option<f64>,
    /// The rate now, less the stable rate.
    pub(crate) trend: Option<f64>,
    pub(crate) is_unstable: bool,
    /// Runs until the rate is known to within 5 points.
    pub(crate) runs_needed: Option<u64>,
    pub(crate) last_flake: Option<String>,
    pub(crate) owner: String,
    pub(crate) is_quarantined: bool,
    /// The share of failures on each day with runs of the current period.
    #[serde(skip)]
    pub(crate) days: Vec<Day>,
}

impl TestsList {
    pub(crate) fn read(snapshot: &Snapshot, owners: &Owners, wanted: &Wanted) -> Self {
        let mut list = Self {
            query: wanted.query.clone(),
            sort: wanted.sort.word(),
            only: wanted.only.word(),
            page: 1,
            pages: 1,
            ..Self::default()
        };
        let Some(known) = &*snapshot.known else {
            return list;
        };
        list.period = Some(known.periods.named.sentence());
        list.all = known.entries.len();
        let mut found = find(snapshot, known, wanted);
        list.matching = found.len();
        list.pages = found.len().div_ceil(PAGE).max(1);
        list.page = wanted.page.clamp(1, list.pages);
        let first = (list.page - 1) * PAGE;
        sort(known, &mut found, wanted.sort, first + PAGE);
        let places = found.into_iter().skip(first).take(PAGE);
        list.tests = places
            .map(|place| to_row(snapshot, known, owners, place))
            .collect();
        list
    }
}

/// Visits all tests that match, in their order.
pub(crate) fn visit(
    snapshot: &Snapshot,
    owners: &Owners,
    wanted: &Wanted,
    mut each: impl FnMut(&Row),
) {
    let Some(known) = &*snapshot.known else {
        return;
    };
    let mut found = find(snapshot, known, wanted);
    let all = found.len();
    sort(known, &mut found, wanted.sort, all);
    for place in found {
        each(&to_row(snapshot, known, owners, place));
    }
}

/// The places of the tests that match.
fn find(snapshot: &Snapshot, known: &Known, wanted: &Wanted) -> Vec<usize> {
    let query = wanted.query.trim().to_lowercase();
    let parts: Vec<&str> = query.split('*').filter(|part| !part.is_empty()).collect();
    let is_named = |entry: &Entry| {
        if parts.is_empty() {
            return true;
        }
        let name = entry.name.name.to_lowercase();
        let mut rest = name.as_str();
        parts.iter().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    };
    let is_wanted = |place: usize| {
        let entry = &known.entries[place];
        let fits = match wanted.only {
            Only::All => true,
            Only::Flaky => entry.flaked().failures() > 0,
            Only::Unstable => known.instabilities[place].flagged.is_some(),
            Only::Quarantined => is_quarantined(snapshot, entry),
        };
        fits && is_named(entry)
    };
    (0..known.entries.len())
        .filter(|place| is_wanted(*place))
        .collect()
}

/// Sorts as far as the page needs it.
fn sort(known: &Known, found: &mut [usize], by: Sort, needed: usize) {
    if by == Sort::Name {
        return;
    }
    let key = |place: usize| {
        let entry = &known.entries[place];
        match by {
            Sort::Rate => entry.flaked().rate().unwrap_or(-1.0),
            Sort::Trend => trend(entry).unwrap_or(-2.0),
            Sort::Runs => to_float(entry.flaked().runs()),
            Sort::Needed => runs_needed(entry).map_or(-1.0, to_float),
            Sort::LastFlake => last_flake(entry).map_or(f64::NEG_INFINITY, f64::from),
            Sort::Name => 0.0,
        }
    };
    let mut keyed: Vec<(f64, usize)> = found.iter().map(|place| (key(*place), *place)).collect();
    // Equal ones stay in the order of their names.
    let order = |one: &(f64, usize), other: &(f64, usize)| {
        other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
    };
    if needed < keyed.len() {
        keyed.select_nth_unstable_by(needed, order);
        keyed[..needed].sort_unstable_by(order);
    } else {
        keyed.sort_unstable_by(order);
    }
    for (place, (_, sorted)) in found.iter_mut().zip(keyed) {
        *place = sorted;
    }
}

fn trend(entry: &Entry) -> Option<f64> {
    Some(entry.flaked().rate()? - entry.course.baseline.rate()?)
}

fn last_flake(entry: &Entry) -> Option<i32> {
    let days = entry.before.iter().chain(&entry.course.days);
    days.filter(|day| day.flaky > 0).map(|day| day.day).max()
}

fn runs_needed(entry: &Entry) -> Option<u64> {
    let all = entry.course.baseline.plus(entry.flaked());
    let needed = runs_by_wilson(all.rate()?, Aim::at(Level::DEFAULT, MARGIN)).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of runs is small and never below 0"
    )]
    let needed = needed as u64;
    Some(needed.saturating_sub(entry.flaked().runs()))
}

fn is_quarantined(snapshot: &Snapshot, entry: &Entry) -> bool {
    let quarantined = &snapshot.said.quarantined;
    entry
        .numbers
        .iter()
        .any(|number| quarantined.contains_key(number))
}

pub(crate) fn to_row(snapshot: &Snapshot, known: &Known, owners: &Owners, place: usize) -> Row {
    let entry = &known.entries[place];
    let now: Sample = entry.flaked();
    let interval = wilson(now, Level::DEFAULT);
    Row {
        number: entry.numbers[0],
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        runs: now.runs(),
        flaky_failures: now.failures(),
        rate: now.rate(),
        low: interval.low,
        high: interval.high,
        stable_rate: entry.course.baseline.rate(),
        trend: trend(entry),
        is_unstable: known.instabilities[place].flagged.is_some(),
        runs_needed: runs_needed(entry),
        last_flake: last_flake(entry).map(dates::to_text),
        owner: owners.of_test(&entry.name.name).to_owned(),
        is_quarantined: is_quarantined(snapshot, entry),
        days: entry.course.days.clone(),
    }
}
