//! The flags of the verbs that make experiments: `nio` and `order`.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum};

use crate::flags::args::{
    Format, FreshBy, LadderArgs, ProjectArgs, ResultArgs, RunArgs, parse_jobs, parse_seconds,
    parse_time,
};
use crate::flags::history::KeepArgs;

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct NioArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Which tests share a process when they run twice
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub(crate) mode: ModeArg,
    /// How the process of one test is made [default: fork, or exec where a process cannot be copied; a test gets
    /// a new JVM only if it did not pass twice on classes that were loaded for it alone]
    #[arg(long, value_name = "HOW")]
    pub(crate) fresh_by: Option<FreshBy>,
    /// Run only tests that are new or modified since the base
    #[arg(long)]
    pub(crate) changed: bool,
    /// The revision to compare with [default: as for `unflake run`]
    #[arg(long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Find the tests and the state that an order-dependent test depends on
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) experiments: ExperimentArgs,
}

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct OrderArgs {
    /// Examine only these tests, named as the framework names them
    #[arg(value_name = "TEST")]
    pub(crate) tests: Vec<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Run the suite in N orders [default: 10, or more if the suite is quick]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// Stop after this time and report what is known by then, for example 90s or 10m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// Also list state that tests leave changed, even if no test fails because of it yet
    #[arg(long)]
    pub(crate) latent: bool,
    /// Begin a new search, even if an earlier one was cut off and could be continued
    #[arg(long)]
    pub(crate) afresh: bool,
    /// The seed that shuffles the orders
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) experiments: ExperimentArgs,
}

/// Flags for how experiments run, and for how their results are reported.
#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ExperimentArgs {
    /// Seconds that a test may take before its process is killed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Use N processes at once where tests run apart; `auto` for one per processor [default: 1]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub(crate) jobs: Option<usize>,
    /// The format of standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Result"
    )]
    pub(crate) format: Format,
    /// Also write JUnit XML to this file
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) junit: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

impl ExperimentArgs {
    /// The arguments of a run with these settings.
    pub(crate) fn to_run(&self, project: &ProjectArgs) -> RunArgs {
        RunArgs {
            project: project.clone(),
            ladder: LadderArgs {
                timeout: self.timeout,
                ..LadderArgs::default()
            },
            jobs: Some(self.jobs.unwrap_or(1)),
            result: ResultArgs {
                format: self.format,
                junit: self.junit.clone(),
                ..ResultArgs::default()
            },
            keep: self.keep.clone(),
            ..RunArgs::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// All tests in one process; new, modified and suspicious tests also alone
    #[default]
    Auto,
    /// All tests in one process
    Suite,
    /// Each class, or each file of test functions, in its own process
    Class,
    /// Each test in its own process
    Method,
}
