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
    /// In which VMs tests are run twice
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub(crate) mode: ModeArg,
    /// How a VM of its own is made [default: a copy; where a VM cannot be copied, a new process, once the test
    /// did not pass twice on classes that were loaded for it alone]
    #[arg(long, value_name = "HOW")]
    pub(crate) fresh_by: Option<FreshBy>,
    /// Only tests that are new or modified since the base
    #[arg(long)]
    pub(crate) changed: bool,
    /// The base [default: as with `unflake run`]
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
    /// Look into these tests only, named as the framework names them
    #[arg(value_name = "TEST")]
    pub(crate) tests: Vec<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Run the suite in N orders [default: 10, and more while that is quick]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// Stop after this time with what is known by then, for example 90s or 10m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// Also list state that tests leave changed although no test fails for it yet
    #[arg(long)]
    pub(crate) latent: bool,
    /// Do not take up a search that was cut off
    #[arg(long)]
    pub(crate) afresh: bool,
    /// The seed of the orders
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) experiments: ExperimentArgs,
}

/// How experiments are run, and what comes of them.
#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ExperimentArgs {
    /// Seconds that a test may take before its VM is killed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Use N VMs at once, where tests run apart; `auto` for one per processor [default: 1]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub(crate) jobs: Option<usize>,
    /// What is written to standard output
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
    /// The same as of a run.
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
    /// All tests in one VM; new, modified and suspicious ones also alone
    #[default]
    Auto,
    /// All tests in one VM
    Suite,
    /// Each class, or file of functions, in a VM of its own
    Class,
    /// Each test in a VM of its own
    Method,
}
