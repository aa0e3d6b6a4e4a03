//! `unflake nio`: has every test run twice, and reports those that fail the second time.

use unflake_driver::hunt::{Hunt, Mode};
use unflake_driver::session::Session;

use crate::Exit;
use crate::args::{AgainstArgs, LadderArgs, ModeArg, NioArgs, ResultArgs, RunArgs, When};
use crate::repeat::Invocation;
use crate::run::examine;

pub(crate) fn nio(args: &NioArgs) -> anyhow::Result<Exit> {
    let hunt = Hunt {
        mode: match args.mode {
            ModeArg::Auto => Mode::Auto,
            ModeArg::Suite => Mode::Suite,
            ModeArg::Class => Mode::Class,
            ModeArg::Method => Mode::Method,
        },
        only_changed: args.changed,
    };
    let run_args = RunArgs {
        project: args.project.clone(),
        ladder: LadderArgs {
            timeout: args.timeout,
            ..LadderArgs::default()
        },
        against: AgainstArgs {
            base: args.base.clone(),
            intersect: args.changed.then_some(When::Always),
            check_base: None,
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
    examine(&run_args, Invocation::of_nio, move |session: Session| {
        session.hunt(hunt)
    })
}
