//! What can be typed after `unflake why`.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum};

use crate::flags::args::{ListFormat, ProjectArgs, parse_seconds};
use crate::flags::history::KeepArgs;

pub(crate) const HELP: &str = "\
The test is run alone, each time in a new interpreter with another hash seed, fresh files and an empty \
temporary folder, and tells of every call that the project's code makes. When there are enough passing \
and failing runs, they are compared call by call, and what differs is shown, the likeliest cause first.

If it never fails, threads and tasks are made late by seed, around calls of threads, locks, queues, sleeps, \
files and the network, until it does; then the fewest delays that make it fail are found.

All of it happens in copies of the work tree: your files are not touched.

Exit codes: 0 the test always passed, 1 it failed at least once, 2 bad usage or configuration, 3 it could \
not be run, 70 a bug in unflake, 130 interrupted.

Examples:
  unflake why tests/test_cart.py::test_total
  unflake why tests/test_cart.py::test_total --runs 300 --keep traces
  unflake why tests/test_queue.py::test_drain --fuzz
  unflake why --traces traces/passing traces/failing --method random.Random.random";

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct WhyArgs {
    /// The test, named as the framework names it
    #[arg(value_name = "TEST", required_unless_present = "traces")]
    pub(crate) test: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Stop after N traced runs, if there are not enough passing and failing ones before
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Show by N runs without tracing, at most, how much it disturbs
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) plain_runs: u32,
    /// Make threads and tasks late after the first 20 runs, if none of them fails [default: after all runs]
    #[arg(long, conflicts_with_all = ["traces", "no_fuzz"])]
    pub(crate) fuzz: bool,
    /// Never make threads and tasks late
    #[arg(long)]
    pub(crate) no_fuzz: bool,
    /// By which delays are chosen
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Look only at calls of these functions, by full name or its last parts
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Vec<String>,
    /// In which order differences are shown
    #[arg(long, value_name = "ORDER", default_value = "ours")]
    pub(crate) rank: RankArg,
    /// Show at most N differences
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) top: usize,
    /// Compare traces that were made before, or by another tool, instead of running anything
    #[arg(long, num_args = 2, value_names = ["PASSING", "FAILING"], conflicts_with_all = ["test", "keep"])]
    pub(crate) traces: Vec<Utf8PathBuf>,
    /// Keep the traces in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<Utf8PathBuf>,
    /// Seconds that a test may take before its VM is killed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// What is written to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ListFormat,
    #[command(flatten)]
    pub(crate) history: KeepArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RankArg {
    /// The likeliest cause first, all that is said of one place folded together
    #[default]
    Ours,
    /// Every predicate, in the order of the paper (see the guide)
    Paper,
}
