//! Runs out of files that other tools wrote: JUnit XML, CSV and JSON lines.
//!
//! A file is parsed in a thread of its own and written as it comes, so its size does not matter. What cannot
//! be used is counted with its reason; a file that is broken as a whole adds nothing.

mod columns;
mod delimited;
mod identity;
mod json_lines;
mod records;
mod reports;
mod skips;
mod times;
mod whole;
mod words;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

pub use columns::{ColumnError, Columns};
pub use identity::digest_of_report;
pub use skips::{Skip, Skips};
pub use times::parse_time;
pub use whole::Whole;

use crate::batch::{Batch, Packer};
use crate::junit::JunitError;
use crate::run::Provenance;
use crate::store::source::{Appended, Refused, Source};
use crate::store::{Store, StoreError};

/// How many batches may wait for the store.
const WAITING: usize = 32;

/// So much is read at once. It is small enough for the processor's cache, also beside all names.
const AT_ONCE: usize = 1 << 16;

/// A run may not be later than now by more than this, in milliseconds: clocks differ, but not by days.
const FUTURE: i64 = 86_400_000;

/// What is wanted of an import.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// What the runs get where the file says nothing.
    pub provenance: Provenance,
    /// Which columns hold what.
    pub columns: Columns,
    /// The format, if it is not to be guessed.
    pub format: Option<Format>,
    /// The present, in milliseconds since 1970.
    pub now: i64,
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JUnit XML in any dialect.
    Junit,
    /// Values between commas, semicolons or tabs, with a line of column names.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

/// What came of one file.
#[derive(Debug)]
pub struct FileReport {
    /// What it is called.
    pub name: String,
    /// What was done with it.
    pub result: Result<Appended, FileError>,
    /// What was left out of it.
    pub skips: Skips,
}

/// Why nothing of a file was taken.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is no report.
    #[error("{0}")]
    Junit(#[from] JunitError),
    /// Its columns are not those of runs.
    #[error("{0}")]
    Columns(#[from] ColumnError),
    /// It is in a code that we do not read.
    #[error("it is encoded as UTF-16: save it as UTF-8")]
    Encoding,
    /// Nothing is in it.
    #[error("it is empty")]
    Empty,
    /// There is no run in it that can be used.
    #[error("there is no run in it that can be used")]
    Nothing,
}

/// A file to import.
pub struct Input {
    /// What it is called.
    pub name: String,
    /// When it was written, in milliseconds since 1970: for runs whose time nothing says.
    pub written: Option<i64>,
    /// Its bytes.
    pub bytes: Box<dyn Read + Send>,
}

/// Imports one file.
pub fn import(store: &mut dyn Store, input: Input, wish: &Wish) -> Result<FileReport, StoreError> {
    let name = input.name.clone();
    let (sender, batches) = sync_channel(WAITING);
    thread::scope(|scope| {
        let parsing = scope.spawn(move || {
            let mut skips = Skips::default();
            // A store that wants no more has said so itself.
            let mut packer = Packer::new(|batch| sender.send(batch).map_err(|_| ()));
            let result = parse(input, wish, &mut packer, &mut skips);
            let result = result.inspect(|_| {
                let _ = packer.flush();
            });
            (result, skips)
        });
        let mut incoming = Incoming {
            name: name.clone(),
            batches: Some(batches),
            parsing: Some(parsing),
            end: None,
        };
        let appended = store.append(&mut incoming);
        let (digest, skips) = incoming.finish();
        let result = match (appended?, digest) {
            (_, Err(error)) => Err(error),
            (appended, Ok(_)) => Ok(appended),
        };
        Ok(FileReport {
            name,
            result,
            skips,
        })
    })
}

type Parsed = (Result<[u8; 32], FileError>, Skips);

/// A file that is being parsed.
struct Incoming<'scope> {
    name: String,
    batches: Option<Receiver<Batch>>,
    parsing: Option<thread::ScopedJoinHandle<'scope, Parsed>>,
    end: Option<Parsed>,
}

impl Incoming<'_> {
    fn wait(&mut self) -> &Parsed {
        let parsing = &mut self.parsing;
        // Without a receiver the parser cannot wait for one.
        self.batches = None;
        self.end.get_or_insert_with(|| {
            let parsing = parsing.take().expect("it is joined once");
            parsing.join().expect("the parser does not panic")
        })
    }

    fn finish(mut self) -> Parsed {
        self.wait();
        self.end.expect("it was waited for")
    }
}

impl Source for Incoming<'_> {
    fn next_batch(&mut self) -> Option<Batch> {
        self.batches.as_ref()?.recv().ok()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        let (digest, _) = self.wait();
        digest.as_ref().copied().map_err(|_| Refused)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

type Packing<'a, F> = &'a mut Packer<F>;

/// Reads a file to its end, and says what tells it from all others: its bytes, and what was said of it.
fn parse<F: FnMut(Batch) -> Result<(), ()>>(
    input: Input,
    wish: &Wish,
    packer: Packing<'_, F>,
    skips: &mut Skips,
) -> Result<[u8; 32], FileError> {
    let mut reader = BufReader::with_capacity(
        AT_ONCE,
        Hashing {
            inner: input.bytes,
            hasher: identity::hasher(wish),
        },
    );
    let format = match wish.format {
        Some(format) => format,
        None => guess_format(&input.name, reader.fill_buf()?)?,
    };
    match format {
        Format::Junit => {
            let written = input.written.unwrap_or(wish.now);
            reports::read(&mut reader, wish, written, packer, skips)?;
        }
        Format::Csv => delimited::read(&mut reader, wish, packer, skips)?,
        Format::JsonLines => json_lines::read(&mut reader, wish, packer, skips)?,
    }
    if packer.rows() == 0 && skips.total() > 0 {
        return Err(FileError::Nothing);
    }
    // What stands after the last run is part of the file too.
    io::copy(&mut reader, &mut io::sink())?;
    Ok(*reader.get_ref().hasher.finalize().as_bytes())
}

struct Hashing {
    inner: Box<dyn Read + Send>,
    hasher: blake3::Hasher,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

/// What a file is written in, by its name and its first bytes.
pub fn guess_format(name: &str, start: &[u8]) -> Result<Format, FileError> {
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("xml") => return Ok(Format::Junit),
        Some("csv" | "tsv") => return Ok(Format::Csv),
        Some("ndjson" | "jsonl") => return Ok(Format::JsonLines),
        Some(_) | None => {}
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(FileError::Empty),
        Some(b'<' | 0xff | 0xfe) => Ok(Format::Junit),
        Some(b'{') => Ok(Format::JsonLines),
        Some(_) => Ok(Format::Csv),
    }
}
