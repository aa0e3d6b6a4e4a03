//! Which runs are held against which: what is asked for, and what the history has.

use std::collections::BTreeMap;

use crate::daily::FlakyRule;
use crate::dates;
use crate::store::kept::Stream;
use crate::store::{Store, StoreError};
use serde::Serialize;
use unflake_core::quantify::period::{Period, rolling, stable_half};

/// How long a release is tested before it is rolled out (Rehman 2019, 3.1.2).
const CYCLE: i32 = 180;

/// How many days the current period and the baseline have without releases.
const CURRENT_DAYS: i32 = 14;
const BASELINE_DAYS: i32 = 90;

/// Names that a default branch may have, the likeliest first.
const DEFAULT_BRANCHES: [&str; 4] = ["main", "master", "trunk", "develop"];

/// What is asked for. What is not said is chosen by what the history has.
#[derive(Clone, Debug, Default)]
pub struct PeriodWish {
    /// Hold this release against the stable half of the one before; `latest` for the newest.
    pub release: Option<String>,
    /// The days that are held against the baseline.
    pub days: Option<i32>,
    /// The days before them that are the baseline.
    pub baseline_days: Option<i32>,
    /// Only runs of this branch; `*` for all.
    pub branch: Option<String>,
    /// As it was on this day, in days since 1970.
    pub as_of: Option<i32>,
    /// How long a release is tested.
    pub cycle_days: Option<i32>,
    /// When releases began and ended, where the runs do not say.
    pub releases: Vec<ReleaseDays>,
}

/// When a release was tested.
#[derive(Clone, Debug)]
pub struct ReleaseDays {
    /// Its name.
    pub id: String,
    /// The first day.
    pub from: Option<i32>,
    /// The last.
    pub to: Option<i32>,
}

/// Why there are no periods.
#[derive(Debug, thiserror::Error)]
pub enum PeriodError {
    /// Nothing is there.
    #[error("the history has no runs")]
    NoRuns,
    /// Others are there.
    #[error("there is no release `{release}` in the history; there are: {}", .there.join(", "))]
    NoRelease {
        /// The one that was asked for.
        release: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Some runs: a range of days in some streams.
#[derive(Clone, Debug)]
pub struct Part {
    /// The days.
    pub period: Period,
    /// The numbers of the streams, in order.
    pub streams: Vec<u32>,
}

impl Part {
    /// Whether a day of a stream is in it.
    pub fn has(&self, stream: u32, day: i32) -> bool {
        self.period.contains(day) && self.streams.binary_search(&stream).is_ok()
    }
}

/// What is held against what.
#[derive(Clone, Debug)]
pub struct Periods {
    /// What tests are compared with.
    pub baseline: Part,
    /// What is compared.
    pub current: Part,
    /// The same in words.
    pub named: Named,
}

/// The same in words, for reports.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// The release, if one was asked for.
    pub release: Option<String>,
    /// The one before it.
    pub baseline_release: Option<String>,
    /// `None` for all branches.
    pub branch: Option<String>,
    /// The days that are compared.
    pub current: Span,
    /// Those that they are compared with.
    pub baseline: Span,
}

/// Two dates, both included.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// The first.
    pub from: String,
    /// The last.
    pub to: String,
}

impl Named {
    /// A line for people.
    pub fn sentence(&self) -> String {
        let Self {
            current, baseline, ..
        } = self;
        let branch = match &self.branch {
            Some(branch) => format!(", branch {branch}"),
            None => String::new(),
        };
        match (&self.release, &self.baseline_release) {
            (Some(release), Some(before)) => format!(
                "release {release} ({} to {}) against the stable half of {before} ({} to {}){branch}",
                current.from, current.to, baseline.from, baseline.to
            ),
            (Some(release), None) => format!(
                "release {release} ({} to {}), without a release before it{branch}",
                current.from, current.to
            ),
            (None, _) => format!(
                "{} to {} against {} to {}{branch}",
                current.from, current.to, baseline.from, baseline.to
            ),
        }
    }
}

/// The days on which each stream has runs.
type Spans = BTreeMap<u32, Period>;

/// Chooses the periods.
pub fn resolve(store: &dyn Store, wish: &PeriodWish) -> Result<Periods, PeriodError> {
    let streams = store.streams()?;
    let mut spans = Spans::new();
    store.visit_daily(FlakyRule::Bug, &mut |count| {
        let span = spans.entry(count.stream).or_insert(Period {
            first: count.day,
            last: count.day,
        });
        span.first = span.first.min(count.day);
        span.last = span.last.max(count.day);
    })?;
    if spans.is_empty() {
        return Err(PeriodError::NoRuns);
    }
    let branch = find_branch(wish, &streams, &spans);
    let streams: Vec<&Stream> = streams
        .iter()
        .filter(|one| spans.contains_key(&one.number))
        .filter(|one| branch.as_ref().is_none_or(|branch| one.branch == *branch))
        .collect();
    let mut periods = match &wish.release {
        Some(release) => by_release(release, wish, &streams, &spans)?,
        None => by_days(wish, &streams, &spans),
    };
    if let Some(as_of) = wish.as_of {
        let current = &mut periods.current.period;
        current.last = current.last.min(as_of);
    }
    let span = |period: Period| Span {
        from: dates::to_text(period.first),
        to: dates::to_text(period.last),
    };
    periods.named.branch = branch;
    periods.named.current = span(periods.current.period);
    periods.named.baseline = span(periods.baseline.period);
    Ok(periods)
}

/// The branch that counts; `None` for all.
fn find_branch(wish: &PeriodWish, streams: &[Stream], spans: &Spans) -> Option<String> {
    if let Some(asked) = &wish.branch {
        return (asked != "*").then(|| asked.clone());
    }
    let has_runs = |branch: &&str| {
        let mut of_branch = streams.iter().filter(|one| one.branch == **branch);
        of_branch.any(|one| spans.contains_key(&one.number))
    };
    let found = DEFAULT_BRANCHES.iter().find(|branch| has_runs(branch));
    found.map(|branch| (*branch).to_owned())
}

fn by_days(wish: &PeriodWish, streams: &[&Stream], spans: &Spans) -> Periods {
    let numbers: Vec<u32> = streams.iter().map(|one| one.number).collect();
    let last = numbers.iter().map(|number| spans[number].last).max();
    let today = wish.as_of.or(last).unwrap_or(0);
    let (baseline, current) = rolling(
        today,
        wish.baseline_days.unwrap_or(BASELINE_DAYS),
        wish.days.unwrap_or(CURRENT_DAYS),
    );
    Periods {
        baseline: Part {
            period: baseline,
            streams: numbers.clone(),
        },
        current: Part {
            period: current,
            streams: numbers,
        },
        named: unnamed(None, None),
    }
}

fn by_release(
    asked: &str,
    wish: &PeriodWish,
    streams: &[&Stream],
    spans: &Spans,
) -> Result<Periods, PeriodError> {
    let releases = releases(wish, streams, spans);
    let at = if asked == "latest" {
        releases.len().checked_sub(1)
    } else {
        releases.iter().position(|(name, _)| name == asked)
    };
    let at = at.ok_or_else(|| PeriodError::NoRelease {
        release: asked.to_owned(),
        there: releases.iter().map(|(name, _)| name.clone()).collect(),
    })?;
    let of_release = |name: &str| -> Vec<u32> {
        let found = streams.iter().filter(|one| one.release == name);
        found.map(|one| one.number).collect()
    };
    let (name, current) = releases[at].clone();
    let before = at.checked_sub(1).map(|before| releases[before].clone());
    let cycle = wish.cycle_days.unwrap_or(CYCLE);
    let baseline = match &before {
        Some((before, period)) => Part {
            period: stable_half(*period, Some(cycle)),
            streams: of_release(before),
        },
        None => Part {
            period: current,
            streams: Vec::new(),
        },
    };
    Ok(Periods {
        baseline,
        current: Part {
            period: current,
            streams: of_release(&name),
        },
        named: unnamed(Some(name), before.map(|(before, _)| before)),
    })
}

/// All releases with their periods, as their runs or the wish say, in the order of time.
fn releases(wish: &PeriodWish, streams: &[&Stream], spans: &Spans) -> Vec<(String, Period)> {
    let mut releases: Vec<(String, Period)> = Vec::new();
    for stream in streams.iter().filter(|one| !one.release.is_empty()) {
        let span = spans[&stream.number];
        match releases
            .iter_mut()
            .find(|(name, _)| *name == stream.release)
        {
            Some((_, period)) => {
                period.first = period.first.min(span.first);
                period.last = period.last.max(span.last);
            }
            None => releases.push((stream.release.clone(), span)),
        }
    }
    for release in &wish.releases {
        let Some((_, period)) = releases.iter_mut().find(|(name, _)| *name == release.id) else {
            continue;
        };
        period.first = release.from.unwrap_or(period.first);
        period.last = release.to.unwrap_or(period.last);
    }
    releases.sort_by_key(|(_, period)| (period.first, period.last));
    releases
}

fn unnamed(release: Option<String>, baseline_release: Option<String>) -> Named {
    let nothing = Span {
        from: String::new(),
        to: String::new(),
    };
    Named {
        release,
        baseline_release,
        branch: None,
        current: nothing.clone(),
        baseline: nothing,
    }
}
