//! Counts of runs by test, day and stream, packed into blocks of a million runs.
//!
//! SQLite takes many seconds to group ten million rows; blocks are decoded in a fraction of one. A block is
//! made in the transaction that adds its runs, and covers all numbers up to a run's, so that runs which
//! have no block yet are always the last ones and can be counted one by one. Numbers of runs never go back,
//! because only one process writes at a time.

use std::mem;
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, params};

use crate::daily::Tally;
use crate::run::{Ended, Row};

/// A block is full with so many runs.
const FULL: usize = 1_000_000;

/// With fewer runs than this no block is made: they are counted when they are needed.
const WORTHWHILE: usize = 50_000;

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// What a count is about. The order of the fields is that of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) test: u32,
    pub(super) day: i32,
    pub(super) stream: u32,
}

/// How many bits of a packed key are the day's and the stream's.
const DAY_BITS: u32 = 18;
const STREAM_BITS: u32 = 18;

impl Key {
    /// The key as one number, which sorts as the key does; `None` if it is too large for that.
    fn pack(self) -> Option<u64> {
        let day = u64::try_from(self.day).ok()?;
        let (test, stream) = (u64::from(self.test), u64::from(self.stream));
        let is_small = test >> (64 - DAY_BITS - STREAM_BITS) == 0
            && day >> DAY_BITS == 0
            && stream >> STREAM_BITS == 0;
        is_small.then_some((test << DAY_BITS | day) << STREAM_BITS | stream)
    }

    /// The way back.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each part has fewer bits than its type"
    )]
    fn unpack(packed: u64) -> Self {
        let low = |number: u64, bits: u32| number & ((1 << bits) - 1);
        Self {
            test: (packed >> (DAY_BITS + STREAM_BITS)) as u32,
            day: low(packed >> STREAM_BITS, DAY_BITS) as i32,
            stream: low(packed, STREAM_BITS) as u32,
        }
    }
}

/// Makes blocks while runs are added.
pub(super) struct Builder<'a> {
    connection: &'a Connection,
    /// The first run that has no block.
    first: i64,
    /// How many runs have none.
    waiting: usize,
    /// The keys of runs that passed, packed: nearly all do.
    passes: Vec<u64>,
    /// All others.
    counts: Vec<(Key, Tally)>,
    /// The block before, which is not written yet.
    packing: Option<Packing>,
}

/// A block that a thread of its own sorts and encodes, while further runs are added.
struct Packing {
    first: i64,
    last: i64,
    thread: JoinHandle<Vec<u8>>,
}

impl<'a> Builder<'a> {
    /// Begins with the runs that have no block yet.
    pub(super) fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        let mut builder = Self {
            connection,
            first: first_loose(connection)?,
            waiting: 0,
            passes: Vec::new(),
            counts: Vec::new(),
            packing: None,
        };
        builder.waiting = visit_loose(connection, builder.first, |key, tally| {
            builder.counts.push((key, tally));
        })?;
        Ok(builder)
    }

    /// Counts a run that was just added.
    pub(super) fn add(
        &mut self,
        row: &Row,
        run: i64,
        test: i64,
        stream: u32,
    ) -> rusqlite::Result<()> {
        self.waiting += 1;
        if row.attempt == 1 && row.ended.counts() {
            let key = Key {
                test: to_number(test),
                day: to_day(row.time),
                stream,
            };
            match key.pack() {
                Some(packed) if !row.ended.is_failure() => self.passes.push(packed),
                Some(_) | None => {
                    let more = row.more.as_deref();
                    let has_bug = more.is_some_and(|more| more.bug.is_some());
                    let verdict = more.and_then(|more| more.verdict.as_deref());
                    self.counts
                        .push((key, Tally::of(row.ended, has_bug, verdict)));
                }
            }
        }
        if self.waiting >= FULL {
            self.pack(run)?;
        }
        Ok(())
    }

    /// Makes the last block, if it is worth it, and writes what is not written yet.
    pub(super) fn settle(&mut self, last: i64) -> rusqlite::Result<()> {
        if self.waiting >= WORTHWHILE {
            self.pack(last)?;
        }
        self.write()
    }

    /// Makes a block of all runs up to `last`.
    fn pack(&mut self, last: i64) -> rusqlite::Result<()> {
        self.write()?;
        let passes = mem::take(&mut self.passes);
        let counts = mem::take(&mut self.counts);
        self.packing = Some(Packing {
            first: self.first,
            last,
            thread: thread::spawn(move || pack(passes, counts)),
        });
        self.first = last + 1;
        self.waiting = 0;
        Ok(())
    }

    /// Writes the block that was made last, when it is ready.
    fn write(&mut self) -> rusqlite::Result<()> {
        let Some(packing) = self.packing.take() else {
            return Ok(());
        };
        let counts = packing.thread.join().expect("packing does not panic");
        let add = "INSERT INTO block(first, last, counts) VALUES (?1, ?2, ?3)";
        let mut add = self.connection.prepare_cached(add)?;
        add.execute(params![packing.first, packing.last, counts])?;
        Ok(())
    }
}

/// The bytes of a block.
fn pack(mut passes: Vec<u64>, mut counts: Vec<(Key, Tally)>) -> Vec<u8> {
    passes.sort_unstable();
    for same in passes.chunk_by(PartialEq::eq) {
        let runs = u32::try_from(same.len()).unwrap_or(u32::MAX);
        let tally = Tally {
            runs,
            ..Tally::default()
        };
        counts.push((Key::unpack(same[0]), tally));
    }
    merge(&mut counts);
    encode(&counts)
}

/// Visits the counts of all blocks, then those of the runs that have none.
pub(super) fn visit(
    connection: &Connection,
    mut visit: impl FnMut(Key, Tally),
) -> rusqlite::Result<()> {
    let mut blocks = connection.prepare("SELECT counts FROM block ORDER BY first")?;
    let mut rows = blocks.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(0)?.as_blob()?;
        decode(bytes, &mut visit).ok_or(rusqlite::Error::InvalidQuery)?;
    }
    let mut loose = Vec::new();
    visit_loose(connection, first_loose(connection)?, |key, tally| {
        loose.push((key, tally));
    })?;
    merge(&mut loose);
    for (key, tally) in loose {
        visit(key, tally);
    }
    Ok(())
}

/// The first run that has no block.
fn first_loose(connection: &Connection) -> rusqlite::Result<i64> {
    let after = "SELECT coalesce(max(last), 0) + 1 FROM block";
    connection.query_row(after, [], |row| row.get(0))
}

/// Counts runs one by one from a number on, and says how many there are.
fn visit_loose(
    connection: &Connection,
    first: i64,
    mut visit: impl FnMut(Key, Tally),
) -> rusqlite::Result<usize> {
    let loose = "SELECT run.test, run.time, run.outcome, provenance.stream, run.attempt, \
                 detail.bug IS NOT NULL, detail.verdict \
                 FROM run JOIN provenance ON provenance.id = run.provenance \
                 LEFT JOIN detail ON detail.run = run.id WHERE run.id >= ?1";
    let mut loose = connection.prepare(loose)?;
    let mut rows = loose.query([first])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let ended = Ended::from_number(row.get(2)?).filter(|ended| ended.counts());
        let (Some(ended), 1) = (ended, row.get::<_, i64>(4)?) else {
            continue;
        };
        let key = Key {
            test: row.get(0)?,
            day: to_day(row.get(1)?),
            stream: row.get(3)?,
        };
        let verdict = row.get_ref(6)?.as_str_or_null()?;
        visit(key, Tally::of(ended, row.get(5)?, verdict));
    }
    Ok(count)
}

/// Sorts counts, and makes one of those with the same key.
fn merge(counts: &mut Vec<(Key, Tally)>) {
    // Most of them are in order already, which this sort makes use of.
    counts.sort_by_key(|(key, _)| *key);
    counts.dedup_by(|(key, tally), (kept, sum)| {
        let is_same = key == kept;
        if is_same {
            sum.add(*tally);
        }
        is_same
    });
}

/// Each count as numbers of variable length: the step to its test, the step to its day from the count
/// before if that is of the same test, its stream, its runs with a bit for failures, and these.
fn encode(counts: &[(Key, Tally)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(counts.len() * 5);
    let (mut test, mut day) = (0, 0);
    for (key, tally) in counts {
        put(&mut bytes, u64::from(key.test - test));
        if key.test != test {
            day = 0;
        }
        put(&mut bytes, zigzag(i64::from(key.day) - day));
        (test, day) = (key.test, i64::from(key.day));
        put(&mut bytes, u64::from(key.stream));
        put(
            &mut bytes,
            u64::from(tally.runs) << 1 | u64::from(tally.failures > 0),
        );
        if tally.failures > 0 {
            for count in [
                tally.failures,
                tally.with_bug,
                tally.judged_flaky,
                tally.real,
            ] {
                put(&mut bytes, u64::from(count));
            }
        }
    }
    bytes
}

/// The way back; `None` if the bytes are none of ours.
fn decode(bytes: &[u8], visit: &mut impl FnMut(Key, Tally)) -> Option<()> {
    let mut rest = bytes;
    let (mut test, mut day) = (0_u32, 0_i64);
    while !rest.is_empty() {
        let step = u32::try_from(take(&mut rest)?).ok()?;
        if step > 0 {
            day = 0;
        }
        test = test.checked_add(step)?;
        day = day.checked_add(unzigzag(take(&mut rest)?))?;
        let stream = u32::try_from(take(&mut rest)?).ok()?;
        let runs = take(&mut rest)?;
        let mut tally = Tally {
            runs: u32::try_from(runs >> 1).ok()?,
            ..Tally::default()
        };
        if runs & 1 == 1 {
            for count in [
                &mut tally.failures,
                &mut tally.with_bug,
                &mut tally.judged_flaky,
                &mut tally.real,
            ] {
                *count = u32::try_from(take(&mut rest)?).ok()?;
            }
        }
        let day = i32::try_from(day).ok()?;
        visit(Key { test, day, stream }, tally);
    }
    Some(())
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, others) = rest.split_first()?;
        *rest = others;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[expect(clippy::cast_sign_loss, reason = "the sign is kept in the last bit")]
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[expect(clippy::cast_possible_wrap, reason = "the sign is in the last bit")]
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn to_number(test: i64) -> u32 {
    u32::try_from(test).unwrap_or(u32::MAX)
}

/// The day of a time, in UTC.
pub(super) fn to_day(time: i64) -> i32 {
    i32::try_from(time.div_euclid(DAY)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_in_one_number_are_sorted_as_keys(
            raw in proptest::collection::vec((any::<u32>(), any::<i32>(), any::<u32>(), 0_u32..32), 0..50),
        ) {
            let keys = raw.into_iter().map(|(test, day, stream, shift)| Key {
                test: test >> shift,
                day: day >> shift,
                stream: stream >> shift,
            });
            let packed: Vec<(u64, Key)> = keys.filter_map(|key| Some((key.pack()?, key))).collect();
            for (one, key) in &packed {
                prop_assert_eq!(Key::unpack(*one), *key);
                for (other, other_key) in &packed {
                    prop_assert_eq!(one.cmp(other), key.cmp(other_key));
                }
            }
        }

        #[test]
        fn what_is_packed_is_unpacked(
            raw in proptest::collection::vec(
                (0_u32..50, -40_000_i32..40_000, 0_u32..300, 1_u32..70_000, 0_u32..400), 0..200),
        ) {
            let mut counts: Vec<(Key, Tally)> = raw
                .into_iter()
                .map(|(test, day, stream, runs, failures)| {
                    let failures = failures.min(runs);
                    let tally = Tally { runs, failures, with_bug: failures / 2, judged_flaky: 0, real: failures / 3 };
                    (Key { test, day, stream }, tally)
                })
                .collect();
            merge(&mut counts);
            let mut found = Vec::new();
            decode(&encode(&counts), &mut |key, tally| found.push((key, tally))).unwrap();
            prop_assert_eq!(found, counts);
        }

        #[test]
        fn foreign_bytes_are_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut count = 0;
            let whole = decode(&bytes, &mut |_, _| count += 1);
            prop_assert!(whole.is_none() || bytes.len() >= count);
        }
    }

    #[test]
    fn days_before_1970_are_days_too() {
        assert_eq!(to_day(-1), -1);
        assert_eq!(to_day(0), 0);
        assert_eq!(to_day(DAY), 1);
    }
}
