//! The suite or a release as a whole: the paper's curves for this team's data (Rehman 2019, Ch. 4), and how
//! many builds flaky tests hit (`RootFinder` 2019, Table 1).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use unflake_core::chart::{Chart, Line};
use unflake_core::quantify::curve::{cumulative, difference, share};
use unflake_core::quantify::needed::{Aim, runs};
use unflake_core::quantify::normal::Level;
use unflake_core::quantify::quantile::quantile;
use unflake_core::quantify::sample::{Sample, to_float};
use unflake_history::book::Entry;
use unflake_history::periods::PeriodWish;
use unflake_history::store::kept::Extent;
use unflake_history::store::{Store, StoreError};

use crate::board::builds::{self, BuildCounts};
use crate::board::snapshot::{Known, QUICK, Snapshot};
use crate::board::tests_list::MARGIN;

/// So many releases are remembered.
const REMEMBERED: usize = 4;

/// What was read of releases, the last first.
#[derive(Default)]
pub(crate) struct Suites(Mutex<Vec<Remembered>>);

/// A suite as it was when it was read.
struct Remembered {
    extent: Extent,
    /// The release; empty for the last days.
    name: String,
    suite: Arc<Suite>,
    read: Instant,
    took: Duration,
    /// Whether somebody has seen it although the history has grown.
    is_stale: bool,
}

/// All that the page shows.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Suite {
    pub(crate) period: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) releases: Vec<String>,
    pub(crate) summary: Summary,
    pub(crate) builds: BuildCounts,
    pub(crate) plots: Vec<Plot>,
    #[serde(skip)]
    pub(crate) charts: Vec<Chart>,
}

/// The suite in numbers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) tests: usize,
    pub(crate) runs: u64,
    pub(crate) flaky_failures: u64,
    pub(crate) never_flaky: f64,
    pub(crate) median_rate: Option<f64>,
    /// Tests that were run often enough for 95 % confidence.
    pub(crate) confident: f64,
    pub(crate) failed: usize,
    pub(crate) unstable: usize,
    /// Of the tests that failed, the share that need not be looked into.
    pub(crate) saved: f64,
}

/// A chart as numbers.
#[derive(Debug, Serialize)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) lines: Vec<PlotLine>,
}

/// A line of it.
#[derive(Debug, Serialize)]
pub(crate) struct PlotLine {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Suites {
    /// The suite of now, or a release. What takes long to read is shown as it was, and read anew by
    /// [`Self::keep_up`].
    pub(crate) fn read(
        &self,
        store: &dyn Store,
        snapshot: &Snapshot,
        wish: &PeriodWish,
        release: Option<&str>,
    ) -> Result<Option<Arc<Suite>>, StoreError> {
        let name = release.unwrap_or_default();
        let mut known = self.0.lock().expect("nobody panics with it");
        if let Some(one) = known.iter_mut().find(|one| one.name == name) {
            let is_new = one.extent == snapshot.extent;
            if is_new || one.took > QUICK {
                one.is_stale |= !is_new;
                return Ok(Some(Arc::clone(&one.suite)));
            }
        }
        drop(known);
        self.read_anew(store, snapshot, wish, name)
    }

    /// Reads anew what was seen stale. To be called now and then; it takes a tenth of the time at most.
    pub(crate) fn keep_up(
        &self,
        store: &dyn Store,
        snapshot: &Snapshot,
        wish: &PeriodWish,
    ) -> Result<(), StoreError> {
        let known = self.0.lock().expect("nobody panics with it");
        let is_due = |one: &&Remembered| one.is_stale && one.read.elapsed() >= one.took * 9;
        let due: Vec<String> = known
            .iter()
            .filter(is_due)
            .map(|one| one.name.clone())
            .collect();
        drop(known);
        for name in due {
            self.read_anew(store, snapshot, wish, &name)?;
        }
        Ok(())
    }

    fn read_anew(
        &self,
        store: &dyn Store,
        snapshot: &Snapshot,
        wish: &PeriodWish,
        name: &str,
    ) -> Result<Option<Arc<Suite>>, StoreError> {
        let begun = Instant::now();
        let Some(suite) = Suite::read(store, snapshot, wish, name)? else {
            return Ok(None);
        };
        let suite = Arc::new(suite);
        let mut known = self.0.lock().expect("nobody panics with it");
        known.retain(|one| one.name != name);
        let remembered = Remembered {
            extent: snapshot.extent,
            name: name.to_owned(),
            suite: Arc::clone(&suite),
            read: Instant::now(),
            took: begun.elapsed(),
            is_stale: false,
        };
        known.insert(0, remembered);
        known.truncate(REMEMBERED);
        Ok(Some(suite))
    }
}

fn releases(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = store
        .streams()?
        .into_iter()
        .map(|one| one.release)
        .collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    Ok(names)
}

impl Suite {
    /// The suite of the last days, or of the release with this name; nothing if there is no such release.
    fn read(
        store: &dyn Store,
        snapshot: &Snapshot,
        wish: &PeriodWish,
        name: &str,
    ) -> Result<Option<Self>, StoreError> {
        let releases = releases(store)?;
        if name.is_empty() {
            let known = snapshot.known.as_ref().as_ref();
            return Self::of(store, snapshot, known, releases).map(Some);
        }
        let wish = PeriodWish {
            release: Some(name.to_owned()),
            ..wish.clone()
        };
        let Some(of_release) = Known::read(store, &wish)? else {
            return Ok(None);
        };
        Self::of(store, snapshot, Some(&of_release), releases).map(Some)
    }

    fn of(
        store: &dyn Store,
        snapshot: &Snapshot,
        known: Option<&Known>,
        releases: Vec<String>,
    ) -> Result<Self, StoreError> {
        let Some(known) = known else {
            return Ok(Self::default());
        };
        let builds = builds::find(store, snapshot, known)?;
        let charts = vec![
            distribution(known),
            confidence(known),
            instability(known),
            builds::chart(&builds, known.periods.current.period),
        ];
        let plots = charts.iter().map(to_plot).collect();
        Ok(Self {
            period: Some(known.periods.named.sentence()),
            release: known.periods.named.release.clone(),
            releases,
            summary: summarize(known),
            builds: BuildCounts::of(&builds),
            plots,
            charts,
        })
    }
}

fn to_plot(chart: &Chart) -> Plot {
    let lines = chart.lines.iter().map(|line| PlotLine {
        name: line.name.clone(),
        points: line.points.clone(),
    });
    Plot {
        title: chart.title.clone(),
        lines: lines.collect(),
    }
}

fn sorted_rates(known: &Known, sample: impl Fn(&Entry) -> Sample) -> Vec<f64> {
    let mut rates: Vec<f64> = known
        .entries
        .iter()
        .filter_map(|one| sample(one).rate())
        .collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// Fig. 3 and 4 of Rehman 2019.
fn distribution(known: &Known) -> Chart {
    let line = |name: &str, sorted: &[f64]| {
        let points = (0..=100).map(|at| {
            let rate = f64::from(at) / 100.0;
            let up_to = sorted.partition_point(|one| *one <= rate);
            (rate * 100.0, share(up_to, sorted.len()))
        });
        Line {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    let now = sorted_rates(known, Entry::flaked);
    let stable = sorted_rates(known, |entry| entry.course.baseline);
    Chart {
        title: "Tests up to each flake rate".to_owned(),
        across: "flake rate in %".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![line("now", &now), line("baseline", &stable)],
        marks: Vec::new(),
        is_share: true,
    }
}

fn needed_day(entry: &Entry) -> Option<i32> {
    let needed = runs(
        entry.course.baseline.rate()?,
        Aim::at(Level::DEFAULT, MARGIN),
    );
    let mut so_far = 0;
    let enough = entry.course.days.iter().find(|day| {
        so_far += u64::from(day.runs);
        to_float(so_far) >= needed
    });
    enough.map(|day| day.day)
}

/// Fig. 5: tests that were run often enough.
fn confidence(known: &Known) -> Chart {
    let with_baseline = known
        .entries
        .iter()
        .filter(|one| one.is_current() && one.course.baseline.runs() > 0);
    let days: Vec<i32> = with_baseline.clone().filter_map(needed_day).collect();
    Chart {
        title: "Tests run often enough for 95 % confidence".to_owned(),
        across: "days since the period began".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![cumulative(
            "enough runs",
            known.periods.current.period,
            &days,
            with_baseline.count(),
        )],
        marks: Vec::new(),
        is_share: true,
    }
}

/// Fig. 6, 7 and 8 in one.
fn instability(known: &Known) -> Chart {
    let period = known.periods.current.period;
    let failed = |entry: &Entry| {
        let mut days = entry.course.days.iter();
        days.find(|day| day.failures > 0).map(|day| day.day)
    };
    let total = known.entries.iter().filter(|one| one.is_current()).count();
    let failed: Vec<i32> = known.entries.iter().filter_map(failed).collect();
    let flagged: Vec<i32> = known
        .instabilities
        .iter()
        .filter_map(|one| one.flagged)
        .collect();
    let failed = cumulative("failed", period, &failed, total);
    let flagged = cumulative("unstable", period, &flagged, total);
    let saved = difference("saved", &failed, &flagged);
    Chart {
        title: "Tests that failed, and that became unstable".to_owned(),
        across: "days since the period began".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![failed, flagged, saved],
        marks: Vec::new(),
        is_share: true,
    }
}

fn summarize(known: &Known) -> Summary {
    let rates = sorted_rates(known, Entry::flaked);
    let current: Vec<&Entry> = known
        .entries
        .iter()
        .filter(|one| one.is_current())
        .collect();
    let all = current
        .iter()
        .map(|one| one.flaked())
        .fold(Sample::default(), Sample::plus);
    let failed = current
        .iter()
        .filter(|one| one.course.current().failures() > 0)
        .count();
    let unstable = known
        .instabilities
        .iter()
        .filter(|one| one.flagged.is_some())
        .count();
    let with_baseline = current.iter().filter(|one| one.course.baseline.runs() > 0);
    let confident = with_baseline
        .clone()
        .filter(|one| needed_day(one).is_some());
    Summary {
        tests: current.len(),
        runs: all.runs(),
        flaky_failures: all.failures(),
        never_flaky: share(rates.partition_point(|rate| *rate <= 0.0), rates.len()),
        median_rate: quantile(&rates, 0.5),
        confident: share(confident.count(), with_baseline.count()),
        failed,
        unstable,
        saved: share(failed.saturating_sub(unstable), failed),
    }
}
