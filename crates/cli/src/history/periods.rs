//! Which runs are held against which: flags and `unflake.toml`, and what the history has.

use std::collections::BTreeMap;

use serde::Serialize;
use unflake_core::quantify::period::{Period, rolling, stable_half};
use unflake_history::daily::FlakyRule;
use unflake_history::store::{Store, Stream};

use super::dates;
use crate::config::Config;
use crate::explain::Trouble;
use crate::history_args::PeriodArgs;

/// How long a release is tested before it is rolled out (Rehman 2019, 3.1.2).
const CYCLE: i32 = 180;

/// How many days the current period and the baseline have without releases.
const CURRENT_DAYS: i32 = 14;
const BASELINE_DAYS: i32 = 90;

/// Names that a default branch may have, the likeliest first.
const DEFAULT_BRANCHES: [&str; 4] = ["main", "master", "trunk", "develop"];

/// Some runs: a range of days in some streams.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) period: Period,
    /// The numbers of the streams, in order.
    pub(crate) streams: Vec<u32>,
}

impl Part {
    pub(crate) fn has(&self, stream: u32, day: i32) -> bool {
        self.period.contains(day) && self.streams.binary_search(&stream).is_ok()
    }
}

/// What is held against what.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    pub(crate) baseline: Part,
    pub(crate) current: Part,
    pub(crate) named: Named,
}

/// The same in words, for reports.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Named {
    pub(crate) release: Option<String>,
    pub(crate) baseline_release: Option<String>,
    /// `None` for all branches.
    pub(crate) branch: Option<String>,
    pub(crate) current: Span,
    pub(crate) baseline: Span,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Span {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Named {
    /// A line for people.
    pub(crate) fn sentence(&self) -> String {
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

pub(crate) fn resolve(
    store: &dyn Store,
    args: &PeriodArgs,
    config: &Config,
) -> anyhow::Result<Periods> {
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
        return Err(Trouble::NoRuns.into());
    }
    let as_of = args.as_of.as_deref().map(dates::parse).transpose()?;
    let branch = find_branch(args, config, &streams, &spans);
    let streams: Vec<&Stream> = streams
        .iter()
        .filter(|one| spans.contains_key(&one.number))
        .filter(|one| branch.as_ref().is_none_or(|branch| one.branch == *branch))
        .collect();
    let release = args.release.as_ref().or(config.baseline.release.as_ref());
    let mut periods = match release {
        Some(release) => by_release(release, config, &streams, &spans)?,
        None => by_days(args, config, as_of, &streams, &spans),
    };
    if let Some(as_of) = as_of {
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
fn find_branch(
    args: &PeriodArgs,
    config: &Config,
    streams: &[Stream],
    spans: &Spans,
) -> Option<String> {
    let asked = args.branch.as_ref().or(config.baseline.branch.as_ref());
    if let Some(asked) = asked {
        return (asked != "*").then(|| asked.clone());
    }
    let has_runs = |branch: &&str| {
        let mut of_branch = streams.iter().filter(|one| one.branch == **branch);
        of_branch.any(|one| spans.contains_key(&one.number))
    };
    let found = DEFAULT_BRANCHES.iter().find(|branch| has_runs(branch));
    found.map(|branch| (*branch).to_owned())
}

fn by_days(
    args: &PeriodArgs,
    config: &Config,
    as_of: Option<i32>,
    streams: &[&Stream],
    spans: &Spans,
) -> Periods {
    let numbers: Vec<u32> = streams.iter().map(|one| one.number).collect();
    let last = numbers.iter().map(|number| spans[number].last).max();
    let today = as_of.or(last).unwrap_or(0);
    let days = args.days.or(config.baseline.current_days);
    let before = args.baseline_days.or(config.baseline.days);
    let (baseline, current) = rolling(
        today,
        before.unwrap_or(BASELINE_DAYS),
        days.unwrap_or(CURRENT_DAYS),
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
    config: &Config,
    streams: &[&Stream],
    spans: &Spans,
) -> anyhow::Result<Periods> {
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
    for release in &config.releases {
        let Some((_, period)) = releases.iter_mut().find(|(name, _)| *name == release.id) else {
            continue;
        };
        if let Some(from) = &release.from {
            period.first = dates::parse(from)?;
        }
        if let Some(to) = &release.to {
            period.last = dates::parse(to)?;
        }
    }
    releases.sort_by_key(|(_, period)| (period.first, period.last));
    let at = if asked == "latest" {
        releases.len().checked_sub(1)
    } else {
        releases.iter().position(|(name, _)| name == asked)
    };
    let at = at.ok_or_else(|| Trouble::NoRelease {
        release: asked.to_owned(),
        there: releases.iter().map(|(name, _)| name.clone()).collect(),
    })?;
    let of_release = |name: &str| -> Vec<u32> {
        let found = streams.iter().filter(|one| one.release == name);
        found.map(|one| one.number).collect()
    };
    let (name, current) = releases[at].clone();
    let before = at.checked_sub(1).map(|before| releases[before].clone());
    let cycle = config.baseline.cycle_days.unwrap_or(CYCLE);
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
