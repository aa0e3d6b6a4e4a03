//! `unflake record`: adds what other tools reported to the history.

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::time::UNIX_EPOCH;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use unflake_history::dates;
use unflake_history::engine::Missing;
use unflake_history::import::{Columns, FileReport, Format, Input, Wish, import};
use unflake_history::run::Provenance;
use unflake_history::store::Store;
use unflake_history::store::source::Appended;

use super::question::to_json;
use super::send::Sender;
use super::table;
use crate::Exit;
use crate::flags::history::{FormatArg, InputArg, RecordArgs};
use crate::history::place;
use crate::view::explain::Trouble;
use crate::view::printable::printable;
use crate::view::stdout::print;

/// What is taken of a folder.
const ENDINGS: [&str; 5] = ["xml", "csv", "tsv", "ndjson", "jsonl"];

#[derive(Serialize)]
struct Answer {
    schema: &'static str,
    store: String,
    runs: u64,
    files: Vec<Row>,
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) file: String,
    pub(super) result: &'static str,
    pub(super) runs: u64,
    pub(super) error: Option<String>,
    pub(super) skipped: Vec<Skipped>,
}

#[derive(Serialize)]
pub(super) struct Skipped {
    pub(super) reason: String,
    pub(super) count: u64,
    pub(super) first: String,
}

/// What takes the runs.
enum Taker {
    Server(Sender),
    Store(Box<dyn Store>),
}

pub(crate) fn record(args: &RecordArgs) -> anyhow::Result<Exit> {
    let wish = to_wish(args)?;
    let (files, empty) = find_files(&args.files)?;
    let mut taker = if let Some(url) = &args.to {
        Taker::Server(Sender::new(url)?)
    } else {
        let (store, _) = place::open(args.place.store.as_deref(), None, Missing::Make)?;
        Taker::Store(store)
    };
    let bar = progress(files.len());
    // What leads to no file costs the others nothing.
    let nothing = |path: &Utf8PathBuf| failed(path, "no file is there".to_owned());
    let mut rows: Vec<Row> = empty.iter().map(nothing).collect();
    for file in &files {
        bar.set_message(printable(file.as_str()));
        let told = |text: &str| {
            let text = format!("{:>12}  {file}: {text}", "waiting");
            bar.suspend(|| drop(writeln!(std::io::stderr(), "{}", printable(&text))));
        };
        let row = match &mut taker {
            Taker::Server(sender) => sender.send(file, &wish, told),
            Taker::Store(store) => match open(file) {
                Ok(input) => to_row(&import(store.as_mut(), input, &wish)?),
                Err(error) => failed(file, format!("it cannot be read: {error}")),
            },
        };
        if args.format == FormatArg::Human && row.result != "added" && !bar.is_hidden() {
            // Whoever watches is told of trouble at once; it is in the summary too.
            bar.suspend(|| drop(writeln!(std::io::stderr(), "{}", line(&row))));
        }
        rows.push(row);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let is_clean = rows.iter().all(|row| row.error.is_none());
    let runs = rows.iter().map(|row| row.runs).sum();
    let store = match &taker {
        Taker::Server(sender) => sender.url().to_owned(),
        Taker::Store(store) => store.place(),
    };
    match args.format {
        FormatArg::Json => print(&to_json(&Answer {
            schema: "unflake.record/1",
            store,
            runs,
            files: rows,
        }))?,
        FormatArg::Human => print(&summary(&rows, runs, &store))?,
    }
    Ok(if is_clean {
        Exit::Clean
    } else {
        Exit::Problems
    })
}

fn to_wish(args: &RecordArgs) -> anyhow::Result<Wish> {
    let mut columns = Columns::default();
    for column in &args.column {
        columns.name(column).map_err(Trouble::Columns)?;
    }
    Ok(Wish {
        provenance: Provenance {
            revision: args.revision.clone(),
            branch: args.branch.clone(),
            release: args.release.clone(),
            environment: args.environment.clone(),
            job: args.job.clone(),
        },
        columns,
        format: args.input.map(|input| match input {
            InputArg::Junit => Format::Junit,
            InputArg::Csv => Format::Csv,
            InputArg::Ndjson => Format::JsonLines,
        }),
        now: dates::now(),
    })
}

/// The files that were named, those in folders that were, and those that match a pattern; and the folders and
/// patterns that lead to none. It is an error if all do.
fn find_files(named: &[Utf8PathBuf]) -> anyhow::Result<(Vec<Utf8PathBuf>, Vec<Utf8PathBuf>)> {
    let (mut files, mut empty) = (Vec::new(), Vec::new());
    for path in named {
        let mut found = Vec::new();
        if path.is_dir() {
            let folder = glob::Pattern::escape(path.as_str());
            for ending in ENDINGS {
                found.extend(matches(&format!("{folder}/**/*.{ending}"))?);
            }
            found.sort();
        } else if path == "-" || path.exists() || !path.as_str().contains(['*', '?', '[']) {
            found.push(path.clone());
        } else {
            found = matches(path.as_str())?;
        }
        if found.is_empty() {
            empty.push(path.clone());
        }
        files.extend(found);
    }
    match empty.first() {
        Some(path) if files.is_empty() => {
            Err(Trouble::NothingToRecord { path: path.clone() }.into())
        }
        _ => Ok((files, empty)),
    }
}

fn matches(pattern: &str) -> anyhow::Result<Vec<Utf8PathBuf>> {
    let found = glob::glob(pattern).with_context(|| format!("`{pattern}` is no pattern"))?;
    let mut files = Vec::new();
    for path in found {
        let path = path.with_context(|| format!("cannot look for `{pattern}`"))?;
        if path.is_file() {
            files.push(
                Utf8PathBuf::from_path_buf(path).map_err(|path| Trouble::FolderName { path })?,
            );
        }
    }
    Ok(files)
}

pub(super) fn open(file: &Utf8Path) -> std::io::Result<Input> {
    if file == "-" {
        return Ok(Input {
            name: "standard input".to_owned(),
            written: None,
            bytes: Box::new(std::io::stdin()),
        });
    }
    let data = fs::metadata(file)?;
    let written = data.modified().ok().and_then(|time| {
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    });
    Ok(Input {
        name: file.to_string(),
        written,
        bytes: Box::new(File::open(file)?),
    })
}

fn failed(file: &Utf8Path, error: String) -> Row {
    Row {
        file: file.to_string(),
        result: "failed",
        runs: 0,
        error: Some(error),
        skipped: Vec::new(),
    }
}

fn to_row(report: &FileReport) -> Row {
    let (result, runs, error) = match &report.result {
        Ok(Appended::Added { runs }) => ("added", *runs, None),
        Ok(Appended::Known | Appended::Refused) => ("known", 0, None),
        Err(error) => ("failed", 0, Some(error.to_string())),
    };
    let skipped = report.skips.iter().map(|(skip, count, first)| Skipped {
        reason: skip.reason().to_owned(),
        count,
        first: first.to_owned(),
    });
    Row {
        file: report.name.clone(),
        result,
        runs,
        error,
        skipped: skipped.collect(),
    }
}

/// One file in a line, and what was left out of it in more.
fn line(row: &Row) -> String {
    let mut text = match (&row.error, row.result) {
        (Some(error), _) => format!("{:>12}  {}: {}", "FAILED", row.file, error),
        (None, "known") => format!("{:>12}  {}", "known", row.file),
        (None, _) => format!("{:>12}  {}", table::count(row.runs), row.file),
    };
    for skipped in &row.skipped {
        let Skipped {
            reason,
            count,
            first,
        } = skipped;
        let count = table::count(*count);
        text = format!(
            "{text}\n{:>12}    left out {count}: {reason} (first: {first})",
            ""
        );
    }
    crate::view::printable::printable_lines(&text)
}

fn summary(rows: &[Row], runs: u64, store: &str) -> String {
    let mut text = String::new();
    for row in rows {
        text += &line(row);
        text += "\n";
    }
    let count = |result: &str| rows.iter().filter(|row| row.result == result).count();
    let told = format!(
        "{} runs added from {} of {} files; {} had been added before, {} could not be read\n{store}\n",
        table::count(runs),
        count("added"),
        rows.len(),
        count("known"),
        count("failed"),
    );
    text += &told;
    text
}

fn progress(files: usize) -> ProgressBar {
    if files < 2 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {wide_msg}");
    bar.set_style(style.expect("a fixed template"));
    bar
}
