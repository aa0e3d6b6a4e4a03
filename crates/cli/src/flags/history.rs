//! What can be typed after the verbs that read and write the history.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand, ValueEnum};

use crate::flags::args::{parse_share, parse_time};

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryVerb {
    /// Add runs that other tools reported to the history
    #[command(after_help = RECORD_HELP)]
    Record(Box<RecordArgs>),
    /// How often does each test flake?
    #[command(after_help = RATES_HELP)]
    Rates(Box<RatesArgs>),
    /// How far can each test be trusted, and how many runs would it take?
    #[command(after_help = CONFIDENCE_HELP)]
    Confidence(Box<ConfidenceArgs>),
    /// Which tests fail more often than they used to, and since when?
    #[command(after_help = UNSTABLE_HELP)]
    Unstable(Box<UnstableArgs>),
    /// Which tests to run again next
    #[command(after_help = NEXT_HELP)]
    Next(Box<NextArgs>),
    /// Which failures of a day stand out against the month before?
    Anomalies(Box<AnomaliesArgs>),
    /// Write a made-up history whose truth is known
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Box<SimulateArgs>),
}

const RECORD_HELP: &str = "\
Reads JUnit XML of all tools, CSV and JSON lines (one object a line). A table needs at least a test, a \
time and a verdict; a release and a bug id are what Rehman 2019 uses besides. Columns are found by their \
names, or by --column. What was added before is not added again.

Examples:
  unflake record build/reports --branch main --revision \"$(git rev-parse HEAD)\"
  unflake record 'ci/**/*.xml'
  unflake record --to https://flakes.example --job \"$CI_JOB_ID\" build/reports
  unflake record runs.csv --column test=TestCase --column bug=TRID
  zcat old.csv.gz | unflake record --input csv -";

const RATES_HELP: &str = "\
The flake rate of a test is the share of its runs that failed without a fault of the product; the stable \
rate is that of the baseline. Both come with Wilson's interval.

Examples:
  unflake rates                        the last 14 days against the 90 before
  unflake rates --release D --svg rates.svg
  unflake rates -n 0 --format json";

const CONFIDENCE_HELP: &str = "\
Runs needed by Eq. 7 of Rehman 2019 and by Wilson's interval, and the confidence that the runs of the \
current period reach by Eq. 8.";

const UNSTABLE_HELP: &str = "\
The default, `sequential`, may be looked at every day: over a year it calls a test unstable that is not \
with a probability of 5 % at most. `paper` is the rule of Rehman 2019, which looks again and again without \
such a bound; `fdr` looks once. docs/statistics.md has the derivations.

Exit codes: 0 no test is unstable, 1 some are.";

const NEXT_HELP: &str = "\
By `information` the test comes first whose next run tells most about whether it is broken now, per second. \
By `binomial` it is the one with the least likely result: BinomialStabilityOrder of Rehman 2019.

Examples:
  unflake next -n 10
  unflake next --budget 10m --run      run them, and choose anew after each";

const SIMULATE_HELP: &str = "\
Examples:
  unflake simulate runs.csv --truth truth.json
  unflake simulate --store demo.db --runs 100000 --tests 500 --rates google";

/// Whether what is run is written down, and where.
#[derive(Clone, Debug, Default, Parser)]
#[command(next_help_heading = "History")]
pub(crate) struct KeepArgs {
    /// Do not add these runs to the history
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct PlaceArgs {
    /// The history [default: .unflake/history.db in the project's root]
    #[arg(
        long,
        value_name = "FILE",
        env = "UNFLAKE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<Utf8PathBuf>,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct RecordArgs {
    /// Files, folders (all *.xml, *.csv, *.ndjson and *.jsonl in them), patterns, or `-`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Send them to the server at this address, with the token in `UNFLAKE_TOKEN` if it asks for one
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "column"])]
    pub(crate) to: Option<String>,
    /// What the files are written in [default: by their names and first bytes]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input: Option<InputArg>,
    /// Which column holds what, for example `test=TestCase`
    #[arg(long, value_name = "FIELD=COLUMN")]
    pub(crate) column: Vec<String>,
    /// The revision that was tested
    #[arg(long, value_name = "REV", default_value = "")]
    pub(crate) revision: String,
    /// The branch that was tested
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) branch: String,
    /// The release that was tested
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) release: String,
    /// The machine or equipment
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) environment: String,
    /// The job that ran them
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) job: String,
    /// What is written to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: FormatArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputArg {
    /// JUnit XML
    Junit,
    /// A table with commas, semicolons or tabs
    Csv,
    /// One JSON object a line
    Ndjson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    #[default]
    Human,
    Json,
}

/// What all questions to the history have.
#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct QuestionArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The configuration file [default: unflake.toml here or above, within the repository]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
    /// Which failures are flaky
    #[arg(long, value_name = "RULE", default_value = "evidence")]
    pub(crate) flaky_rule: RuleArg,
    /// Only tests whose names match, for example 'tests/net/*'
    #[arg(long, value_name = "PATTERN")]
    pub(crate) tests: Option<String>,
    /// Show so many tests; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    pub(crate) top: usize,
    /// The level of confidence
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = parse_share)]
    pub(crate) level: f64,
    /// What is written to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: FormatArg,
    #[command(flatten)]
    pub(crate) periods: PeriodArgs,
}

#[derive(Clone, Debug, Default, Parser)]
#[command(next_help_heading = "Periods")]
pub(crate) struct PeriodArgs {
    /// Hold this release against the stable half of the one before; `latest` for the newest
    #[arg(long, value_name = "ID")]
    pub(crate) release: Option<String>,
    /// The days up to the last run that are held against the baseline [default: 14]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) days: Option<i32>,
    /// The days before them that are the baseline [default: 90]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) baseline_days: Option<i32>,
    /// Only runs of this branch; `*` for all [default: the default branch, where it has runs]
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// As it was on this day, for example 2019-04-15 [default: the last day with runs]
    #[arg(long, value_name = "DATE")]
    pub(crate) as_of: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleArg {
    /// All but those with a bug or a verdict that says they are real
    #[default]
    Evidence,
    /// Those without a bug (Rehman 2019)
    Bug,
    /// Those that a verdict calls flaky
    Verdict,
    /// Those whose test passed at the same revision
    Revision,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct RatesArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Also write the plot to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<Utf8PathBuf>,
    /// What the tests are sorted by
    #[arg(long, value_name = "KEY", default_value = "rate")]
    pub(crate) sort: SortArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArg {
    /// The flake rate, the highest first
    #[default]
    Rate,
    /// The stable rate, the highest first
    Stable,
    /// The number of runs, the highest first
    Runs,
    /// The name
    Name,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ConfidenceArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Also write the plot to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<Utf8PathBuf>,
    /// How far off the rate may be
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) margin: f64,
    /// Compute with Z = 1.65 as the paper does, not with the exact point of the level
    #[arg(long)]
    pub(crate) paper: bool,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct UnstableArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// Also write the plot to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<Utf8PathBuf>,
    /// By which rule a test is called unstable
    #[arg(long, value_name = "MODE", default_value = "sequential")]
    pub(crate) mode: ModeArg,
    /// With `paper` and `binomial`: what is held of tests that hardly ran
    #[arg(long, value_name = "PRIOR", default_value = "none")]
    pub(crate) prior: PriorArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// The binomial test after each day
    Paper,
    /// One look, with the share of false alarms among all bounded
    Fdr,
    /// Evidence that holds however often one looks
    #[default]
    Sequential,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorArg {
    /// Nothing: a test that never failed never will
    #[default]
    None,
    /// Jeffreys' Beta(½, ½)
    Jeffreys,
    /// The rate of the whole suite
    Pooled,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
    /// With --run: the project's interpreter [default: as with `unflake run`]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<Utf8PathBuf>,
    /// With --run: arguments for pytest, after `--`
    #[arg(last = true, value_name = "PYTEST ARGS", allow_hyphen_values = true)]
    pub(crate) framework_args: Vec<String>,
    /// So many tests as fit into this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// Which test comes first
    #[arg(long, value_name = "ORDER", default_value = "information")]
    pub(crate) order: OrderArg,
    /// With `binomial`: what is held of tests that hardly ran
    #[arg(long, value_name = "PRIOR", default_value = "jeffreys")]
    pub(crate) prior: PriorArg,
    /// Run them now, one after the other, and choose anew after each
    #[arg(long)]
    pub(crate) run: bool,
    /// Show what the orders would have made of the recorded runs (Rehman 2019, Fig. 10)
    #[arg(long, conflicts_with = "run")]
    pub(crate) replay: bool,
    /// With --replay: also write the plot to this file
    #[arg(long, requires = "replay", value_name = "FILE")]
    pub(crate) svg: Option<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// The test with the least likely result
    Binomial,
    /// The test whose next run tells most, per second
    #[default]
    Information,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct AnomaliesArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArgs,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct SimulateArgs {
    /// The table to write; `-` for standard output
    #[arg(value_name = "CSV", required_unless_present = "store")]
    pub(crate) table: Option<Utf8PathBuf>,
    /// Where there is no table: the history to write
    #[arg(
        long,
        value_name = "FILE",
        env = "UNFLAKE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<Utf8PathBuf>,
    /// Also write what is planted, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<Utf8PathBuf>,
    /// How many tests
    #[arg(long, value_name = "N", default_value = "10383", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tests: u32,
    /// How many runs, about
    #[arg(long, value_name = "N", default_value = "9900000")]
    pub(crate) runs: u64,
    /// How many days
    #[arg(long, value_name = "N", default_value = "895", value_parser = clap::value_parser!(i32).range(1..100_000))]
    pub(crate) days: i32,
    /// The first day
    #[arg(long, value_name = "DATE", default_value = "2016-07-18")]
    pub(crate) from: String,
    /// How many releases; four have the lengths of Ericsson's
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) releases: u32,
    /// Where flake rates are drawn from
    #[arg(long, value_name = "WHOSE", default_value = "ericsson")]
    pub(crate) rates: DistributionArg,
    /// The share of flaky tests whose failures come in bursts
    #[arg(long, value_name = "SHARE", default_value = "30%", value_parser = parse_share)]
    pub(crate) bursty: f64,
    /// The share of flaky tests that fail together with others
    #[arg(long, value_name = "SHARE", default_value = "75%", value_parser = parse_share)]
    pub(crate) clustered: f64,
    /// How many faults each release has
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) faults: u32,
    /// What everything is drawn from
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DistributionArg {
    /// Ericsson's quantiles (Rehman 2019, Table 2)
    #[default]
    Ericsson,
    /// 16 % of tests and 1.5 % of runs
    Google,
}
