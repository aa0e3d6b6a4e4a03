//! What all questions to the history have in common: opening it, the periods, and the answer's head.

use std::fs;

use anyhow::Context;
use camino::Utf8Path;
use console::Term;
use serde::Serialize;
use unflake_core::chart::{Chart, svg, terminal};
use unflake_core::pattern::Pattern;
use unflake_core::quantify::normal::Level;
use unflake_history::book::{self, Before, Entry, Reading};
use unflake_history::daily::FlakyRule;
use unflake_history::dates;
use unflake_history::engine::Missing;
use unflake_history::periods::{self, Named, PeriodWish, Periods, ReleaseDays};
use unflake_history::store::Store;

use crate::config::Config;
use crate::flags::history::{FormatArg, PeriodArgs, QuestionArgs, RuleArg};
use crate::history::place;
use crate::view::explain::Trouble;

/// An opened history and what is asked about.
pub(crate) struct Question {
    pub(crate) store: Box<dyn Store>,
    pub(crate) periods: Periods,
    pub(crate) rule: FlakyRule,
    pub(crate) level: Level,
    pub(crate) args: QuestionArgs,
}

/// The head of every answer in JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) schema: &'static str,
    pub(crate) unflake: &'static str,
    pub(crate) flaky_rule: &'static str,
    pub(crate) level: f64,
    pub(crate) periods: Named,
}

impl Question {
    pub(crate) fn open(args: &QuestionArgs) -> anyhow::Result<Self> {
        let level = Level::new(args.level).ok_or(Trouble::Level)?;
        let store = args.place.store.as_deref();
        let (store, config) = place::open(store, args.config.as_deref(), Missing::Refuse)?;
        let periods = periods::resolve(&*store, &to_wish(&args.periods, &config)?)?;
        Ok(Self {
            store,
            periods,
            rule: match args.flaky_rule {
                RuleArg::Evidence => FlakyRule::Evidence,
                RuleArg::Bug => FlakyRule::Bug,
                RuleArg::Verdict => FlakyRule::Verdict,
                RuleArg::Revision => FlakyRule::Revision,
            },
            level,
            args: args.clone(),
        })
    }

    pub(crate) fn entries(&self, before: Before) -> anyhow::Result<Vec<Entry>> {
        let pattern = self.args.tests.as_deref().map(Pattern::new);
        let reading = Reading {
            rule: self.rule,
            baseline: &self.periods.baseline,
            current: &self.periods.current,
            pattern: pattern.as_ref(),
            before,
        };
        Ok(book::read(&*self.store, &reading)?)
    }

    /// Adds what a run of each test takes.
    pub(crate) fn add_durations(&self, entries: &mut [Entry]) -> anyhow::Result<()> {
        let durations = self.store.durations()?;
        for entry in entries {
            let of_entry = entry.numbers.iter().filter_map(|number| {
                let at = durations.binary_search_by_key(number, |(test, _)| *test);
                at.ok().map(|at| durations[at].1)
            });
            entry.seconds = of_entry.reduce(f64::max);
        }
        Ok(())
    }

    pub(crate) fn is_json(&self) -> bool {
        self.args.format == FormatArg::Json
    }

    /// How many of `all` are shown.
    pub(crate) fn shown(&self, all: usize) -> usize {
        if self.args.top == 0 {
            all
        } else {
            self.args.top.min(all)
        }
    }

    pub(crate) fn head(&self, schema: &'static str) -> Head {
        Head {
            schema,
            unflake: env!("CARGO_PKG_VERSION"),
            flaky_rule: self.rule.label(),
            level: self.level.share(),
            periods: self.periods.named.clone(),
        }
    }

    /// The two lines that every answer for people begins with.
    pub(crate) fn opening(&self) -> String {
        format!(
            "{}\n{} (--flaky-rule {})\n\n",
            self.periods.named.sentence(),
            self.rule.meaning(),
            self.rule.label()
        )
    }
}

/// Writes the plot where `--svg` says, and gives it for the terminal.
pub(crate) fn plot(chart: &Chart, file: Option<&Utf8Path>) -> anyhow::Result<String> {
    if let Some(file) = file {
        fs::write(file, svg::write(chart)).with_context(|| format!("cannot write {file}"))?;
    }
    let width = Term::stdout()
        .size_checked()
        .map_or(80, |(_, columns)| columns);
    Ok(terminal::write(
        chart,
        usize::from(width).clamp(40, 110),
        13,
    ))
}

/// Which periods flags and `unflake.toml` ask for together.
pub(crate) fn to_wish(args: &PeriodArgs, config: &Config) -> Result<PeriodWish, Trouble> {
    let day = |text: &String| {
        let bad = || Trouble::Date { text: text.clone() };
        dates::parse(text).ok_or_else(bad)
    };
    let releases = config.releases.iter().map(|release| {
        Ok(ReleaseDays {
            id: release.id.clone(),
            from: release.from.as_ref().map(day).transpose()?,
            to: release.to.as_ref().map(day).transpose()?,
        })
    });
    let baseline = &config.baseline;
    Ok(PeriodWish {
        release: args.release.clone().or_else(|| baseline.release.clone()),
        days: args.days.or(baseline.current_days),
        baseline_days: args.baseline_days.or(baseline.days),
        branch: args.branch.clone().or_else(|| baseline.branch.clone()),
        as_of: args.as_of.as_ref().map(day).transpose()?,
        cycle_days: baseline.cycle_days,
        releases: releases.collect::<Result<_, Trouble>>()?,
    })
}

/// A value as JSON for people and machines.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("an answer holds only text and numbers")
}
