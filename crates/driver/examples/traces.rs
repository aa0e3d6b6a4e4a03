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

/// How many places call something.
const SITES: u64 = 335;
const THREADS: u64 = 5;
/// Texts that are the same in every run.
const WORDS: [&str; 8] = [
    "None", "True", "False", "0", "1", "'pen'", "'ink'", "[1, 2]",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, traces, calls] = arguments.as_slice() else {
        return Err("usage: traces FOLDER TRACES CALLS".into());
    };
    let (traces, calls): (u64, u64) = (traces.parse()?, calls.parse()?);
    for number in 0..traces {
        let is_failing = number % 2 == 1;
        let side = if is_failing { "failing" } else { "passing" };
        let folder = Path::new(folder).join(side);
        fs::create_dir_all(&folder)?;
        let records = Pen::new(number + 1).write(calls, is_failing);
        fs::write(folder.join(format!("{number}.trace")), pack(&records)?)?;
    }
    Ok(())
}

/// The file: its beginning, and frames.
fn pack(records: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut data = b"UNFLAKE-TRACE\x01".to_vec();
    for part in records.chunks(1 << 20) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(part)?;
        let frame = encoder.finish()?;
        data.extend(u32::try_from(frame.len())?.to_le_bytes());
        data.extend(frame);
    }
    Ok(data)
}

struct Pen {
    records: Vec<u8>,
    texts: u64,
    /// A stream of numbers that is another for every trace.
    chance: u64,
}

impl Pen {
    fn new(seed: u64) -> Self {
        Self {
            records: Vec::new(),
            texts: 0,
            chance: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }
    }

    fn write(mut self, calls: u64, is_failing: bool) -> Vec<u8> {
        for word in WORDS {
            self.text(word);
        }
        let file = self.text("shop/orders.py");
        for thread in 0..THREADS {
            let name = self.text(&format!("main/shop/orders.py:{thread}#1"));
            let parent = u64::from(thread > 0);
            self.record(3, &[name, parent, 1]);
        }
        for site in 0..SITES {
            let callee = self.text(&format!("shop.step_{site}"));
            let kind = if site == SITES / 2 { 2 } else { 0 };
            self.record(2, &[file, site + 1, 1, file, callee, kind]);
        }
        for call in 0..calls {
            let site = call * 7 % SITES;
            let value = self.value(call, site, is_failing);
            let duration = 500 + self.draw(2000);
            // Calls follow each other, and threads take turns.
            let thread = call / 64 % THREADS;
            self.record(
                4,
                &[site, thread, site % 50, 2 * 3000, duration, 0, value + 1],
            );
        }
        self.record(6, &[calls]);
        self.records
    }

    /// The number of a text: for every tenth call a new one.
    fn value(&mut self, call: u64, site: u64, is_failing: bool) -> u64 {
        if site == SITES / 2 {
            let number = self.draw(500) + if is_failing { 0 } else { 500 };
            return self.text(&format!("0.{number:03}"));
        }
        if call % 10 == 3 {
            let number = self.draw(1 << 40);
            return self.text(&number.to_string());
        }
        site % WORDS.len() as u64
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % below
    }

    fn text(&mut self, text: &str) -> u64 {
        self.record(1, &[text.len() as u64]);
        self.records.extend(text.as_bytes());
        self.texts += 1;
        self.texts - 1
    }

    fn record(&mut self, tag: u8, numbers: &[u64]) {
        self.records.push(tag);
        for number in numbers {
            let mut rest = *number;
            loop {
                let low = (rest & 0x7f).to_le_bytes()[0];
                rest >>= 7;
                self.records.push(if rest > 0 { low | 0x80 } else { low });
                if rest == 0 {
                    break;
                }
            }
        }
    }
}
