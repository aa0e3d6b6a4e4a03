//! Makes the runs with delays that `unflake_core::why::fuzz` asks for.

use std::fs;

use unflake_core::sequential::Tally;
use unflake_core::test::TestId;
use unflake_core::why::fuzz::{Culprits, Delays, Fuzz, Step};

use crate::files::workspace::Workspace;
use crate::lab::session::{Halt, Session};
use crate::protocol::delays::read_points;
use crate::why::gather::Bench;
use crate::why::inquiry::{Inquiry, Probe};

/// The results of runs with delays.
#[derive(Clone, Debug)]
pub struct Fuzzed {
    /// The number of runs with delays.
    pub runs: u32,
    /// The number of places at which there could have been a delay.
    pub points: usize,
    /// The number of runs without delays that failed (hits) and passed.
    pub without: Tally,
    /// The fewest delays that make the test fail, if any do.
    pub culprits: Option<Culprits>,
    /// The seed of the search.
    pub seed: u64,
}

impl Session {
    /// Looks for delays that make a test fail; traces of runs that fail with the fewest go to the bench.
    pub(crate) fn fuzz(
        &mut self,
        test: &TestId,
        inquiry: &Inquiry,
        bench: &mut Bench,
        workspace: &mut Option<Workspace>,
    ) -> Result<Fuzzed, Halt> {
        let without = bench.traced;
        let mut fuzz = Fuzz::new(inquiry.seed, inquiry.runs, without);
        let folder = self.fleet.folder().join("traces");
        let mut failing = Vec::new();
        let culprits = loop {
            let delays = match fuzz.next_step() {
                Step::Run(delays) => delays,
                Step::Conclude(culprits) => break culprits,
            };
            // Nothing but the delays is to be another than in the first run.
            let probe = Probe::Delayed(&delays);
            let (trial, file) = self.run_varied(std::slice::from_ref(test), workspace, 1, probe)?;
            let outcome = &trial.outcome;
            let is_clear = outcome.is_failure() || outcome.is_pass();
            let failed = is_clear.then(|| outcome.is_failure());
            let met = read_points(&file.with_extension("points"));
            fuzz.note(&delays, &met, failed);
            let trace = folder.join(format!("delayed-{}.trace", fuzz.runs()));
            // A VM that ended before the test began has written none.
            let is_there = fs::rename(&file, &trace).is_ok();
            if failed == Some(true) {
                failing.push((delays, trial, is_there.then_some(trace)));
            }
        };
        if let Some(culprits) = &culprits {
            let is_of = |delays: &Delays| *delays == culprits.delays;
            for (_, trial, trace) in failing.into_iter().filter(|(delays, ..)| is_of(delays)) {
                bench.take(&trial, trace, inquiry.keep.as_deref())?;
            }
        }
        bench.traced = without;
        Ok(Fuzzed {
            runs: fuzz.runs(),
            points: fuzz.points().len(),
            without,
            culprits,
            seed: inquiry.seed,
        })
    }
}
