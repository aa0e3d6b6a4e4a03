//! The blocks of changed Python files, as the project's own interpreter reads them.

use std::io::{self, Write};
use std::process::{Command as Process, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use unflake_core::change::{Function, Lines, Source};

/// Compares two versions of each file. `None` for a pair that the interpreter cannot parse.
///
/// `runner` is the folder with the runner's files.
pub(crate) fn compare_sources(
    python: &Utf8Path,
    runner: &Utf8Path,
    pairs: &[(Utf8PathBuf, Utf8PathBuf)],
) -> io::Result<Vec<Option<Source>>> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    // Isolated: nothing of the project may run here.
    let mut process = Process::new(python)
        .args(["-I", "-S", "-B"])
        .arg(runner.join("unflake_blocks.py"))
        .current_dir(runner)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let asked = serde_json::to_vec(pairs)?;
    let mut stdin = process.stdin.take().expect("it is piped");
    // It reads all before it writes, so this cannot block for ever; if it dies, its output says so.
    let written = stdin.write_all(&asked);
    drop(stdin);
    let output = process.wait_with_output()?;
    written?;
    let read: Vec<Option<WireSource>> = serde_json::from_slice(&output.stdout)?;
    if read.len() != pairs.len() {
        return Err(io::Error::other("it answered for another number of files"));
    }
    Ok(read.into_iter().map(|one| one.map(to_source)).collect())
}

#[derive(Deserialize)]
struct WireSource {
    changed: bool,
    functions: Vec<WireFunction>,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    starts: Vec<u32>,
    first: u32,
    last: u32,
    changed: bool,
}

fn to_source(source: WireSource) -> Source {
    let functions = source.functions.into_iter().map(|function| Function {
        name: function.name,
        starts: function.starts,
        lines: Lines {
            first: function.first,
            last: function.last,
        },
        is_changed: function.changed,
    });
    Source {
        is_changed: source.changed,
        functions: functions.collect(),
    }
}
