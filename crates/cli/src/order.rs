//! `unflake order`: has tests run in several orders, and reports those that depend on it.

use std::env;

use camino::Utf8PathBuf;
use unflake_driver::ordering::Ordering;
use unflake_driver::session::Session;

use crate::Exit;
use crate::args::{AgainstArgs, LadderArgs, OrderArgs, ResultArgs, RunArgs, When};
use crate::repeat::Invocation;
use crate::run::examine;

/// Where searches that were cut off are kept: in the user's cache.
fn journals() -> Option<Utf8PathBuf> {
    let named = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let cache = named("XDG_CACHE_HOME").map(Utf8PathBuf::from);
    let cache = cache.or_else(|| Some(Utf8PathBuf::from(named("HOME")?).join(".cache")));
    Some(cache?.join("unflake/order"))
}

pub(crate) fn order(args: &OrderArgs) -> anyhow::Result<Exit> {
    let wish = Ordering {
        tests: args.tests.clone(),
        seed: args.seed,
        rounds: args.rounds,
        budget: args.budget,
        latent: args.latent,
        journals: if args.afresh { None } else { journals() },
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
        keep: args.keep.clone(),
        ..RunArgs::default()
    };
    examine(&run_args, Invocation::of_order, move |session: Session| {
        session.order(&wish)
    })
}
