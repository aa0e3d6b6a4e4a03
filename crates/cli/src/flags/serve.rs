//! What can be typed after `serve` and `token`.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand, ValueEnum};

use crate::flags::history::PlaceArgs;

pub(crate) const SERVE_HELP: &str = "\
The board shows the failures of the last day, the most suspicious first, and all tests with their flake \
rates. CI jobs send their reports to it with `unflake record --to URL`. The server needs a token file if \
other machines can reach its address.

Exit codes: 0 it was asked to end, and has stored all reports that it accepted; 2 bad usage; 3 it could \
not start.

Examples:
  unflake serve --demo                  look at it with a made-up history
  unflake serve                         this project's history, on http://127.0.0.1:7777
  unflake token add ci --role report
  unflake serve --listen 0.0.0.0:7777 --tokens .unflake/tokens.toml";

#[derive(Clone, Debug, Default, Parser)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: 127.0.0.1:7777]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Serve a made-up history; it is deleted at the end unless --store names a file for it
    #[arg(long)]
    pub(crate) demo: bool,
    /// The file of access tokens, as `unflake token add` writes it
    #[arg(long, value_name = "FILE", env = "UNFLAKE_TOKENS")]
    pub(crate) tokens: Option<Utf8PathBuf>,
    /// The file that says who owns which tests [default: CODEOWNERS, where GitHub and GitLab look for it]
    #[arg(long, value_name = "FILE")]
    pub(crate) owners: Option<Utf8PathBuf>,
    /// The largest report that is accepted, in megabytes
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_report: u16,
    /// The configuration file [default: unflake.toml in this folder or above it, within the repository]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<Utf8PathBuf>,
}

#[derive(Clone, Debug, Parser)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token, and show its secret once
    Add {
        /// The name of the token's user
        name: String,
        /// What the token allows; can be given several times
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<RoleArg>,
        #[command(flatten)]
        file: TokenFileArgs,
    },
    /// Revoke a token: it stops working at once
    Revoke {
        /// The name of the token's user
        name: String,
        #[command(flatten)]
        file: TokenFileArgs,
    },
    /// Show the tokens: their users, and what they allow
    List {
        #[command(flatten)]
        file: TokenFileArgs,
    },
}

#[derive(Clone, Debug, Parser)]
pub(crate) struct TokenFileArgs {
    /// The token file
    #[arg(
        long = "tokens",
        value_name = "FILE",
        env = "UNFLAKE_TOKENS",
        default_value = ".unflake/tokens.toml"
    )]
    pub(crate) path: Utf8PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// Send reports, and read the quarantine
    Report,
    /// Read pages and the API
    Read,
    /// Read, mark failures as faults, and put tests into quarantine
    Edit,
}
