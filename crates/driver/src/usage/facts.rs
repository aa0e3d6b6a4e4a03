//! The record of a watched run about itself, and its meaning in terms of the repository.
//!
//! `docs/protocol.md` lists the facts. A line that is cut, or that says something unknown, counts as a
//! part of the run that was missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::SystemTime;

use camino::Utf8Path;
use serde_json::Value;
use unflake_core::usage::{Asked, Usage};

use crate::usage::classes::sources_of_loaded;
use crate::usage::programs::unfollowed_programs;
use crate::usage::reader::Reader;

/// Everything that a watched run wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    uses: BTreeSet<(Kind, String)>,
    /// The modules that ran, as file and name.
    modules: BTreeSet<(String, String)>,
    /// The code that ran, as file and first line.
    code: BTreeSet<(String, u32)>,
    /// The constants of sources, which a compiler copies into others.
    constants: BTreeMap<String, String>,
    /// The folders of the sources whose classes are watched, where only code is.
    only_code: BTreeSet<String>,
    /// Sources of classes that came out of a jar, as jar and source.
    jars: BTreeSet<(String, String)>,
    /// All that was on the search path of modules ever.
    search_path: BTreeSet<String>,
    /// The modules that were looked for, each with its folders; none means the search path.
    sought: BTreeSet<(String, Vec<String>)>,
    pub(crate) spawned: Vec<Spawned>,
    /// Processes that were followed, with their parents.
    pub(crate) processes: Vec<(i64, i64)>,
    blind: Option<String>,
    is_by_line: bool,
    /// The processes on this machine that it talked to and did not start.
    talked: BTreeSet<String>,
    missed: BTreeSet<String>,
}

/// A program that a run started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spawned {
    /// The process that started it.
    pub(crate) by: i64,
    /// The program, then its arguments with its own name first.
    pub(crate) words: Vec<String>,
}

/// The way in which a path was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Read,
    /// A source, read to be imported or shown.
    Source,
    LookedAt,
    /// Looked for by the framework.
    Telling,
    Measured,
    Listed,
    Scanned,
    Loaded,
}

/// The facts about the repository that are needed to make sense of paths.
pub(crate) struct Ground<'a> {
    /// Its root, without symbolic links.
    pub(crate) root: &'a Utf8Path,
    /// The files that git knows in the work tree, new ones included.
    pub(crate) known: &'a BTreeSet<String>,
    /// The files among them that git is told not to look at.
    pub(crate) hidden: &'a BTreeSet<String>,
    /// A checkout of the base, if there is one.
    pub(crate) base_tree: Option<&'a Utf8Path>,
    /// The beginning of the run: younger files were made by the run.
    pub(crate) run_began: SystemTime,
    /// The changed files that somebody opened meanwhile; `None` if the system did not watch.
    pub(crate) opened: Option<&'a BTreeSet<String>>,
    /// The file of the test that ran, if it was one alone.
    pub(crate) test: Option<&'a Utf8Path>,
}

impl Facts {
    /// Reads the file that a watched run has written so far.
    pub(crate) fn read(file: &Utf8Path) -> io::Result<Self> {
        Ok(Self::of(&fs::read_to_string(file)?))
    }

    /// The facts that it had written when this number of tests had ended, as if it had run in `to` and not in `from`.
    pub(crate) fn read_moved(
        file: &Utf8Path,
        from: &Utf8Path,
        to: &Utf8Path,
        tests: usize,
    ) -> io::Result<Self> {
        let quoted = |path: &Utf8Path| {
            let quoted = Value::from(path.as_str()).to_string();
            quoted.trim_matches('"').to_owned()
        };
        let mut text = fs::read_to_string(file)?;
        if let Some(end) = text.find(&format!("[\"tested\", {tests}]\n")) {
            text.truncate(end);
        }
        text = text.replace(&quoted(from), &quoted(to));
        if from != to
            && let (Some(from), Some(to)) = (from.parent(), to.parent())
            && to != "/"
        {
            // Beside a copy stand links to what stands beside the original.
            text = text.replace(&quoted(from), &quoted(to));
        }
        Ok(Self::of(&text))
    }

    /// Adds what another file of the same run holds.
    pub(crate) fn add(&mut self, more: Self) {
        self.uses.extend(more.uses);
        self.modules.extend(more.modules);
        self.code.extend(more.code);
        self.constants.extend(more.constants);
        self.only_code.extend(more.only_code);
        self.jars.extend(more.jars);
        self.search_path.extend(more.search_path);
        self.sought.extend(more.sought);
        self.spawned.extend(more.spawned);
        self.processes.extend(more.processes);
        self.blind = self.blind.take().or(more.blind);
        self.is_by_line |= more.is_by_line;
        self.talked.extend(more.talked);
        self.missed.extend(more.missed);
    }

    fn of(text: &str) -> Self {
        let mut facts = Self::default();
        for line in text.lines() {
            if facts.take(line).is_none() {
                let line = line.chars().take(200).collect::<String>();
                facts.missed.insert(format!("unreadable: {line}"));
            }
        }
        facts
    }

    /// The constants of a source, if there was such a source.
    pub(crate) fn constants_of(&self, file: &Utf8Path) -> Option<&str> {
        self.constants.get(file.as_str()).map(String::as_str)
    }

    /// Adds the classes in the log of a JVM, if there is one, of which the runner may not have said the last.
    pub(crate) fn add_loaded(&mut self, log: &Utf8Path) -> io::Result<()> {
        if !self.only_code.is_empty() && log.is_file() {
            let log = String::from_utf8_lossy(&fs::read(log)?).into_owned();
            self.modules
                .extend(sources_of_loaded(&log, &self.only_code));
        }
        Ok(())
    }

    /// Sources of classes that came out of a jar, as jar and source.
    pub(crate) fn jars(&self) -> &BTreeSet<(String, String)> {
        &self.jars
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let fact: Vec<Value> = serde_json::from_str(line).ok()?;
        let (what, rest) = fact.split_first()?;
        let text = |at: usize| rest.get(at)?.as_str().map(ToOwned::to_owned);
        let number = |at: usize| rest.get(at)?.as_i64();
        let texts = |from: usize| -> Vec<String> {
            let more = rest.iter().skip(from).filter_map(Value::as_str);
            more.map(ToOwned::to_owned).collect()
        };
        let mut used = |kind: Kind| -> Option<()> {
            self.uses.insert((kind, text(0)?));
            Some(())
        };
        match what.as_str()? {
            "whole" => used(Kind::Whole)?,
            "read" => used(Kind::Read)?,
            "source" => used(Kind::Source)?,
            "looked" => used(Kind::LookedAt)?,
            "telling" => used(Kind::Telling)?,
            "measured" => used(Kind::Measured)?,
            "listed" => used(Kind::Listed)?,
            "scanned" => used(Kind::Scanned)?,
            "loaded" => used(Kind::Loaded)?,
            "module" => {
                self.modules.insert((text(0)?, text(1)?));
            }
            "code" => {
                let line = u32::try_from(number(1)?).unwrap_or_default();
                self.code.insert((text(0)?, line));
            }
            "constants" => {
                self.constants.insert(text(0)?, text(1)?);
            }
            "only-code" => {
                self.only_code.insert(text(0)?);
            }
            "jar" => {
                self.jars.insert((text(0)?, text(1)?));
            }
            "path" => {
                self.search_path.extend(texts(0));
            }
            "sought" => {
                self.sought.insert((text(0)?, texts(1)));
            }
            "spawned" => self.spawned.push(Spawned {
                by: number(0)?,
                words: texts(2),
            }),
            "process" => self.processes.push((number(0)?, number(1)?)),
            "blind" => self.blind = text(0),
            "lines" => self.is_by_line = true,
            "talked" => {
                self.talked.insert(text(0)?);
            }
            "missed" => {
                self.missed.insert(text(0)?);
            }
            "tested" => {}
            _ => return None,
        }
        Some(())
    }

    /// The things that the run used, in terms of the repository.
    pub(crate) fn to_usage(&self, ground: &Ground<'_>) -> Usage {
        let mut reader = Reader::new(ground);
        for (file, name) in &self.modules {
            reader.file(file, |file| file.is_imported = true);
            let top = name.split('.').next().unwrap_or(name);
            reader.sought(top, &self.search_path);
        }
        for (file, line) in &self.code {
            reader.file(file, |file| {
                file.ran.insert(*line);
            });
        }
        for (kind, path) in &self.uses {
            match kind {
                Kind::Whole | Kind::Read => reader.file(path, |file| file.is_read = true),
                Kind::Source => reader.source(path),
                Kind::LookedAt => reader.looked_at(path, Asked::Presence),
                Kind::Telling => reader.telling(path),
                Kind::Measured => reader.looked_at(path, Asked::Status),
                Kind::Listed => reader.listed(path),
                Kind::Scanned => reader.scanned(path),
                Kind::Loaded => reader.loaded(path),
            }
        }
        for (name, folders) in &self.sought {
            let leaf = name.rsplit('.').next().unwrap_or(name);
            if folders.is_empty() {
                reader.sought(leaf, &self.search_path);
            } else {
                reader.sought(leaf, folders);
            }
        }
        reader.only_code(&self.only_code);
        reader.usage.unfollowed = unfollowed_programs(&self.spawned, &self.processes);
        reader.usage.blind.clone_from(&self.blind);
        reader.usage.is_by_line = self.is_by_line;
        reader.usage.talked.clone_from(&self.talked);
        reader.usage.missed.clone_from(&self.missed);
        reader.opened();
        reader.usage
    }
}
