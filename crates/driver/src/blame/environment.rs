//! An environment of the base's own where a change moved what is installed: the user's packages, with those that the
//! change has replaced as they were, and without those that came with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use unflake_core::blame::question::BaseEnvironment;
use unflake_core::rules::says_installed;

use crate::framework::pytest;
use crate::framework::pytest::requirements::{Delta, Requirements};
use crate::git::difference::Difference;
use crate::git::worktree::BaseTree;
use crate::lab::session::Halt;
use crate::vm::errand::{Errand, Limit};

/// What it is made from.
pub(crate) struct Place<'a> {
    /// The project at the base.
    pub(crate) project: &'a pytest::Project,
    /// What changed.
    pub(crate) difference: &'a Difference,
    /// The files of the base.
    pub(crate) tree: &'a BaseTree,
    /// The folder of this run, with the runner in it.
    pub(crate) run: &'a Utf8Path,
}

/// Why there is no environment.
enum Failure {
    /// In words.
    Why(String),
    /// The run was stopped.
    Halt(Halt),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Why(why)
    }
}

/// What a file asks for at the base, and here.
type Versions = (Requirements, Requirements);

/// An environment that was made for the base.
pub(crate) struct Own {
    /// Its interpreter.
    pub(crate) python: Utf8PathBuf,
    /// What of the user's it stands for, files and folders: whoever uses those there has gone round it.
    pub(crate) replaced: Vec<Utf8PathBuf>,
}

/// A new environment, if there is one, and what the base runs with.
pub(crate) fn make(
    place: &Place<'_>,
    limit: &Limit,
) -> Result<(Option<Own>, BaseEnvironment), Halt> {
    let changes = place.difference.changes.iter();
    let moved = changes.map(|change| change.file.path.clone());
    let moved: Vec<String> = moved.filter(|path| says_installed(path)).collect();
    let mut environment = BaseEnvironment::default();
    let mut versions = Vec::new();
    for path in &moved {
        match place.versions(path) {
            // It changed in words only.
            Ok((base, here)) if base == here => environment.settled.push(path.clone()),
            Ok(both) => versions.push(both),
            Err(why) => environment.why = environment.why.or(Some(why)),
        }
    }
    if versions.is_empty() || environment.why.is_some() {
        return Ok((None, environment));
    }
    match place.build(&versions, limit) {
        Ok(own) => {
            environment.settled = moved;
            Ok((own, environment))
        }
        Err(Failure::Why(why)) => {
            environment.why = Some(why);
            Ok((None, environment))
        }
        Err(Failure::Halt(halt)) => Err(halt),
    }
}

impl Place<'_> {
    /// Two versions of a changed file.
    fn versions(&self, path: &str) -> Result<Versions, String> {
        let read = |root: &Utf8Path, what: &str| {
            let text = fs::read_to_string(root.join(path));
            let text = text.map_err(|_| format!("{path} is not {what}"))?;
            Requirements::read(path, &text).ok_or_else(|| format!("{path} is not understood"))
        };
        let root = &self.difference.root;
        Ok((
            read(self.tree.path(), "at the base")?,
            read(root, "here any more")?,
        ))
    }

    /// Makes it; `None` if the user's is as that of the base would be.
    fn build(&self, versions: &[Versions], limit: &Limit) -> Result<Option<Own>, Failure> {
        let folder = self.folder();
        let prepared = fs::create_dir_all(folder.join("tmp"));
        prepared.map_err(|error| format!("it has no place: {error}"))?;
        let user = &self.project.python;
        let mut venv = self.command(user);
        venv.args(["-m", "venv", "--without-pip", folder.join("venv").as_str()]);
        perform("python -m venv", &mut venv, limit)?;
        perform("the copy", &mut self.helper(user, "lay"), limit)?;
        let installed: BTreeMap<String, String> = self.said("installed.json")?;
        let mut delta = Delta::default();
        for (base, here) in versions {
            let one = base.delta(here, &installed);
            let one = one.map_err(|what| format!("`{what}` is not understood"))?;
            delta.changed.extend(one.changed);
            delta.added.extend(one.added);
            delta.absent.extend(one.absent);
        }
        let (named, pins) = self.asked_at_base();
        delta.added.retain(|name| !named.contains(name));
        if delta == Delta::default() {
            return Ok(None);
        }
        let python = folder.join("venv/bin/python");
        if !delta.changed.is_empty() {
            self.install(&python, versions, &delta, &installed, limit)?;
        }
        let Delta {
            changed,
            added,
            absent,
        } = &delta;
        let wanted = json!({"changed": changed, "added": added, "absent": absent, "pins": pins});
        self.write("wanted.json", &wanted.to_string())?;
        perform("the check", &mut self.helper(&python, "settle"), limit)?;
        let complaints: Vec<String> = self.said("settled.json")?;
        if let Some(complaint) = complaints.into_iter().next() {
            return Err(Failure::Why(complaint));
        }
        let replaced = self.said("replaced.json")?;
        Ok(Some(Own { python, replaced }))
    }

    /// The names of the packages that all files of the base ask for, and the versions that they pin.
    fn asked_at_base(&self) -> (BTreeSet<String>, BTreeMap<String, String>) {
        let difference = self.difference;
        let changed = difference.changes.iter().map(|change| &change.file.path);
        let files: BTreeSet<&String> = difference.known.iter().chain(changed).collect();
        let mut asked = (BTreeSet::new(), BTreeMap::new());
        for path in files.into_iter().filter(|path| says_installed(path)) {
            // One that the base does not have, or that nobody understands, asks for nothing that we know of.
            let text = fs::read_to_string(self.tree.path().join(path)).ok();
            let read = text.and_then(|text| Requirements::read(path, &text));
            let Some(read) = read else { continue };
            let pins = read.pins();
            asked
                .1
                .extend(pins.map(|(name, pin)| (name.clone(), pin.clone())));
            if !read.is_constraint {
                asked.0.extend(read.packages.into_keys());
            }
        }
        asked
    }

    /// Installs what the base asks for otherwise, with pip and the user's configuration of it, or with uv.
    fn install(
        &self,
        python: &Utf8Path,
        versions: &[Versions],
        delta: &Delta,
        installed: &BTreeMap<String, String>,
        limit: &Limit,
    ) -> Result<(), Failure> {
        let options = versions.iter().flat_map(|(base, _)| &base.options);
        let texts = delta.changed.iter().map(|(_, text)| text);
        let lines: Vec<&str> = options.chain(texts).map(String::as_str).collect();
        self.write("wanted.txt", &(lines.join("\n") + "\n"))?;
        let wanted = self.folder().join("wanted.txt");
        if installed.contains_key("pip") {
            let mut pip = self.command(python);
            pip.args(["-m", "pip", "install", "--no-input", "--retries", "1"])
                .args(["--disable-pip-version-check", "-r", wanted.as_str()])
                // These would have it installed elsewhere.
                .env("PIP_USER", "0")
                .env_remove("PIP_TARGET")
                .env_remove("PIP_PREFIX")
                .env_remove("PIP_ROOT");
            return perform("pip", &mut pip, limit);
        }
        // It does not look at the user's packages: what the others need is to be as it is there.
        let is_free = |name: &str| !delta.changed.iter().any(|(changed, _)| changed == name);
        let same = installed.iter().filter(|(name, _)| is_free(name));
        let same: Vec<String> = same
            .map(|(name, version)| format!("{name}=={version}\n"))
            .collect();
        self.write("same.txt", &same.concat())?;
        let same = self.folder().join("same.txt");
        let mut uv = self.command(Utf8Path::new("uv"));
        uv.args(["pip", "install", "--python", python.as_str()])
            .args(["-r", wanted.as_str(), "-c", same.as_str()]);
        perform("uv", &mut uv, limit)
    }

    /// A step of the runner's own program for this.
    fn helper(&self, python: &Utf8Path, step: &str) -> Command {
        let mut command = self.command(python);
        command
            .arg(self.run.join("runner/unflake_environment.py"))
            .args([step, self.folder().as_str()]);
        command
    }

    /// A program in the project's folder at the base that leaves nothing elsewhere.
    fn command(&self, program: &Utf8Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.project.folder)
            .env_remove("VIRTUAL_ENV")
            .env("TMPDIR", self.folder().join("tmp"));
        command
    }

    fn folder(&self) -> Utf8PathBuf {
        self.run.join("base-environment")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let written = fs::write(self.folder().join(name), text);
        written.map_err(|error| format!("{name} cannot be written: {error}"))
    }

    /// What the program has written down.
    fn said<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let text = fs::read_to_string(self.folder().join(name));
        let said = text.map_err(|error| error.to_string());
        let said = said.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
        said.map_err(|error| format!("{name} cannot be read: {error}"))
    }
}

/// Runs a command to its good end.
fn perform(what: &str, command: &mut Command, limit: &Limit) -> Result<(), Failure> {
    let why = match limit.run(command) {
        Ok(Errand::Interrupted) => return Err(Failure::Halt(Halt::Interrupted)),
        Ok(Errand::Ended { status, .. }) if status.success() => return Ok(()),
        Ok(Errand::Ended { output, .. }) => {
            let mut lines = output.lines().filter(|line| !line.trim().is_empty());
            let error = lines
                .clone()
                .find(|line| line.to_lowercase().starts_with("error"));
            let line = error.or_else(|| lines.next_back()).unwrap_or_default();
            format!("{what} failed: {}", line.trim())
        }
        Ok(Errand::TooLate { after }) => {
            format!("{what} had not ended after {:.0} s", after.as_secs_f64())
        }
        Err(error) => format!("{what} cannot be started: {error}"),
    };
    Err(Failure::Why(why))
}
