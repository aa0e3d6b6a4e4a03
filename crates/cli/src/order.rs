//! `unflake order`: has tests run in several orders, and reports those that depend on it.

use unflake_driver::ordering::Ordering;
use unflake_driver::session::Session;

use crate::Exit;
use crate::args::{AgainstArgs, LadderArgs, OrderArgs, ResultArgs, RunArgs, When};
use crate::repeat::Invocation;
use crate::run::examine;

pub(crate) fn order(args: &OrderArgs) -> anyhow::Result<Exit> {
    let wish = Ordering {
        tests: args.tests.clone(),
        seed: args.seed,
        rounds: args.rounds,
        budget: args.budget,
    };
    let run_args = RunArgs {
        project: args.project.clone(),
        ladder: LadderArgs {
            timeout: args.timeout,
            ..LadderArgs::default()
        },
        against: AgainstArgs {
            intersect: Some(When::Never),
            ..AgainstArgs::default()
        },
        jobs: Some(args.jobs.unwrap_or(1)),
        result: ResultArgs {
            format: args.format,
            junit: args.junit.clone(),
            ..ResultArgs::default()
        },
        ..RunArgs::default()
    };
    examine(&run_args, Invocation::of_order, move |session: Session| {
        session.order(&wish)
    })
}
