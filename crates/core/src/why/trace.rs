//! The record of a traced run of a test: the calls that the project's code made (`RootFinder` 2019, 3.1).
//!
//! Nothing here knows a language. How a trace is written down is in `docs/trace-format.md`.

use std::fmt;

/// One traced run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The places that calls name.
    pub sites: Vec<Site>,
    /// The threads that calls name.
    pub threads: Vec<Thread>,
    /// The texts of values that calls name.
    pub values: Vec<String>,
    /// The calls, in the order in which they began.
    pub calls: Vec<Call>,
}

/// A place in the code together with what is called there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The source file, relative to the project.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// The function that calls.
    pub caller: String,
    /// The function that is called.
    pub callee: String,
    /// The kind of thing that is called.
    pub kind: Kind,
}

impl fmt::Display for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            return write!(formatter, "line {}", self.line);
        }
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// The kind of thing that is called: whether and how the outside world can change its result. The tracer says it,
/// because it knows the language and its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Anything else.
    Plain,
    /// It reads a clock or a calendar.
    Time,
    /// It draws a random value.
    Randomness,
    /// It talks to another machine, or as if to one.
    Network,
    /// It reads or writes files, or looks into folders.
    Io,
    /// Its result depends on the order of a collection that has none.
    Unordered,
    /// It starts a thread, a task or a process.
    Start,
    /// It waits, for a time or for somebody.
    Wait,
    /// It takes a lock, or gives it back.
    Lock,
    /// Not a call: something that was left over when the test had ended, and how much of it.
    Leftover,
}

impl Kind {
    /// All kinds, each at the place of its number in a trace file.
    pub const ALL: [Self; 10] = [
        Self::Plain,
        Self::Time,
        Self::Randomness,
        Self::Network,
        Self::Io,
        Self::Unordered,
        Self::Start,
        Self::Wait,
        Self::Lock,
        Self::Leftover,
    ];

    /// Whether its result can differ each time, whatever the project does.
    pub fn is_source(self) -> bool {
        match self {
            Self::Time
            | Self::Randomness
            | Self::Network
            | Self::Io
            | Self::Unordered
            | Self::Leftover => true,
            Self::Plain | Self::Start | Self::Wait | Self::Lock => false,
        }
    }
}

/// A thread, or a task of an event loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// A name that is the same in every run: by where it was started.
    pub name: String,
    /// The thread that started it, by its place in the trace's list.
    pub parent: Option<u32>,
    /// Its process.
    pub process: u32,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where, and what; by its place in the trace's list.
    pub site: u32,
    /// The thread, by its place in the trace's list.
    pub thread: u32,
    /// The object that it is called on, by a number of its own within the trace.
    pub receiver: Option<u32>,
    /// Its beginning, in nanoseconds since the trace began.
    pub start: u64,
    /// Its duration, in nanoseconds.
    pub duration: u64,
    /// How it ended.
    pub result: CallResult,
}

/// How a call ended. Texts are by their place in the trace's list; `None` if nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// With a value.
    Returned(Option<u32>),
    /// With an exception.
    Raised(Option<u32>),
}

impl CallResult {
    /// The text of the value or of the exception.
    pub fn text(self) -> Option<u32> {
        match self {
            Self::Returned(text) | Self::Raised(text) => text,
        }
    }

    /// Whether it was an exception.
    pub fn is_exception(self) -> bool {
        matches!(self, Self::Raised(_))
    }
}
