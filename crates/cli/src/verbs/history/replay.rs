//! What the orders would have made of the runs that there were: Fig. 10 of Rehman 2019, and more.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use unflake_core::chart::{Chart, Line};
use unflake_core::quantify::binomial::probability;
use unflake_core::quantify::evidence::Evidence;
use unflake_core::quantify::information::Belief;
use unflake_core::quantify::prior::Prior;
use unflake_core::quantify::rerun_order::{
    Candidate, Recorded, RecordedRun, RerunOrder, replay as play, replay_days,
};
use unflake_core::quantify::sample::{Sample, to_float};
use unflake_history::book::Entry;
use unflake_history::dates;

use super::next::to_candidate;
use super::question::{Head, Question, plot, to_json};
use super::rates::{JsonLine, to_data};
use super::table;
use crate::Exit;
use crate::flags::history::NextArgs;
use crate::view::stdout::print;

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// At so many points of a replay it is looked at.
const POINTS: usize = 200;

/// The shares of each day's runs that are tried.
const SHARES: [f64; 4] = [0.05, 0.15, 0.3, 0.5];

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    tests: usize,
    runs: usize,
    orders: Vec<Played>,
    plot: Vec<JsonLine>,
}

/// One order.
#[derive(Serialize)]
struct Played {
    order: &'static str,
    /// `ReleaseTestStability` (Eq. 10) against the default order: (share of runs, value).
    stability: Vec<(f64, f64)>,
    /// How many tests have been shown to be unstable by then: (share of runs, tests).
    detected: Vec<(f64, usize)>,
    /// Each test that was, with the share of runs that it took.
    found: Vec<(String, f64)>,
    /// What it shows if only a share of each day's runs can be made.
    days: Vec<Daily>,
}

/// Alarms with a share of each day's runs.
#[derive(Serialize)]
struct Daily {
    share: f64,
    /// Which test was shown to be unstable, and on which day. It may be shown again.
    alarms: Vec<(String, String)>,
}

struct Course {
    sums: Vec<f64>,
    detected: Vec<usize>,
    found: Vec<(u32, usize)>,
}

pub(super) fn replay(
    args: &NextArgs,
    question: &Question,
    entries: &[Entry],
) -> anyhow::Result<Exit> {
    let recorded = read(question, entries)?;
    let orders = [
        ("default", RerunOrder::Default),
        ("binomial", RerunOrder::Binomial(Prior::None)),
        ("information", RerunOrder::Information),
    ];
    let courses = orders.map(|(name, order)| {
        let days = watch_shares(&recorded, order, question, entries);
        (name, follow(&recorded, order, question), days)
    });
    let total = recorded.runs.len().max(1);
    let default = courses[0].1.sums.clone();
    let played: Vec<Played> = courses
        .into_iter()
        .map(|(order, course, days)| {
            let sums = course.sums.iter().zip(&default);
            let stability = by_share(sums.map(|(sum, default)| 1.0 - sum / default));
            let found = course.found.iter().map(|(test, run)| {
                let name = entries[*test as usize].name.name.clone();
                (name, to_float(*run as u64) / to_float(total as u64))
            });
            Played {
                order,
                stability: stability.filter(|(_, value)| value.is_finite()).collect(),
                detected: by_share(course.detected.iter().copied()).collect(),
                found: found.collect(),
                days,
            }
        })
        .collect();
    let chart = to_chart(&played);
    let plot = plot(&chart, args.svg.as_deref())?;
    if question.is_json() {
        print(&to_json(&Answer {
            head: question.head("unflake.replay/1"),
            tests: recorded.candidates.len(),
            runs: recorded.runs.len(),
            orders: played,
            plot: to_data(&chart),
        }))?;
    } else {
        print(&write(question, &played, &plot))?;
    }
    Ok(Exit::Clean)
}

/// Values at equal distances, by the share of the runs.
fn by_share<T>(values: impl Iterator<Item = T>) -> impl Iterator<Item = (f64, T)> {
    let at = |point: u64| to_float(point) / to_float(POINTS as u64);
    (0..).map(at).zip(values)
}

fn to_chart(played: &[Played]) -> Chart {
    let lines = played[1..].iter().map(|one| Line {
        name: one.order.to_owned(),
        points: one.stability.clone(),
    });
    Chart {
        title: "ReleaseTestStability against the default order".to_owned(),
        across: "share of the runs".to_owned(),
        up: "decrease".to_owned(),
        lines: lines.collect(),
        marks: Vec::new(),
        is_share: true,
    }
}

/// The runs of the current period in the order of time.
fn read(question: &Question, entries: &[Entry]) -> anyhow::Result<Recorded> {
    let mut places: HashMap<u32, u32> = HashMap::new();
    for (place, entry) in (0..).zip(entries) {
        for number in &entry.numbers {
            places.insert(*number, place);
        }
    }
    let part = &question.periods.current;
    let from = i64::from(part.period.first) * DAY;
    let to = (i64::from(part.period.last) + 1) * DAY - 1;
    let mut runs = Vec::new();
    question
        .store
        .visit_runs(&part.streams, from, to, &mut |time, test, failed| {
            if let Some(place) = places.get(&test) {
                runs.push((time, *place, failed));
            }
        })?;
    runs.sort_by_key(|(time, ..)| *time);
    let clean = |entry: &Entry| Candidate {
        current: Sample::default(),
        belief: Belief::new(entry.course.baseline, part.period.first),
        ..to_candidate(entry, part.period)
    };
    Ok(Recorded {
        candidates: entries.iter().map(clean).collect(),
        runs: runs
            .into_iter()
            .map(|(time, test, failed)| RecordedRun {
                test,
                day: i32::try_from(time.div_euclid(DAY)).unwrap_or(i32::MAX),
                failed,
            })
            .collect(),
    })
}

/// Plays an order to its end. As in the paper, each test's first run is not counted.
fn follow(recorded: &Recorded, order: RerunOrder, question: &Question) -> Course {
    let total = recorded.runs.len();
    let mut evidence: Vec<Evidence> = recorded
        .candidates
        .iter()
        .map(|one| Evidence::after(one.baseline, question.level))
        .collect();
    let rates: Vec<f64> = recorded
        .candidates
        .iter()
        .map(|one| one.baseline.rate().unwrap_or(0.0))
        .collect();
    let mut course = Course {
        sums: vec![0.0],
        detected: vec![0],
        found: Vec::new(),
    };
    let mut is_found = vec![false; recorded.candidates.len()];
    let (mut run, mut sum) = (0, 0.0);
    play(recorded, order, |played| {
        run += 1;
        let test = played.run.test as usize;
        if played.so_far.runs() > 1 {
            sum += probability(played.so_far, rates[test]);
        }
        if !is_found[test] {
            let one = &mut evidence[test];
            one.add(Sample::new(u64::from(played.run.failed), 1));
            if played.run.failed && one.is_alarm() {
                is_found[test] = true;
                course.found.push((played.run.test, run));
            }
        }
        while course.sums.len() <= POINTS && run * POINTS >= course.sums.len() * total {
            course.sums.push(sum);
            course.detected.push(course.found.len());
        }
    });
    course
}

fn watch_shares(
    recorded: &Recorded,
    order: RerunOrder,
    question: &Question,
    entries: &[Entry],
) -> Vec<Daily> {
    let to_named = |(test, day): (u32, i32)| {
        let name = entries[test as usize].name.name.clone();
        (name, dates::to_text(day))
    };
    let one = |share: f64| Daily {
        share,
        alarms: watch(recorded, order, share, question)
            .into_iter()
            .map(to_named)
            .collect(),
    };
    SHARES.into_iter().map(one).collect()
}

/// The alarms by day, if an order chooses a share of each day's runs. After an alarm the evidence starts anew.
fn watch(
    recorded: &Recorded,
    order: RerunOrder,
    share: f64,
    question: &Question,
) -> Vec<(u32, i32)> {
    let mut counts: BTreeMap<(i32, u32), Sample> = BTreeMap::new();
    replay_days(recorded, order, share, |played| {
        let sum = counts.entry((played.run.day, played.run.test)).or_default();
        *sum = sum.plus(Sample::one(played.run.failed));
    });
    let start = |one: &Candidate| Evidence::after(one.baseline, question.level);
    let mut evidence: Vec<Evidence> = recorded.candidates.iter().map(start).collect();
    let mut alarms = Vec::new();
    for ((day, test), sample) in counts {
        let one = &mut evidence[test as usize];
        one.add(sample);
        if sample.failures() > 0 && one.is_alarm() {
            alarms.push((test, day));
            *one = start(&recorded.candidates[test as usize]);
        }
    }
    alarms
}

fn write(question: &Question, played: &[Played], plot: &str) -> String {
    let mut text = question.opening();
    text += plot;
    text += "\n\ntests shown to be unstable after a share of the runs\n\n";
    let shares = [
        (10, "5 %"),
        (30, "15 %"),
        (60, "30 %"),
        (100, "50 %"),
        (POINTS, "100 %"),
    ];
    let head: Vec<&str> = shares
        .iter()
        .map(|(_, name)| *name)
        .chain(["order"])
        .collect();
    let rows: Vec<Vec<String>> = played
        .iter()
        .map(|one| {
            let cell = |at: usize| one.detected.get(at).map_or(0, |(_, count)| *count);
            let cells = shares.iter().map(|(at, _)| table::count(cell(*at) as u64));
            cells.chain([one.order.to_owned()]).collect()
        })
        .collect();
    text + &table::write(&head, &rows)
}
