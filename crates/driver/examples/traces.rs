//! Writes traces as of a test with many calls, for `bench/why_analysis.py`:
//!
//!     cargo run --release -p unflake-driver --example traces -- FOLDER TRACES CALLS
//!
//! As many passing as failing ones, as `docs/trace-format.md` has them, with the numbers of `RootFinder`
//! 2019 (4.1): some 335 different calls, five threads. One call in ten returns another value in every run;
//! one draws a number that is low in failing runs only.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

/// How many places call something.
const SITES: usize = 335;
const THREADS: usize = 5;
/// Texts that are the same in every run.
const WORDS: [&str; 8] = [
    "None", "True", "False", "0", "1", "'pen'", "'ink'", "[1, 2]",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, traces, calls] = arguments.as_slice() else {
        return Err("usage: traces FOLDER TRACES CALLS".into());
    };
    let (traces, calls): (u64, usize) = (traces.parse()?, calls.parse()?);
    for number in 0..traces {
        let is_failing = number % 2 == 1;
        let side = if is_failing { "failing" } else { "passing" };
        let folder = Path::new(folder).join(side);
        fs::create_dir_all(&folder)?;
        let pen = Pen::new(number + 1).write(calls, is_failing);
        fs::write(folder.join(format!("{number}.trace")), pack(&pen)?)?;
    }
    Ok(())
}

/// The file: its beginning, and frames.
fn pack(pen: &Pen) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut data = b"UNFLAKE-TRACE\x02".to_vec();
    for part in pen.records.chunks(1 << 12) {
        frame(&mut data, 1, serde_json::to_string(part)?.as_bytes())?;
    }
    for (thread, events) in (0_u32..).zip(&pen.threads) {
        for part in events.chunks(1 << 12) {
            frame(&mut data, 2, &columns(thread, part)?)?;
        }
    }
    let count: usize = pen.threads.iter().map(Vec::len).sum();
    frame(&mut data, 1, json!([[9, count]]).to_string().as_bytes())?;
    Ok(data)
}

fn frame(data: &mut Vec<u8>, kind: u8, content: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content)?;
    let packed = encoder.finish()?;
    data.extend(u32::try_from(packed.len())?.to_le_bytes());
    data.extend(1_u32.to_le_bytes());
    data.push(kind);
    data.extend(packed);
    Ok(())
}

/// The events byte by byte: first all lowest bytes of their first numbers.
fn columns(thread: u32, events: &[Event]) -> Result<Vec<u8>, Box<dyn Error>> {
    let bytes = |event: &Event| event.map(i64::to_le_bytes).concat();
    let rows: Vec<Vec<u8>> = events.iter().map(bytes).collect();
    let (mut mask, mut filled) = (0_u32, Vec::new());
    for column in 0..24 {
        if rows.iter().any(|row| row[column] != 0) {
            mask |= 1 << column;
            filled.extend(rows.iter().map(|row| row[column]));
        }
    }
    let head = [thread, u32::try_from(events.len())?, mask];
    let mut content = head.map(u32::to_le_bytes).concat();
    content.append(&mut filled);
    Ok(content)
}

/// Three numbers, as the page on the format has them.
type Event = [i64; 3];

struct Pen {
    records: Vec<Value>,
    threads: Vec<Vec<Event>>,
    texts: i64,
    /// A stream of numbers that is another for every trace.
    chance: u64,
}

impl Pen {
    fn new(seed: u64) -> Self {
        Self {
            records: Vec::new(),
            threads: vec![Vec::new(); THREADS],
            texts: 0,
            chance: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }
    }

    fn write(mut self, calls: usize, is_failing: bool) -> Self {
        for word in WORDS {
            self.text(word);
        }
        for thread in 0..THREADS {
            let name = format!("main/shop/orders.py:{thread}#1");
            let parent = (thread > 0).then_some(0);
            self.records.push(json!([4, thread, name, parent, 1]));
        }
        for site in 0..SITES {
            let (line, callee) = (site + 1, format!("shop.step_{site}"));
            let kind = if site == SITES / 2 { 2 } else { 0 };
            let place = json!([2, site, "shop/orders.py", line, line, 1, "main", null]);
            self.records.push(place);
            self.records.push(json!([3, site, site, callee, kind]));
        }
        // Beyond the numbers that stand for sites.
        let mut now = 1 << 30;
        for call in 0..calls {
            let site = call * 7 % SITES;
            let value = self.value(call, site, is_failing);
            let duration = 500 + i64::try_from(self.draw(2000)).expect("it is below 2000");
            // Calls follow each other, and threads take turns.
            let thread = &mut self.threads[call / 64 % THREADS];
            let number = |number: usize| i64::try_from(number).expect("there are few sites");
            thread.push([number(site), now, number(site % 50)]);
            thread.push([now, now + duration, value]);
            now += 3000;
        }
        self
    }

    /// The code of a value: a number of its own for every tenth call.
    fn value(&mut self, call: usize, site: usize, is_failing: bool) -> i64 {
        if site == SITES / 2 {
            let number = self.draw(500) + if is_failing { 0 } else { 500 };
            return self.text(&format!("0.{number:03}"));
        }
        if call % 10 == 3 {
            let number = i64::try_from(self.draw(1 << 40)).expect("it is below 2^40");
            return number << 1 | 1;
        }
        code(i64::try_from(site % WORDS.len()).expect("there are few words"))
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % below
    }

    /// Tells a text, and returns the code of a value that it is.
    fn text(&mut self, text: &str) -> i64 {
        self.records.push(json!([1, self.texts, text]));
        self.texts += 1;
        code(self.texts - 1)
    }
}

/// The code of a value that is the text of this number.
fn code(text: i64) -> i64 {
    (text + 1) << 1
}
