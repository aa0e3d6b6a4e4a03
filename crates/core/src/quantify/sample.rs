//! The number of a test's runs and failures: the one thing that all statistics here use.

/// Runs of a test, and the failures among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    failures: u64,
    runs: u64,
}

impl Sample {
    /// One run, which failed.
    pub const ONE_FAILURE: Self = Self {
        failures: 1,
        runs: 1,
    };

    /// One run, which passed.
    pub const ONE_PASS: Self = Self {
        failures: 0,
        runs: 1,
    };

    /// One run.
    pub fn one(failed: bool) -> Self {
        if failed {
            Self::ONE_FAILURE
        } else {
            Self::ONE_PASS
        }
    }

    /// A sample of `failures` among `runs`.
    ///
    /// # Panics
    /// If there are more failures than runs.
    pub fn new(failures: u64, runs: u64) -> Self {
        assert!(failures <= runs, "every failure is a run");
        Self { failures, runs }
    }

    /// The number of runs that failed: f in Rehman 2019.
    pub fn failures(self) -> u64 {
        self.failures
    }

    /// The number of runs that did not fail.
    pub fn passes(self) -> u64 {
        self.runs - self.failures
    }

    /// All runs: r in Rehman 2019.
    pub fn runs(self) -> u64 {
        self.runs
    }

    /// The share of failures (`FlakeRate`, Rehman 2019, Eq. 5); `None` without runs.
    pub fn rate(self) -> Option<f64> {
        (self.runs > 0).then(|| to_float(self.failures) / to_float(self.runs))
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            failures: self.failures + other.failures,
            runs: self.runs + other.runs,
        }
    }
}

/// One test's runs of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Day {
    /// Days since 1 January 1970, in UTC.
    pub day: i32,
    /// Runs that passed or failed; skips are none.
    pub runs: u32,
    /// The runs that failed, for whatever reason.
    pub failures: u32,
    /// The runs that failed without a fault of the product, by the rule in use.
    pub flaky: u32,
}

impl Day {
    /// All failures.
    pub fn failed(self) -> Sample {
        Sample::new(self.failures.into(), self.runs.into())
    }

    /// The flaky failures only.
    pub fn flaked(self) -> Sample {
        Sample::new(self.flaky.into(), self.runs.into())
    }
}

/// A count as a float. Counts of runs stay far below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of runs stay far below 2^53"
)]
pub fn to_float(count: u64) -> f64 {
    count as f64
}
