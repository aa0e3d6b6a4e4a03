//! Reads traces, as `docs/trace-format.md` has them.

use std::fs;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use flate2::read::ZlibDecoder;
use unflake_core::why::trace::{Call, CallResult, Kind, Site, Thread, Trace};

use crate::trace_csv::read_csv;

const MAGIC: &[u8] = b"UNFLAKE-TRACE";
const VERSION: u8 = 1;
/// A trace that is larger when it is decompressed is not read: nothing that we write comes near it.
const LARGEST: u64 = 1 << 31;

/// A trace, and whether all of it is there.
#[derive(Debug)]
pub struct Recorded {
    /// The calls.
    pub trace: Trace,
    /// Whether it has its end: else it was cut off, or calls were left out because there were too many.
    pub is_whole: bool,
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no trace.
    #[error("{path} is not a trace of version {VERSION}")]
    Foreign {
        /// The file.
        path: Utf8PathBuf,
    },
    /// It does not hold what it should.
    #[error("{path} is broken: {what}")]
    Broken {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// Reads one file, binary or CSV.
pub fn read_trace(path: &Utf8Path) -> Result<Recorded, TraceError> {
    let failed = |source| TraceError::Read {
        path: path.to_owned(),
        source,
    };
    let broken = |what: String| TraceError::Broken {
        path: path.to_owned(),
        what,
    };
    if path.extension() == Some("csv") {
        let text = fs::read_to_string(path).map_err(failed)?;
        let trace = read_csv(&text).map_err(broken)?;
        return Ok(Recorded {
            trace,
            is_whole: true,
        });
    }
    let data = fs::read(path).map_err(failed)?;
    let frames = data
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.strip_prefix(&[VERSION]))
        .ok_or_else(|| TraceError::Foreign {
            path: path.to_owned(),
        })?;
    let plain = decompress(frames).map_err(broken)?;
    decode(&plain).map_err(broken)
}

/// The content of all whole frames. A last frame that is not all there is left out.
fn decompress(mut frames: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    while let Some((length, rest)) = frames.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((frame, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let mut decoder = ZlibDecoder::new(frame).take(LARGEST - plain.len() as u64);
        let read = decoder.read_to_end(&mut plain);
        read.map_err(|error| format!("a frame cannot be decompressed: {error}"))?;
        if plain.len() as u64 >= LARGEST {
            return Err("it is too large".to_owned());
        }
        frames = rest;
    }
    Ok(plain)
}

/// Reads records until the end record, or until there are no more whole ones.
fn decode(plain: &[u8]) -> Result<Recorded, String> {
    let mut reader = Reader {
        bytes: plain,
        trace: Trace::default(),
        last: 0,
        is_cut: false,
    };
    let mut is_whole = false;
    while !reader.bytes.is_empty() {
        match reader.record()? {
            Some(Step::On) => {}
            Some(Step::End { calls }) => {
                is_whole = !reader.is_cut
                    && reader.bytes.is_empty()
                    && calls == reader.trace.calls.len() as u64;
                if !reader.bytes.is_empty() {
                    return Err("something follows its end".to_owned());
                }
            }
            // The rest of the last record is in a frame that is not there.
            None => break,
        }
    }
    let mut trace = reader.trace;
    trace.calls.sort_by_key(|call| call.start);
    Ok(Recorded { trace, is_whole })
}

enum Step {
    On,
    End { calls: u64 },
}

struct Reader<'a> {
    bytes: &'a [u8],
    trace: Trace,
    last: u64,
    is_cut: bool,
}

impl Reader<'_> {
    /// The next record; `None` if it is not all there.
    fn record(&mut self) -> Result<Option<Step>, String> {
        let Some((tag, rest)) = self.bytes.split_first() else {
            return Ok(None);
        };
        self.bytes = rest;
        let count = match tag {
            1 | 6 => 1,
            2 => 6,
            3 => 3,
            4 => 7,
            5 => 0,
            unknown => return Err(format!("{unknown} is no record")),
        };
        let mut numbers = [0_u64; 7];
        for number in numbers.iter_mut().take(count) {
            let Some(read) = self.number()? else {
                return Ok(None);
            };
            *number = read;
        }
        match tag {
            1 => return self.text(numbers[0]),
            2 => self.site(numbers)?,
            3 => self.thread(numbers)?,
            4 => self.call(numbers)?,
            5 => self.is_cut = true,
            _ => return Ok(Some(Step::End { calls: numbers[0] })),
        }
        Ok(Some(Step::On))
    }

    fn number(&mut self) -> Result<Option<u64>, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.bytes.split_first() else {
                return Ok(None);
            };
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(Some(number));
            }
        }
        Err("a number is too large".to_owned())
    }

    fn text(&mut self, length: u64) -> Result<Option<Step>, String> {
        let length = usize::try_from(length).map_err(|_| "a text is too long")?;
        let Some((text, rest)) = self.bytes.split_at_checked(length) else {
            return Ok(None);
        };
        self.bytes = rest;
        let text = std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
        self.trace.values.push(text.to_owned());
        Ok(Some(Step::On))
    }

    fn site(&mut self, numbers: [u64; 7]) -> Result<(), String> {
        let [file, line, column, caller, what, kind, _] = numbers;
        let text = |number: u64| -> Result<String, String> {
            Ok(self.trace.values[place(number, self.trace.values.len(), "text")? as usize].clone())
        };
        let site = Site {
            file: text(file)?,
            line: fits(line)?,
            column: fits(column)?,
            caller: text(caller)?,
            callee: text(what)?,
            kind: Kind::ALL[place(kind, Kind::ALL.len(), "kind")? as usize],
        };
        self.trace.sites.push(site);
        Ok(())
    }

    fn thread(&mut self, numbers: [u64; 7]) -> Result<(), String> {
        let [name, parent, process, ..] = numbers;
        let name = place(name, self.trace.values.len(), "text")?;
        let threads = self.trace.threads.len();
        let parent = parent.checked_sub(1);
        let thread = Thread {
            name: self.trace.values[name as usize].clone(),
            parent: parent
                .map(|number| place(number, threads, "thread"))
                .transpose()?,
            process: fits(process)?,
        };
        self.trace.threads.push(thread);
        Ok(())
    }

    fn call(&mut self, numbers: [u64; 7]) -> Result<(), String> {
        let [site, thread, receiver, step, duration, exception, value] = numbers;
        let (distance, is_back) = (step >> 1, step & 1 == 1);
        let start = if is_back {
            self.last.checked_sub(distance + 1)
        } else {
            self.last.checked_add(distance)
        };
        let start = start.ok_or("a call begins before its trace")?;
        self.last = start;
        let text = value.checked_sub(1);
        let text = text.map(|number| place(number, self.trace.values.len(), "text"));
        let text = text.transpose()?;
        let call = Call {
            site: place(site, self.trace.sites.len(), "site")?,
            thread: place(thread, self.trace.threads.len(), "thread")?,
            receiver: if receiver == 0 {
                None
            } else {
                Some(fits(receiver)?)
            },
            start,
            duration: duration.min(u64::MAX - start),
            result: if exception == 0 {
                CallResult::Returned(text)
            } else {
                CallResult::Raised(text)
            },
        };
        self.trace.calls.push(call);
        Ok(())
    }
}

fn fits(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A number of something that was told before.
fn place(number: u64, count: usize, what: &str) -> Result<u32, String> {
    let known = usize::try_from(number).is_ok_and(|number| number < count);
    if known {
        fits(number)
    } else {
        Err(format!("it has no {what} {number}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// A thread, a site and two calls, the second of which began first.
    const RECORDS: &[u8] = &[
        1, 4, b'm', b'a', b'i', b'n', 3, 0, 0, 7, // text 0, thread 0
        1, 1, b'f', 2, 1, 9, 3, 0, 1, 2, // text 1, site 0: f:9, called by main, kind 2
        4, 0, 0, 0, 0xd0, 0x0f, 5, 0, 2, // starts at 1000, takes 5, returns text 1
        4, 0, 0, 3, 0x01, 6, 1, 0, // starts at 999 on object 3, raises
        6, 2,
    ];

    fn file(parts: &[&[u8]]) -> Vec<u8> {
        let mut data = MAGIC.to_vec();
        data.push(VERSION);
        for part in parts {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part).unwrap();
            let frame = encoder.finish().unwrap();
            data.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
            data.extend(frame);
        }
        data
    }

    fn read(data: &[u8]) -> Result<Recorded, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("1.trace")).unwrap();
        fs::write(&path, data).unwrap();
        read_trace(&path)
    }

    #[test]
    fn a_whole_trace_is_read_in_the_order_of_beginnings() {
        // A record may go over from one frame into the next.
        let recorded = read(&file(&[&RECORDS[..17], &RECORDS[17..]])).unwrap();
        assert!(recorded.is_whole);
        let trace = recorded.trace;
        assert_eq!(trace.sites[0].to_string(), "f:9");
        assert_eq!(trace.sites[0].kind, Kind::Randomness);
        let starts: Vec<u64> = trace.calls.iter().map(|call| call.start).collect();
        assert_eq!(starts, [999, 1000]);
        assert_eq!(trace.calls[0].receiver, Some(3));
        assert_eq!(trace.calls[0].result, CallResult::Raised(None));
        assert_eq!(trace.calls[1].result, CallResult::Returned(Some(1)));
    }

    #[test]
    fn a_trace_that_was_cut_anywhere_is_read_and_known_to_be_cut() {
        let data = file(&[&RECORDS[..17], &RECORDS[17..30], &RECORDS[30..]]);
        for length in MAGIC.len() + 1..data.len() {
            let recorded = read(&data[..length]).unwrap();
            assert!(!recorded.is_whole, "{length} of {}", data.len());
            assert!(recorded.trace.calls.len() < 2);
        }
    }

    #[test]
    fn what_is_no_trace_is_an_error() {
        assert!(matches!(read(b"PK"), Err(TraceError::Foreign { .. })));
        let unknown = read(&file(&[&[9]]));
        assert!(matches!(unknown, Err(TraceError::Broken { .. })));
        let dangling = read(&file(&[&[4, 0, 0, 0, 0, 0, 0, 0]]));
        assert_eq!(
            dangling
                .unwrap_err()
                .to_string()
                .rsplit_once(": ")
                .unwrap()
                .1,
            "it has no site 0"
        );
        let mut damaged = file(&[RECORDS]);
        let middle = damaged.len() - 9;
        damaged[middle] ^= 0xff;
        assert!(matches!(read(&damaged), Err(TraceError::Broken { .. })));
    }
}
