//! Where the history of a project is.

use std::env;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use unflake_history::engine::{self, Missing};
use unflake_history::store::Store;

use crate::config::Config;
use crate::view::explain::Trouble;

/// The history's place in a project.
const DEFAULT: &str = ".unflake/history.db";

/// The folder that we are in.
pub(crate) fn here() -> anyhow::Result<Utf8PathBuf> {
    let folder = env::current_dir().context("cannot tell the current folder")?;
    Ok(Utf8PathBuf::from_path_buf(folder).map_err(|path| Trouble::FolderName { path })?)
}

/// The history that belongs to a folder: the one that was typed, or that `unflake.toml` names, or the one in
/// the folder of `unflake.toml`, else in the root of the repository, else here.
pub(crate) fn find(
    typed: Option<&Utf8Path>,
    folder: &Utf8Path,
    config: &Config,
    config_path: Option<&Utf8Path>,
) -> Utf8PathBuf {
    if let Some(typed) = typed {
        return folder.join(typed);
    }
    let of_config = config_path.and_then(Utf8Path::parent);
    let of_config = of_config.map(|parent| folder.join(parent));
    if let (Some(base), Some(store)) = (&of_config, &config.history.store) {
        return base.join(store);
    }
    let is_root = |folder: &&Utf8Path| folder.join(".git").exists();
    let root = of_config.or_else(|| folder.ancestors().find(is_root).map(Utf8Path::to_owned));
    root.unwrap_or_else(|| folder.to_owned()).join(DEFAULT)
}

/// Opens the history of the current folder.
pub(crate) fn open(
    typed: Option<&Utf8Path>,
    config: Option<&Utf8Path>,
    missing: Missing,
) -> anyhow::Result<(Box<dyn Store>, Config)> {
    let folder = here()?;
    let (config, config_path) = Config::load(config, &folder)?;
    let path = find(typed, &folder, &config, config_path.as_deref());
    Ok((engine::open(path.as_std_path(), missing)?, config))
}
