//! What can be typed after `unflake why`.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum};

use crate::flags::args::{ListFormat, ProjectArgs, parse_seconds};
use crate::flags::history::KeepArgs;

pub(crate) const HELP: &str = "\
The test runs alone, each time in a new interpreter with another hash seed, fresh files and an empty \
temporary folder. Each run records every call that the project's code makes. When enough runs have passed \
and enough have failed, unflake compares them call by call, and shows the differences, the likeliest cause \
first.

If the test never fails, unflake delays its threads and tasks around calls of threads, locks, queues, \
sleeps, files and the network; the seed chooses where. When the test fails, unflake finds the fewest delays \
that make it fail.

The test runs in copies of the work tree: your files are not touched.

Exit codes: 0 the test always passed, 1 it failed at least once, 2 bad usage or configuration, 3 it could \
not run, 70 a bug in unflake, 130 interrupted.

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
    /// The most traced runs; fewer are made if enough of them passed and enough failed
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// The most runs without tracing, which show how much tracing changes the result
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) plain_runs: u32,
    /// Delay threads and tasks after the first 20 runs, if none of them failed [default: after all runs]
    #[arg(long, conflicts_with_all = ["traces", "no_fuzz"])]
    pub(crate) fuzz: bool,
    /// Never delay threads and tasks
    #[arg(long)]
    pub(crate) no_fuzz: bool,
    /// The seed that chooses the delays
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Compare only calls of this function, given by its full name or the last parts of it
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Vec<String>,
    /// The order in which differences are shown
    #[arg(long, value_name = "ORDER", default_value = "ours")]
    pub(crate) rank: RankArg,
    /// Show at most N differences
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) top: usize,
    /// Run nothing; compare traces that were made earlier or by another tool, in these two folders
    #[arg(long, num_args = 2, value_names = ["PASSING", "FAILING"], conflicts_with_all = ["test", "keep"])]
    pub(crate) traces: Vec<Utf8PathBuf>,
    /// Keep the traces in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<Utf8PathBuf>,
    /// Seconds that a test may take before its process is killed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ListFormat,
    #[command(flatten)]
    pub(crate) history: KeepArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RankArg {
    /// The likeliest cause first; the differences at one place are shown as one
    #[default]
    Ours,
    /// Every predicate, in the order of the paper (see the guide)
    Paper,
}
