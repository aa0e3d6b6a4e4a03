//! `unflake token`: makes and revokes what lets people and CI jobs use a server.

use std::fs;
use std::io::Write;

use anyhow::Context;
use unflake_dashboard::tokens::{Role, TokenFile, add, revoke};
use unflake_history::dates;

use crate::Exit;
use crate::flags::serve::{RoleArg, TokenArgs, TokenVerb};
use crate::view::printable::printable;
use crate::view::stdout::print;

pub(crate) fn token(args: &TokenArgs) -> anyhow::Result<Exit> {
    match &args.verb {
        TokenVerb::Add { name, roles, file } => {
            let roles: Vec<Role> = roles.iter().map(|role| to_role(*role)).collect();
            if let Some(folder) = file.path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {folder}"))?;
            }
            let today = dates::to_text(dates::day_of(dates::now()));
            let secret = add(file.path.as_std_path(), name, &roles, today)?;
            let told = "the secret is shown only this once; put it into UNFLAKE_TOKEN:";
            drop(writeln!(std::io::stderr(), "{told}"));
            print(&secret)?;
        }
        TokenVerb::Revoke { name, file } => {
            revoke(file.path.as_std_path(), name)?;
            print(&format!(
                "the token `{}` does not work any more",
                printable(name)
            ))?;
        }
        TokenVerb::List { file } => {
            let tokens = TokenFile::open(file.path.as_std_path())?.tokens();
            let lines = tokens.iter().map(|token| {
                let roles: Vec<&str> = token.roles.iter().map(|role| role.word()).collect();
                let (name, created) = (printable(&token.name), printable(&token.created));
                format!("{name:<24} {:<20} {created}", roles.join(", "))
            });
            print(&lines.collect::<Vec<String>>().join("\n"))?;
        }
    }
    Ok(Exit::Clean)
}

fn to_role(role: RoleArg) -> Role {
    match role {
        RoleArg::Report => Role::Report,
        RoleArg::Read => Role::Read,
        RoleArg::Edit => Role::Edit,
    }
}
