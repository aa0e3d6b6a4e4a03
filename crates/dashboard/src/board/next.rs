//! What to run again next, and why.

use serde::Serialize;
use unflake_core::quantify::rerun_order::{Candidate, LEAST_SECONDS, RerunOrder, rank};

use crate::board::snapshot::{Known, Snapshot};

/// So many tests are named.
const SHOWN: usize = 50;

/// What to run again.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Next {
    pub(crate) period: Option<String>,
    pub(crate) tests: Vec<Row>,
    /// How many tests could be run.
    pub(crate) all: usize,
}

/// A test to run again.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) number: u32,
    pub(crate) test: String,
    pub(crate) copy: u32,
    /// How likely it is that it is broken now.
    pub(crate) broken_probability: f64,
    pub(crate) failures: u64,
    pub(crate) runs: u64,
    pub(crate) stable_rate: Option<f64>,
    pub(crate) seconds: Option<f64>,
    /// What a run is expected to tell, in nats a second.
    pub(crate) urgency: f64,
    pub(crate) why: &'static str,
}

impl Next {
    pub(crate) fn read(snapshot: &Snapshot) -> Self {
        let known = snapshot.known.as_ref().as_ref();
        let found = known.map(|known| known.next.get_or_init(|| Self::of(known)).clone());
        found.unwrap_or_default()
    }

    fn of(known: &Known) -> Self {
        // A test that does not run any more may be gone.
        let current: Vec<_> = known
            .entries
            .iter()
            .filter(|one| one.is_current())
            .collect();
        let period = known.periods.current.period;
        let candidates: Vec<Candidate> = current
            .iter()
            .map(|entry| {
                let seconds = entry.seconds.unwrap_or(LEAST_SECONDS);
                Candidate::new(&entry.course, (period.first, period.last), seconds)
            })
            .collect();
        let ranked = rank(&candidates, RerunOrder::Information);
        let tests = ranked.iter().take(SHOWN).map(|(place, urgency)| {
            let (entry, candidate) = (current[*place], candidates[*place]);
            let broken_probability = candidate.belief.broken_probability();
            Row {
                number: entry.numbers[0],
                test: entry.name.name.clone(),
                copy: entry.name.copy,
                broken_probability,
                failures: candidate.current.failures(),
                runs: candidate.current.runs(),
                stable_rate: candidate.baseline.rate(),
                seconds: entry.seconds,
                urgency: *urgency,
                why: explain(candidate, broken_probability),
            }
        });
        Self {
            period: Some(known.periods.named.sentence()),
            tests: tests.collect(),
            all: current.len(),
        }
    }
}

/// Why a run of this test tells much.
fn explain(candidate: Candidate, broken_probability: f64) -> &'static str {
    let (baseline, current) = (candidate.baseline, candidate.current);
    if baseline.runs() == 0 {
        "it has no baseline yet"
    } else if current.failures() == 0 {
        "it may have broken since it last ran"
    } else if broken_probability >= 0.9 {
        "it is probably broken: another run makes that sure"
    } else if broken_probability >= 0.1 {
        "whether it is broken is open"
    } else {
        "it fails about as often as it did"
    }
}
