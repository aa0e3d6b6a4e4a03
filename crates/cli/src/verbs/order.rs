//! `unflake order`: has tests run in several orders, and reports those that depend on it.

use camino::Utf8PathBuf;
use unflake_driver::lab::session::Session;
use unflake_driver::order::search::Ordering;

use crate::Exit;
use crate::flags::args::{AgainstArgs, RunArgs, When};
use crate::flags::experiment::OrderArgs;
use crate::quarantine::Quarantine;
use crate::settings::cache_folder;
use crate::verbs::run::examine;
use crate::view::repeat::Invocation;

/// The folder in which searches that were cut off are kept: in the user's cache.
fn journals() -> Option<Utf8PathBuf> {
    Some(cache_folder()?.join("unflake/order"))
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
        against: AgainstArgs {
            intersect: Some(When::Never),
            ..AgainstArgs::default()
        },
        ..args.experiments.to_run(&args.project)
    };
    // A test that may fail in a plain run is still a finding here.
    examine(
        &run_args,
        Quarantine::default(),
        Invocation::of_order,
        move |session: Session| session.order(&wish),
    )
}
