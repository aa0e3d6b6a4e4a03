//! `unflake serve`: the triage board and the team's server; `unflake token`: who may use it.

mod demo;
mod token;

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::owners::Owners;
use unflake_core::quarantine::Release;
use unflake_dashboard::tokens::TokenFile;
use unflake_dashboard::{Limits, Options, serve as listen_and_answer};
use unflake_history::periods::PeriodWish;

use crate::Exit;
use crate::config::Config;
use crate::flags::history::PeriodArgs;
use crate::flags::serve::ServeArgs;
use crate::history::place;
use crate::verbs::history::question::to_wish;

pub(crate) use token::token;

/// The default address of the board.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7777);

/// The files in which GitHub and GitLab look for owners.
const OWNERS: [&str; 4] = [
    ".github/CODEOWNERS",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
];

pub(crate) fn serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    let folder = place::here()?;
    let (config, config_path) = Config::load(args.config.as_deref(), &folder)?;
    let typed = args.place.store.as_deref();
    // Gone with the server.
    let scratch = (args.demo && typed.is_none()).then(tempfile::tempdir);
    let scratch = scratch
        .transpose()
        .context("cannot make a temporary folder")?;
    let store: PathBuf = match &scratch {
        Some(scratch) => scratch.path().join("history.db"),
        None => place::find(typed, &folder, &config, config_path.as_deref()).into(),
    };
    if args.demo {
        demo::fill(&store)?;
    }
    let tokens = args
        .tokens
        .as_ref()
        .map(|path| TokenFile::open(path.as_std_path()));
    let periods = if args.demo {
        PeriodWish::default()
    } else {
        to_wish(&PeriodArgs::default(), &config)?
    };
    let options = Options {
        store: store.clone(),
        tokens: tokens.transpose()?,
        periods,
        owners: if args.demo {
            Owners::parse(demo::OWNERS)
        } else {
            read_owners(args.owners.as_deref(), &folder)?
        },
        release: Release::DEFAULT,
        limits: Limits {
            body: usize::from(args.max_report) * 1024 * 1024,
            ..Limits::default()
        },
    };
    let told = |address: SocketAddr| {
        let text = format!("serving {} on http://{address}", store.display());
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr(), "{text}\npress Ctrl-C to end");
    };
    listen_and_answer(args.listen.unwrap_or(LISTEN), options, told)?;
    Ok(Exit::Clean)
}

/// The owners of a file that was named, or of the one in the repository around us.
fn read_owners(named: Option<&Utf8Path>, folder: &Utf8Path) -> anyhow::Result<Owners> {
    let read = |path: &Utf8Path| {
        fs::read_to_string(path).with_context(|| format!("cannot read the owners in {path}"))
    };
    if let Some(named) = named {
        return Ok(Owners::parse(&read(named)?));
    }
    let is_root = |folder: &&Utf8Path| folder.join(".git").exists();
    let root = folder.ancestors().find(is_root).unwrap_or(folder);
    let found: Option<Utf8PathBuf> = OWNERS
        .iter()
        .map(|name| root.join(name))
        .find(|path| path.is_file());
    found.map_or_else(
        || Ok(Owners::default()),
        |path| Ok(Owners::parse(&read(&path)?)),
    )
}
