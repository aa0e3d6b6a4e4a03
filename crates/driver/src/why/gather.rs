//! Gathers the traces of runs into ledgers: of runs that were just made, or of two folders.

use std::fs;
use std::io;
use std::sync::mpsc::sync_channel;
use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::failure::Fingerprint;
use unflake_core::sequential::Tally;
use unflake_core::trial::Trial;
use unflake_core::why::enough::is_enough;
use unflake_core::why::ledger::{Ledger, Side};

use crate::lab::session::Halt;
use crate::lab::start_error::StartError;
use crate::why::trace::file::{TraceError, read_trace};

/// Failing runs that failed in the same way.
#[derive(Debug)]
pub struct Failures {
    /// The message of one of them.
    pub message: String,
    /// The number of failing runs.
    pub runs: u32,
    /// The record of them and of the passing runs.
    pub ledger: Ledger,
}

/// A traced run, and where its trace is.
struct Run {
    side: Side,
    message: String,
    fingerprint: Fingerprint,
    trace: Utf8PathBuf,
}

/// The traced runs so far.
#[derive(Default)]
pub(crate) struct Bench {
    runs: Vec<Run>,
    /// All of them, whatever failed.
    ledger: Ledger,
    pub(crate) neither: u32,
    pub(crate) cut: u32,
    pub(crate) traced: Tally,
}

impl Bench {
    /// Whether there are enough traces to tell chance from cause.
    pub(crate) fn is_enough(&self) -> bool {
        let (passing, failing) = (
            self.ledger.runs(Side::Passing),
            self.ledger.runs(Side::Failing),
        );
        is_enough(passing, failing, self.ledger.epochs())
    }

    pub(crate) fn take(
        &mut self,
        trial: &Trial,
        trace: Option<Utf8PathBuf>,
        keep: Option<&Utf8Path>,
    ) -> Result<(), Halt> {
        let side = if trial.outcome.is_failure() {
            Side::Failing
        } else if trial.outcome.is_pass() {
            Side::Passing
        } else {
            self.neither += 1;
            return Ok(());
        };
        match side {
            Side::Failing => self.traced.hits += 1,
            Side::Passing => self.traced.misses += 1,
        }
        let Some(trace) = trace else {
            self.cut += 1;
            return Ok(());
        };
        if let Some(keep) = keep {
            keep_trace(&trace, keep, side).map_err(StartError::Scratch)?;
        }
        // The trace is ours, from this very run: if it cannot be read, it is as good as lost, and the report says so.
        match read_trace(&trace) {
            Ok(recorded) => {
                self.cut += u32::from(!recorded.is_whole);
                self.ledger.add(&recorded.trace, side);
                let message = trial.account.message.clone();
                self.runs.push(Run {
                    side,
                    message,
                    fingerprint: Fingerprint::of(&trial.outcome, &trial.account),
                    trace,
                });
            }
            Err(
                TraceError::Read { .. }
                | TraceError::Foreign { .. }
                | TraceError::None { .. }
                | TraceError::Broken { .. },
            ) => {
                self.cut += 1;
            }
        }
        Ok(())
    }

    /// The number of passing runs with a trace.
    pub(crate) fn passing(&self) -> u32 {
        self.ledger.runs(Side::Passing)
    }

    /// The failing runs by what failed.
    pub(crate) fn into_failures(self) -> Result<Vec<Failures>, Halt> {
        by_fingerprint(&self.runs, self.ledger)
            .map_err(|error| Halt::from(StartError::Scratch(io::Error::other(error))))
    }
}

fn keep_trace(trace: &Utf8Path, keep: &Utf8Path, side: Side) -> io::Result<()> {
    let folder = keep.join(match side {
        Side::Passing => "passing",
        Side::Failing => "failing",
    });
    fs::create_dir_all(&folder)?;
    let name = trace.file_name().unwrap_or("trace");
    fs::copy(trace, folder.join(name)).map(drop)
}

/// Failing runs by what failed, each group with the passing runs; `all` has them together.
fn by_fingerprint(runs: &[Run], all: Ledger) -> Result<Vec<Failures>, TraceError> {
    let mut groups: Vec<(&Fingerprint, Vec<&Run>)> = Vec::new();
    for run in runs.iter().filter(|run| run.side == Side::Failing) {
        let known = groups
            .iter_mut()
            .find(|(known, _)| **known == run.fingerprint);
        match known {
            Some((_, group)) => group.push(run),
            None => groups.push((&run.fingerprint, vec![run])),
        }
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    let failures = |group: &[&Run], ledger: Ledger| Failures {
        message: group[0].message.clone(),
        runs: ledger.runs(Side::Failing),
        ledger,
    };
    if let [(_, group)] = groups.as_slice() {
        return Ok(vec![failures(group, all)]);
    }
    let passing = || runs.iter().filter(|run| run.side == Side::Passing);
    let mut found = Vec::new();
    for (_, group) in &groups {
        let wanted = passing().chain(group.iter().copied());
        let files = wanted.map(|run| (run.trace.clone(), run.side)).collect();
        // Traces that were cut off were counted when they were read for the first time.
        found.push(failures(group, add_all(files, &mut 0)?));
    }
    Ok(found)
}

/// Traces that were made elsewhere: a folder of passing runs and one of failing runs.
pub fn read_folders(passing: &Utf8Path, failing: &Utf8Path) -> Result<(Ledger, u32), TraceError> {
    let mut files = Vec::new();
    for (folder, side) in [(passing, Side::Passing), (failing, Side::Failing)] {
        let failed = |source| TraceError::Read {
            path: folder.to_owned(),
            source,
        };
        let mut paths = Vec::new();
        for entry in folder.read_dir_utf8().map_err(failed)? {
            let path = entry.map_err(failed)?.into_path();
            if matches!(path.extension(), Some("trace" | "csv")) {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            let path = folder.to_owned();
            return Err(TraceError::None { path });
        }
        paths.sort();
        files.extend(paths.into_iter().map(|path| (path, side)));
    }
    let mut cut = 0;
    let ledger = add_all(files, &mut cut)?;
    Ok((ledger, cut))
}

/// Reads traces in a thread of their own, while those before them are taken in: no more than two wait in
/// memory. `cut` counts those that are not whole.
fn add_all(files: Vec<(Utf8PathBuf, Side)>, cut: &mut u32) -> Result<Ledger, TraceError> {
    let (sender, traces) = sync_channel(1);
    let reader = thread::spawn(move || {
        for (path, side) in files {
            let is_over = |sent: Result<(), _>| sent.is_err();
            // The receiver has gone because of an error that was sent before.
            if is_over(sender.send(read_trace(&path).map(|recorded| (recorded, side)))) {
                break;
            }
        }
    });
    let mut ledger = Ledger::default();
    for trace in traces {
        let (recorded, side) = trace?;
        *cut += u32::from(!recorded.is_whole);
        ledger.add(&recorded.trace, side);
    }
    reader
        .join()
        .expect("reading ends with a result and not with a panic");
    Ok(ledger)
}
