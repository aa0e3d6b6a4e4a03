//! The root causes of flaky tests, and what usually helps (`RootFinder` 2019, 3.2 and 4.2).

use std::fmt;

/// One of the ten categories of root causes that `RootFinder` 2019 takes from Luo 2014.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// It does not wait for something that it started.
    AsyncWait,
    /// Threads meet in another order.
    Concurrency,
    /// Another test ran before it.
    TestOrder,
    /// Something is not given back.
    ResourceLeak,
    /// Another machine, or as if.
    Network,
    /// The clock.
    Time,
    /// Files and folders.
    Io,
    /// Random values.
    Randomness,
    /// Rounding.
    FloatingPoint,
    /// A collection without an order.
    UnorderedCollection,
}

impl Category {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::AsyncWait => "async-wait",
            Self::Concurrency => "concurrency",
            Self::TestOrder => "test-order",
            Self::ResourceLeak => "resource-leak",
            Self::Network => "network",
            Self::Time => "time",
            Self::Io => "io",
            Self::Randomness => "randomness",
            Self::FloatingPoint => "floating-point",
            Self::UnorderedCollection => "unordered-collection",
        }
    }

    /// What usually fixes it, in a sentence without its full stop.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::AsyncWait => {
                "wait for the thing itself (join it, or poll with a generous limit) instead of for a \
                 fixed time"
            }
            Self::Concurrency => {
                "make the order certain with a lock, a queue or an event, or let the test accept both \
                 orders"
            }
            Self::TestOrder => "set up in the test what it needs, and undo what it changes",
            Self::ResourceLeak => {
                "close what was opened before the test ends, in a `finally` or a context manager"
            }
            Self::Network => "put a local stand-in in its place, or one that is part of the test",
            Self::Time => {
                "pass the time in, or freeze it in the test, so that two readings cannot differ by chance"
            }
            Self::Io => {
                "give each test files of its own, and sort what a folder lists before relying on it"
            }
            Self::Randomness => {
                "seed the generator in the test, or pass the value in, and test the rare values on purpose"
            }
            Self::FloatingPoint => "compare with a tolerance, or add up in a fixed order",
            Self::UnorderedCollection => {
                "sort before comparing, or compare as sets: the order is not promised"
            }
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}
