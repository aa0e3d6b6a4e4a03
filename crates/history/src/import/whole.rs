//! A report that is read to its end before a store is asked for: what a server does with many at once.

use super::{FileError, Input, Skips, Wish, parse};
use crate::batch::{Batch, Packer};
use crate::store::source::{Refused, Source};

/// A report that was read and waits to be stored.
#[derive(Debug)]
pub struct Whole {
    name: String,
    /// The last batch first.
    batches: Vec<Batch>,
    digest: [u8; 32],
    /// What was left out of it.
    pub skips: Skips,
}

impl Whole {
    /// Reads a report. It is held in memory, so its size must have been looked at before.
    pub fn read(input: Input, wish: &Wish) -> Result<Self, FileError> {
        let name = input.name.clone();
        let mut skips = Skips::default();
        let mut batches = Vec::new();
        let mut packer = Packer::new(|batch| {
            batches.push(batch);
            Ok::<(), ()>(())
        });
        let digest = parse(input, wish, &mut packer, &mut skips)?;
        // The packer only remembers: it cannot fail.
        let _ = packer.flush();
        batches.reverse();
        Ok(Self {
            name,
            batches,
            digest,
            skips,
        })
    }

    /// What tells it from all others.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl Source for Whole {
    fn next_batch(&mut self) -> Option<Batch> {
        self.batches.pop()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        Ok(self.digest)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
