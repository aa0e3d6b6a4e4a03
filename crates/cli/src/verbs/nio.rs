//! `unflake nio`: has every test run twice, and reports those that fail the second time.

use unflake_core::nio::hunt::Mode;
use unflake_driver::lab::session::Session;
use unflake_driver::nio::hunt::{HuntRequest, hunt};

use crate::Exit;
use crate::flags::args::{AgainstArgs, LadderArgs, RunArgs, When};
use crate::flags::experiment::{ModeArg, NioArgs};
use crate::quarantine::Quarantine;
use crate::verbs::run::examine;
use crate::view::repeat::Invocation;

pub(crate) fn nio(args: &NioArgs) -> anyhow::Result<Exit> {
    let request = HuntRequest {
        mode: match args.mode {
            ModeArg::Auto => Mode::Auto,
            ModeArg::Suite => Mode::Suite,
            ModeArg::Class => Mode::Class,
            ModeArg::Method => Mode::Method,
        },
        only_changed: args.changed,
    };
    let run = args.experiments.to_run(&args.project);
    let run_args = RunArgs {
        against: AgainstArgs {
            blame_budget: None,
            base: args.base.clone(),
            intersect: args.changed.then_some(When::Always),
            ..AgainstArgs::default()
        },
        explain: args.explain,
        ladder: LadderArgs {
            fresh_by: args.fresh_by,
            ..run.ladder
        },
        ..run
    };
    // A test that may fail in a plain run is still a finding here.
    examine(
        &run_args,
        Quarantine::default(),
        Invocation::of_nio,
        move |session: Session| hunt(session, request),
    )
}
