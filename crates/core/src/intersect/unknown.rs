//! What stays unknown about a run: the ways in which it may depend on a change, unseen.

/// Something that a run may depend on and that nobody watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// It started a program, and what that read is not known.
    Process(String),
    /// It loaded a native library of the project, and a source of such libraries changed.
    NativeSource {
        /// The library.
        library: String,
        /// The changed file.
        path: String,
    },
    /// It loaded a native library that may have looked for a changed file, unseen by the system.
    NativeReader {
        /// The library.
        library: String,
        /// The changed file.
        path: String,
    },
    /// It used a file that git does not track, and that may have been made from what changed.
    Generated(String),
    /// It used a file that git is told not to look at, and that may have changed.
    Hidden(String),
    /// It read the repository's own records, which every commit changes.
    Repository,
    /// It talked to a process that it did not start, and that may have been started from what changed.
    Service(String),
    /// At the base, it read a file outside that was written while the runs here were made, and not by itself.
    Outside(String),
    /// Something that it used was missed.
    Missed(String),
    /// Only its code was watched, and these changed files are no code, or came or went.
    Unwatched {
        /// One of them.
        path: String,
        /// How many others there are.
        others: usize,
    },
    /// The base lacks these files, and an earlier run of what changed may have left them.
    LeftBehind {
        /// One of them.
        path: String,
        /// How many others there are.
        others: usize,
    },
    /// It failed in another way than in the suite, so that the suite's failure was not watched.
    AnotherFailure,
    /// It is not known what the run used.
    NotWatched,
}
