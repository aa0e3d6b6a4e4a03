//! Runs on their way into a store, some thousand at a time, with each name in them once.

use std::mem;

use foldhash::{HashMap, HashMapExt};

use crate::names::Names;
use crate::run::{Provenance, Row, TestName};

/// How many rows a batch has: they fit into the processor's cache.
const ROWS: usize = 2048;

/// When the names that are remembered take more bytes than this, they are forgotten.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Some runs. Places of tests and provenances go on from batch to batch until one is `fresh`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Whether places begin at 0 again with this batch.
    pub is_fresh: bool,
    /// Tests that were not named before, in the order of their places.
    pub tests: Vec<TestName>,
    /// Provenances that were not named before.
    pub provenances: Vec<Provenance>,
    /// The runs.
    pub rows: Vec<Row>,
}

/// Gathers runs into batches, and hands out each that is full.
pub struct Packer<F> {
    batch: Batch,
    /// Places of tests: those of reports, the framework's own, and those with namesakes. Ten million names
    /// are looked up in these, so that each look must be one.
    reported: Names,
    own: Names,
    namesakes: HashMap<TestName, u32>,
    test_count: u32,
    provenances: HashMap<Provenance, u32>,
    provenance_count: u32,
    bytes: usize,
    generation: u64,
    rows: u64,
    hand_out: F,
}

impl<F: FnMut(Batch) -> Result<(), E>, E> Packer<F> {
    /// Hands batches to `hand_out`.
    pub fn new(hand_out: F) -> Self {
        Self {
            batch: Batch {
                is_fresh: true,
                ..Batch::default()
            },
            reported: Names::default(),
            own: Names::default(),
            namesakes: HashMap::new(),
            test_count: 0,
            provenances: HashMap::new(),
            provenance_count: 0,
            bytes: 0,
            generation: 0,
            rows: 0,
            hand_out,
        }
    }

    /// How many runs were added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Goes up whenever places are forgotten.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The place of a test with a name from a report, if it was asked for before.
    pub(crate) fn find_reported(&self, name: &[u8]) -> Option<u32> {
        self.reported.find(name)
    }

    /// The place of a test.
    pub fn test(&mut self, name: &str, copy: u32, is_own: bool) -> u32 {
        let known = match (copy, is_own) {
            (0, false) => self.reported.find(name.as_bytes()),
            (0, true) => self.own.find(name.as_bytes()),
            (1.., _) => self.namesakes.get(&to_test(name, copy, is_own)).copied(),
        };
        if let Some(place) = known {
            return place;
        }
        let place = self.test_count;
        self.test_count += 1;
        self.bytes += name.len() * 2 + 100;
        self.batch.tests.push(to_test(name, copy, is_own));
        match (copy, is_own) {
            (0, false) => self.reported.add(name.as_bytes(), place),
            (0, true) => self.own.add(name.as_bytes(), place),
            (1.., _) => {
                self.namesakes.insert(to_test(name, copy, is_own), place);
            }
        }
        place
    }

    /// The place of a provenance.
    pub fn provenance(&mut self, provenance: &Provenance) -> u32 {
        if let Some(place) = self.provenances.get(provenance) {
            return *place;
        }
        let place = self.provenance_count;
        self.provenance_count += 1;
        self.provenances.insert(provenance.clone(), place);
        self.batch.provenances.push(provenance.clone());
        self.bytes += 200 + provenance.revision.len() + provenance.job.len();
        place
    }

    /// Adds a run, whose places were asked for just before.
    pub fn push(&mut self, row: Row) -> Result<(), E> {
        self.batch.rows.push(row);
        self.rows += 1;
        if self.batch.rows.len() >= ROWS {
            self.flush()?;
            if self.bytes > MOST_BYTES {
                self.reported.clear();
                self.own.clear();
                self.namesakes.clear();
                self.provenances.clear();
                self.test_count = 0;
                self.provenance_count = 0;
                self.bytes = 0;
                self.generation += 1;
                self.batch.is_fresh = true;
            }
        }
        Ok(())
    }

    /// Hands out what is there.
    pub fn flush(&mut self) -> Result<(), E> {
        if self.batch.rows.is_empty() {
            return Ok(());
        }
        let batch = mem::take(&mut self.batch);
        (self.hand_out)(batch)
    }
}

fn to_test(name: &str, copy: u32, is_own: bool) -> TestName {
    TestName {
        name: name.to_owned(),
        copy,
        is_own,
    }
}
