//! Which project it is, what runs its tests, and how that is started.

use std::env;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use unflake_driver::framework::maven;
use unflake_driver::framework::maven::capture::capture;
use unflake_driver::framework::maven::debugger::Looking;
use unflake_driver::framework::project::Project;
use unflake_driver::framework::pytest;
use unflake_driver::framework::pytest::hash_seed::HashSeed;
use unflake_driver::framework::pytest::interpreter::find_interpreter;

use super::{bad_value, other_builds};
use crate::config::Config;
use crate::flags::args::{FrameworkArg, ProjectArgs};
use crate::view::explain::Trouble;

/// A project, its configuration, and where that is written.
pub(super) type Found = (Vec<Project>, Config, Option<Utf8PathBuf>);

/// A folder, its configuration, where that is written, and what runs its tests.
pub(super) struct Place {
    folder: Utf8PathBuf,
    config: Config,
    path: Option<Utf8PathBuf>,
    pub(super) framework: FrameworkArg,
    /// Whether the user said so.
    is_chosen: bool,
}

pub(super) fn find_place(args: &ProjectArgs) -> anyhow::Result<Place> {
    let folder = env::current_dir().context("cannot tell the current folder")?;
    let folder = Utf8PathBuf::from_path_buf(folder).map_err(|path| Trouble::FolderName { path })?;
    let (config, path) = Config::load(args.config.as_deref(), &folder)?;
    let framework = match (args.framework, config.run.framework.as_deref()) {
        (Some(framework), _) => Some(framework),
        (None, Some("pytest")) => Some(FrameworkArg::Pytest),
        (None, Some("maven")) => Some(FrameworkArg::Maven),
        (None, None) => None,
        (None, Some(_)) => {
            let path = path.clone().unwrap_or_default();
            return Err(bad_value(&path, "run.framework", "is \"pytest\" or \"maven\"").into());
        }
    };
    let is_chosen = framework.is_some();
    let framework = framework.unwrap_or_else(|| {
        if args.python.is_none() && folder.join("pom.xml").is_file() {
            FrameworkArg::Maven
        } else {
            FrameworkArg::Pytest
        }
    });
    Ok(Place {
        folder,
        config,
        path,
        framework,
        is_chosen,
    })
}

pub(super) fn read_project(args: &ProjectArgs) -> anyhow::Result<Found> {
    let Place {
        folder,
        config,
        path,
        framework,
        is_chosen,
    } = find_place(args)?;
    if framework == FrameworkArg::Maven {
        let projects = read_maven(&folder, &args.framework_args)?;
        return Ok((projects, config, path));
    }
    let from_file = config.run.python.as_ref().map(|python| {
        let base = path.as_deref().and_then(Utf8Path::parent);
        base.map_or_else(|| python.clone(), |base| base.join(python))
    });
    let is_named = is_chosen || args.python.is_some() || from_file.is_some();
    if !is_named && args.framework_args.is_empty() {
        other_builds::refuse(&folder)?;
    }
    let python = match args.python.clone().or(from_file) {
        Some(python) => resolve(&folder, &python)?,
        None => find_interpreter(&folder).ok_or(Trouble::NoPython)?,
    };
    let project = Project::Pytest(pytest::Project {
        folder,
        python,
        args: args.framework_args.clone(),
        import_first: Vec::new(),
        temporary: None,
        hash_seed: HashSeed::draw(),
    });
    Ok((vec![project], config, path))
}

/// Asks Maven how it runs the tests, which builds them.
fn read_maven(folder: &Utf8Path, args: &[String]) -> anyhow::Result<Vec<Project>> {
    if !folder.join("pom.xml").is_file() && !args.iter().any(|arg| arg == "-f" || arg == "--file") {
        let folder = folder.to_owned();
        return Err(Trouble::NoPom { folder }.into());
    }
    // Without a home, the answer is kept in the temporary folder, as long as the machine keeps that.
    let cache = cache_folder().unwrap_or_else(|| {
        Utf8PathBuf::from_path_buf(env::temp_dir()).unwrap_or_else(|_| Utf8PathBuf::from("/tmp"))
    });
    let told = |command: &str| {
        // If standard error is closed, the user does not want to know.
        let _unheard = writeln!(std::io::stderr(), "building the tests: {command}");
    };
    let modules = capture(folder, args, &cache.join("unflake/maven"), told)?;
    let projects = modules.into_iter().map(|module| {
        Project::Maven(maven::Project {
            folder: folder.to_owned(),
            args: args.to_vec(),
            module: Arc::new(module),
            moved: None,
            temporary: None,
            record: None,
            only: Vec::new(),
            lists_classes: false,
            looking: Looking::default(),
        })
    });
    Ok(projects.collect())
}

/// The user's folder for what can be made again.
pub(crate) fn cache_folder() -> Option<Utf8PathBuf> {
    let named = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let cache = named("XDG_CACHE_HOME").map(Utf8PathBuf::from);
    cache.or_else(|| Some(Utf8PathBuf::from(named("HOME")?).join(".cache")))
}

/// A given interpreter may be a path, a virtualenv's folder, or a command on the path.
fn resolve(folder: &Utf8Path, python: &Utf8Path) -> Result<Utf8PathBuf, Trouble> {
    let path = folder.join(python);
    let inside = path.join("bin/python");
    if inside.is_file() {
        return Ok(inside);
    }
    if path.is_file() {
        return Ok(path);
    }
    let is_command = !python.as_str().contains('/');
    let folders = env::var("PATH").unwrap_or_default();
    let mut found = folders
        .split(':')
        .map(|place| Utf8Path::new(place).join(python));
    match found.find(|candidate| candidate.is_file()) {
        Some(found) if is_command => Ok(found),
        Some(_) | None => Err(Trouble::NoSuchPython {
            python: python.to_owned(),
        }),
    }
}
