//! What can be typed. What it means together with `unflake.toml` is in `settings`.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand, ValueEnum};

use crate::flags::experiment::{NioArgs, OrderArgs};
use crate::flags::history::{HistoryVerb, KeepArgs};
use crate::flags::serve::{ServeArgs, TokenArgs};
use crate::flags::why::WhyArgs;

/// Finds flaky tests, says why they flake, and says how far each test can be trusted.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the tests; say for each failure whether it is flaky, and show the evidence
    #[command(after_help = RUN_HELP)]
    Run(Box<RunArgs>),
    /// Examine the failures in another command's report: are they flaky, or did your change cause them?
    #[command(after_help = TRIAGE_HELP)]
    Triage(Box<TriageArgs>),
    /// Find the tests that pass once and fail when they run again in the same process
    #[command(after_help = NIO_HELP)]
    Nio(Box<NioArgs>),
    /// Find the tests whose result depends on the tests before them, and name those tests
    #[command(after_help = ORDER_HELP)]
    Order(Box<OrderArgs>),
    /// Say why a flaky test fails: how its failing runs differ from its passing runs
    #[command(after_help = crate::flags::why::HELP)]
    Why(Box<WhyArgs>),
    /// Show the tests as the framework finds them
    List(ListArgs),
    #[command(flatten)]
    History(HistoryVerb),
    /// Serve the triage board, and accept reports from CI jobs
    #[command(after_help = crate::flags::serve::SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Make and revoke access tokens for a server
    Token(TokenArgs),
}

const RUN_HELP: &str = "\
unflake answers two questions about every failure.

Is it flaky? The test runs again at once in the same interpreter or JVM, again there after the suite, \
then alone in new ones. If it passes in one of these runs, it is flaky; otherwise it is broken.

Whose failure is it? The test runs in its order with your change and at the base (the code without your \
change), in turns. The answer is: yours (your change caused the failure), not yours, or not known.

Only a flaky failure that is shown not to be yours is forgiven.

Exit codes: 0 nothing is wrong, 1 some failures are not forgiven (see --flaky, --not-known, --forgive), 2 \
bad usage or configuration, 3 the tests could not run, 70 a bug in unflake, 130 interrupted.

Examples:
  unflake run                            the whole suite
  unflake run -- tests/test_cart.py -k total
  unflake run --jobs 2 --timeout 60 --junit report.xml
  unflake run --immediate 5 --fresh 10   look harder";

const NIO_HELP: &str = "\
Every test runs twice in a row in the same process. A test that passes and then fails has left \
state behind that makes it fail. It is called NIO (non-idempotent outcome) only if this happens three \
times of three: alone, each time in a new interpreter or JVM with fresh files. A test that does not pass \
twice for another reason gets another name: victim, brittle, broken, non-deterministic.

The tests run in copies of the work tree: your files are not touched.

Exit codes are those of `unflake run`: 1 if anything was found.

Examples:
  unflake nio                       the whole suite, and new or modified tests also alone
  unflake nio --mode method -j 2    each test in its own process
  unflake nio --changed             only tests that are new or modified since the base
  unflake nio -- tests/test_cart.py";

const ORDER_HELP: &str = "\
Each test runs alone, and the suite runs in several orders: its own, backwards, and shuffled by the seed. \
A test that passes in some of these runs and fails in others is examined. Does its result depend on the \
order, or on chance? Which tests make it fail (or pass), one of them or several together? Which tests \
undo that? Every answer is shown again in new interpreters or JVMs.

The tests run in copies of the work tree: your files are not touched.

Exit codes are those of `unflake run`: 1 if anything was found.

Examples:
  unflake order                                      the whole suite
  unflake order tests/test_cart.py::test_total       which tests does this one depend on?
  unflake order --budget 10m -j 2 -- tests/unit";

const TRIAGE_HELP: &str = "\
For each failed test case of the report, unflake finds the test in this project and runs it alone in new \
interpreters or JVMs. A test that passes there is flaky, if the report is of the same code and from the \
same machine. To say whose failure it is, unflake runs the test in the report's order with your change and \
at the base, as `unflake run` does.

Exit codes are those of `unflake run`. A failure for which no test can be found counts as a real one.

Examples:
  pytest --junitxml report.xml; unflake triage report.xml
  unflake triage --base origin/main build/reports/*.xml";

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ProjectArgs {
    /// The framework that runs the tests [default: maven if there is a pom.xml and no --python, else pytest]
    #[arg(long, value_name = "NAME")]
    pub(crate) framework: Option<FrameworkArg>,
    /// The project's Python interpreter [default: from the active virtualenv, else .venv, else PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<Utf8PathBuf>,
    /// The configuration file [default: unflake.toml in this folder or above it, within the repository]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
    /// Arguments for pytest or Maven, after `--`
    #[arg(last = true, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) framework_args: Vec<String>,
}

/// What runs the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FrameworkArg {
    Pytest,
    Maven,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Number of reruns in the same process, right after a failure [default: 1]
    #[arg(long, value_name = "N", help_heading = "Ladder")]
    pub(crate) immediate: Option<u32>,
    /// Number of reruns in the same process, after the suite [default: 1]
    #[arg(long, value_name = "N", help_heading = "Ladder")]
    pub(crate) end: Option<u32>,
    #[command(flatten)]
    pub(crate) ladder: LadderArgs,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    /// Tests that may fail: a file, or the address of `unflake serve`
    /// [default: unflake-quarantine.toml, if it exists]
    #[arg(long, value_name = "WHERE")]
    pub(crate) quarantine: Option<String>,
    /// Find the tests and the state that an order-dependent failure depends on
    #[arg(long)]
    pub(crate) explain: bool,
    /// Run the suite in N processes; the tests of a file stay together; `auto` for one per processor
    /// [default: 1]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub(crate) jobs: Option<usize>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct TriageArgs {
    /// JUnit XML that another command wrote; of a folder, all *.xml in it
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    #[command(flatten)]
    pub(crate) ladder: LadderArgs,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// The rungs that a failure can climb wherever it happened.
#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct LadderArgs {
    /// Number of reruns that each get a fresh process [default: 2]
    #[arg(long, value_name = "N", help_heading = "Ladder")]
    pub(crate) fresh: Option<u32>,
    /// How a fresh process is made [default: fork where that is safe, and exec to confirm the result]
    #[arg(long, value_name = "HOW", help_heading = "Ladder")]
    pub(crate) fresh_by: Option<FreshBy>,
    /// Make no reruns after the suite if at least this share of the tests failed ... [default: 1%]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = "Ladder")]
    pub(crate) threshold: Option<f64>,
    /// ... and more than N tests failed [default: 10]
    #[arg(long, value_name = "N", help_heading = "Ladder")]
    pub(crate) threshold_floor: Option<usize>,
    /// Seconds that a test may take before its process is killed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
}

/// Flags for the result of a run.
#[derive(Clone, Debug, Default, Parser)]
#[command(next_help_heading = "Result")]
pub(crate) struct ResultArgs {
    /// The exit code if all failures are flaky and shown not to be yours [default: pass]
    #[arg(long, value_name = "RESULT")]
    pub(crate) flaky: Option<FlakyArg>,
    /// The exit code if it is not known whose a flaky failure is [default: fail]
    #[arg(long, value_name = "RESULT")]
    pub(crate) not_known: Option<FlakyArg>,
    /// Also forgive failures that are not flaky, if the base is shown to have them too
    #[arg(long, value_name = "WHAT")]
    pub(crate) forgive: Option<ForgiveArg>,
    /// Fail if more than N tests are flaky
    #[arg(long, value_name = "N")]
    pub(crate) max_flaky: Option<usize>,
    /// Show the cost of the reruns, and how many in the same process cost as much as one in a fresh process
    #[arg(long)]
    pub(crate) costs: bool,
    /// The format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
    /// Also write JUnit XML to this file, with every attempt
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<Utf8PathBuf>,
}

#[derive(Clone, Debug, Default, Parser)]
#[command(next_help_heading = "Latest changes")]
pub(crate) struct AgainstArgs {
    /// Say for each failure whether your change caused it [default: in a git work tree]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    pub(crate) intersect: Option<When>,
    /// The revision that your code is compared with [default: where the pull request left its target branch, or
    /// this branch left the default branch; on the default branch, the commit before the new ones]
    #[arg(long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Also run failed tests in a checkout of the base [default: as long as --blame-budget allows]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    pub(crate) check_base: Option<When>,
    /// Seconds that unflake may spend to find out whose failures these are [default: 60, or half of the
    /// suite's own time if that is more]
    #[arg(long, value_name = "SECONDS", value_parser = parse_budget)]
    pub(crate) blame_budget: Option<Duration>,
    /// The reports that are triaged: they are no changes.
    #[arg(skip)]
    pub(crate) reports: Vec<Utf8PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Even if it takes long; it is an error if it cannot be done
    Always,
    /// Do not do it
    Never,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// The format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ListFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreshBy {
    /// Start a new interpreter or JVM
    Exec,
    /// Copy the process as it was after it had collected the tests
    Fork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlakyArg {
    /// Exit 0
    Pass,
    /// Exit 1
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForgiveArg {
    /// Failures that the base has in the same way
    PreExisting,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Human,
    Json,
    Junit,
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    #[default]
    Human,
    Json,
}

/// A share as `1%` or `0.01`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let (digits, divisor) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number / divisor)) => Ok(number / divisor),
        Ok(_) | Err(_) => Err("a share is written `1%` or `0.01`, from 0 to 1".to_owned()),
    }
}

/// A time in seconds, above nought.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    seconds
        .filter(|seconds| *seconds > 0.0 && *seconds < 1e8)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a time is a number of seconds above 0, for example 60 or 2.5".to_owned())
}

/// A time in seconds that may be nought.
pub(crate) fn parse_budget(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    parse_seconds(text)
}

/// A time with its unit.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .unwrap_or((text, 1.0));
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    seconds
        .filter(|seconds| *seconds > 0.0 && *seconds < 1e8)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            "a time is a number above 0 with its unit, for example 90s or 10m".to_owned()
        })
}

pub(crate) fn parse_jobs(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get));
    }
    match text.parse() {
        Ok(jobs @ 1..) => Ok(jobs),
        Ok(0) | Err(_) => Err("the number of processes is 1 or more, or `auto`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn help_reads_well() {
        let mut command = Args::command().term_width(100);
        let run = command.find_subcommand_mut("run").unwrap();
        insta::assert_snapshot!(run.render_help());
        let nio = command.find_subcommand_mut("nio").unwrap();
        insta::assert_snapshot!(nio.render_help());
        let order = command.find_subcommand_mut("order").unwrap();
        insta::assert_snapshot!(order.render_help());
        let triage = command.find_subcommand_mut("triage").unwrap();
        insta::assert_snapshot!(triage.render_help());
        let why = command.find_subcommand_mut("why").unwrap();
        insta::assert_snapshot!(why.render_help());
    }

    #[test]
    fn shares_and_times_are_checked() {
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert_eq!(parse_share("0.5"), Ok(0.5));
        assert!(parse_share("101%").is_err() && parse_share("-1").is_err());
        assert_eq!(parse_seconds("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert!(parse_time("m").is_err() && parse_time("-1s").is_err());
        assert!(parse_seconds("0").is_err() && parse_seconds("NaN").is_err());
        assert!(parse_jobs("0").is_err() && parse_jobs("auto").unwrap() >= 1);
    }
}
