//! What was left out of a file, and why.

use std::collections::BTreeMap;

/// Why a run of a file was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// It names no test.
    NoName,
    /// Its test's name is longer than any name.
    LongName,
    /// It has no time.
    NoTime,
    /// Its time cannot be read.
    BadTime,
    /// It is of a day that has not come yet.
    Future,
    /// It does not say how it ended.
    NoVerdict,
    /// It ended in a way that we do not know.
    BadVerdict,
    /// It is not text in UTF-8.
    NotUtf8,
    /// It has not as many fields as there are columns.
    Fields,
    /// It is not a JSON object.
    NotJson,
    /// It is longer than any line, or opens a quote that nobody closes.
    LongLine,
}

impl Skip {
    /// In words, after "3 lines: ".
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoName => "no test name",
            Self::LongName => "a test name longer than 64 kB",
            Self::NoTime => "no time",
            Self::BadTime => "a time that cannot be read",
            Self::Future => "a time in the future",
            Self::NoVerdict => "no verdict",
            Self::BadVerdict => "a verdict that is not known",
            Self::NotUtf8 => "not UTF-8",
            Self::Fields => "another number of fields than the first line",
            Self::NotJson => "not a JSON object",
            Self::LongLine => "longer than 1 MB, or a quote that is not closed",
        }
    }
}

/// How many runs were not taken, by reason, with an example of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skips {
    counts: BTreeMap<Skip, (u64, String)>,
}

impl Skips {
    pub(super) fn add(&mut self, skip: Skip, example: impl FnOnce() -> String) {
        let (count, _) = self.counts.entry(skip).or_insert_with(|| (0, example()));
        *count += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().map(|(count, _)| count).sum()
    }

    /// By reason: how many, and where the first one is.
    pub fn iter(&self) -> impl Iterator<Item = (Skip, u64, &str)> {
        let counts = self.counts.iter();
        counts.map(|(skip, (count, example))| (*skip, *count, example.as_str()))
    }
}
