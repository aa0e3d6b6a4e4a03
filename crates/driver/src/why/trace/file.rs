//! Reads traces, as `docs/trace-format.md` has them: files and their frames. Records are read in
//! `trace_records.rs`, and what events mean is in `trace_events.rs`.

use std::fs;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use flate2::read::ZlibDecoder;
use unflake_core::why::trace::Trace;

use crate::why::trace::csv::read_csv;
use crate::why::trace::fields::le_u32;
use crate::why::trace::records::Reader;

const MAGIC: &[u8] = b"UNFLAKE-TRACE";
const VERSION: u8 = 2;
/// A trace that is larger when it is decompressed is not read: nothing that we write comes near it.
const LARGEST: u64 = 1 << 31;
const RECORDS: u8 = 1;
const EVENTS: u8 = 2;

/// A trace, and whether all of it is there.
#[derive(Debug)]
pub struct Recorded {
    /// The calls.
    pub trace: Trace,
    /// Whether it has its end: else it was cut off, or calls were left out because there were too many.
    pub is_whole: bool,
    /// The number of calls that are in it only as a count, because their place was called too often.
    pub counted_calls: u64,
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
    /// A folder in which there is none.
    #[error("there is no trace in {path}: their names end in .trace or .csv")]
    None {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// It does not hold what it should.
    #[error("{path} is broken: {what}")]
    Broken {
        /// The file.
        path: Utf8PathBuf,
        /// The fault.
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
            counted_calls: 0,
        });
    }
    let data = fs::read(path).map_err(failed)?;
    let frames = data
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.strip_prefix(&[VERSION]))
        .ok_or_else(|| TraceError::Foreign {
            path: path.to_owned(),
        })?;
    read_frames(frames).map_err(broken)
}

/// Reads all whole frames. A last frame that is not all there is left out.
fn read_frames(mut frames: &[u8]) -> Result<Recorded, String> {
    let mut reader = Reader::default();
    let (mut first, mut total) = (None, 0);
    while let Some((head, rest)) = frames.split_first_chunk::<9>() {
        let [length, process] = [0, 4].map(|at| le_u32(head, at));
        let Some((frame, rest)) = rest.split_at_checked(length as usize) else {
            break;
        };
        let mut plain = Vec::new();
        let mut decoder = ZlibDecoder::new(frame).take(LARGEST - total);
        let read = decoder.read_to_end(&mut plain);
        read.map_err(|error| format!("a frame cannot be decompressed: {error}"))?;
        total += plain.len() as u64;
        if total >= LARGEST {
            return Err("it is too large".to_owned());
        }
        first.get_or_insert(process);
        match head[8] {
            RECORDS => reader.take(process, |reader, told| reader.records(told, &plain))?,
            EVENTS => reader.take(process, |reader, told| reader.events(told, &plain))?,
            unknown => return Err(format!("{unknown} is no frame")),
        }
        frames = rest;
    }
    Ok(reader.finish(first, frames.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use unflake_core::why::trace::{Call, CallResult, Kind};

    use crate::why::trace::records::WIDTH;

    use super::*;

    /// A thread and a site, and times that count from 100.
    const MAIN: &str = r#"[[10, 100], [1, 1, "f"], [4, 0, "main", null, 7],
        [2, 0, "f", 9, 9, 3, "main", null], [3, 0, 0, "main", 2]]"#;
    /// A call at 1000 that takes 5 and returns text 1.
    const CALL: &str = "[[5, 0, 0, 0, 1000, 5, 0, 4]]";
    const START: i64 = 1 << 30;

    fn frame(kind: u8, process: u32, part: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(part).unwrap();
        let frame = encoder.finish().unwrap();
        let mut data = u32::try_from(frame.len()).unwrap().to_le_bytes().to_vec();
        data.extend(process.to_le_bytes());
        data.push(kind);
        data.extend(frame);
        data
    }

    fn file(frames: &[Vec<u8>]) -> Vec<u8> {
        [MAGIC, &[VERSION], &frames.concat()].concat()
    }

    fn records(part: &str) -> Vec<u8> {
        frame(RECORDS, 7, part.as_bytes())
    }

    fn events(process: u32, events: &[[i64; 3]]) -> Vec<u8> {
        let bytes: Vec<[[u8; 8]; 3]> = events
            .iter()
            .map(|event| event.map(i64::to_le_bytes))
            .collect();
        let mut part = vec![0; 4];
        part.extend(u32::try_from(events.len()).unwrap().to_le_bytes());
        part.extend(((1_u32 << WIDTH) - 1).to_le_bytes());
        for at in 0..WIDTH {
            part.extend(bytes.iter().map(|event| event[at / 8][at % 8]));
        }
        frame(EVENTS, process, &part)
    }

    fn read(data: &[u8]) -> Result<Recorded, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("1.trace")).unwrap();
        fs::write(&path, data).unwrap();
        read_trace(&path)
    }

    #[test]
    fn a_thread_knows_who_started_it_in_another_process_also_if_that_is_told_later() {
        let child = r#"[[4, 0, "main/f:9#1/python", "main/f:8#1", 8], [9, 0]]"#;
        let data = file(&[
            records(MAIN),
            frame(RECORDS, 8, child.as_bytes()),
            records(r#"[[4, 1, "main/f:8#1", 0, 7], [9, 0]]"#),
        ]);
        let threads = read(&data).unwrap().trace.threads;
        let parents: Vec<_> = threads.iter().map(|one| one.parent).collect();
        assert_eq!(parents, [None, Some(2), Some(0)]);
    }

    #[test]
    fn a_whole_trace_is_read_in_the_order_of_beginnings() {
        let data = file(&[
            records(MAIN),
            records(CALL),
            events(7, &[[0, 300, 0x7f00], [START, 400, 0]]),
            records("[[9, 2]]"),
        ]);
        let recorded = read(&data).unwrap();
        assert!(recorded.is_whole);
        let trace = recorded.trace;
        assert_eq!(trace.sites[0].to_string(), "f:9");
        assert_eq!(trace.sites[0].kind, Kind::Randomness);
        let starts: Vec<u64> = trace.calls.iter().map(|call| call.start).collect();
        assert_eq!(starts, [200, 900]);
        assert_eq!(trace.calls[0].receiver, Some(1));
        // Its end belongs to nothing: the trace ended before the call did.
        assert_eq!(trace.calls[0].result, CallResult::Raised(None));
        assert_eq!(trace.calls[1].result, CallResult::Returned(Some(0)));
        assert_eq!(trace.calls[1].duration, 5);
    }

    #[test]
    fn an_end_finds_its_beginning_past_calls_that_an_exception_left() {
        let times: Vec<i64> = (0..9).map(|step| START + step * 10).collect();
        let more = r#"[[2, 1, "f", 5, 6, 3, "g", null], [3, 1, 1, "g", 0], [1, 3, "E"]]"#;
        let data = file(&[
            records(MAIN),
            records(more),
            events(
                7,
                &[
                    [0, times[0], 0],
                    [1, times[1], 0],
                    [1, times[2], 0],
                    // The innermost of both is left at line 6 of f, and the other goes on.
                    [crate::why::trace::events::CAUGHT.cast_signed(), times[3], 8],
                    [crate::why::trace::events::CAUGHT.cast_signed() + 1, 6, 1],
                    [times[0], times[4], 7],
                ],
            ),
            records("[[6, 0, 0, 40, 3, 4], [9, 6]]"),
        ]);
        let recorded = read(&data).unwrap();
        assert!(recorded.is_whole);
        assert_eq!(recorded.counted_calls, 40);
        let trace = recorded.trace;
        let text = |call: &Call| {
            call.result
                .text()
                .map(|text| trace.values[text as usize].as_str())
        };
        let told: Vec<_> = trace
            .calls
            .iter()
            .map(|call| (call.duration, call.result.is_exception(), text(call)))
            .collect();
        assert_eq!(
            told,
            [
                (40, false, Some("3")),
                (30, true, None),
                (10, true, Some("E")),
                (0, false, Some("40")),
                (0, false, Some("f")),
            ]
        );
    }

    #[test]
    fn what_a_package_asks_counts_as_asked_by_the_call_under_way() {
        let more = r#"[[2, 1, "site-packages/lib/a.py", 5, 5, 3, "token", null, 1], [3, 1, 1, "random", 2],
            [2, 2, "f", 4, 4, 3, "outer", null, 0], [3, 2, 2, "lib.a.token", 0]]"#;
        let times: Vec<i64> = (0..9).map(|step| START + step * 10).collect();
        let data = file(&[
            records(MAIN),
            records(more),
            events(
                7,
                &[
                    [2, times[0], 0],
                    [1, times[1], 0],
                    [times[1], times[2], 7],
                    [times[0], times[3], 7],
                    // Nothing of the project's is under way.
                    [1, times[4], 0],
                    [times[4], times[5], 9],
                ],
            ),
            records("[[9, 6]]"),
        ]);
        let trace = read(&data).unwrap().trace;
        let told: Vec<_> = trace
            .calls
            .iter()
            .map(|call| &trace.sites[call.site as usize])
            .map(|site| (site.to_string(), site.callee.as_str(), site.kind))
            .collect();
        let inside = "random (in lib/a.py:5)";
        assert_eq!(
            told,
            [
                ("f:4".to_owned(), "lib.a.token", Kind::Plain),
                ("f:4".to_owned(), inside, Kind::Randomness),
                (
                    "site-packages/lib/a.py:5".to_owned(),
                    "random",
                    Kind::Randomness
                ),
            ]
        );
    }

    #[test]
    fn processes_have_numbers_of_their_own() {
        let data = file(&[
            records(MAIN),
            frame(RECORDS, 8, MAIN.as_bytes()),
            events(8, &[[0, START, 0], [START, START + 1, 1]]),
            records("[[9, 0]]"),
        ]);
        let recorded = read(&data).unwrap();
        // The other process was killed, which is its own affair.
        assert!(recorded.is_whole);
        let threads: Vec<u32> = recorded
            .trace
            .calls
            .iter()
            .map(|call| call.thread)
            .collect();
        assert_eq!(threads, [1]);
    }

    #[test]
    fn a_trace_that_was_cut_anywhere_is_read_and_known_to_be_cut() {
        let data = file(&[
            records(MAIN),
            events(7, &[[0, START, 0], [START, START + 1, 1]]),
            records(CALL),
            records("[[9, 2]]"),
        ]);
        for length in MAGIC.len() + 1..data.len() {
            let recorded = read(&data[..length]).unwrap();
            assert!(!recorded.is_whole, "{length} of {}", data.len());
        }
        assert!(read(&data).unwrap().is_whole);
        let lost = file(&[records(MAIN), records(CALL), records("[[9, 2]]")]);
        assert!(!read(&lost).unwrap().is_whole, "a frame of events is lost");
    }

    #[test]
    fn what_is_no_trace_is_an_error() {
        assert!(matches!(read(b"PK"), Err(TraceError::Foreign { .. })));
        let unknown = read(&file(&[records("[[11]]")]));
        assert!(matches!(unknown, Err(TraceError::Broken { .. })));
        let dangling = read(&file(&[records(CALL)])).unwrap_err().to_string();
        assert!(dangling.ends_with("it has no text 1"), "{dangling}");
        let short = read(&file(&[records("[[1, 2]]")])).unwrap_err().to_string();
        assert!(short.ends_with("a record is too short"), "{short}");
        let more = file(&[records("[[9, 0]]"), records("[[9, 0]]")]);
        assert!(matches!(read(&more), Err(TraceError::Broken { .. })));
        let mut damaged = file(&[records(MAIN)]);
        let middle = damaged.len() - 9;
        damaged[middle] ^= 0xff;
        assert!(matches!(read(&damaged), Err(TraceError::Broken { .. })));
    }
}
