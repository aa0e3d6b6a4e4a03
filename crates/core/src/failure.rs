//! Which failure it is: what tells the failures of a test apart, and what does not.
//!
//! Runs are compared here with runs at the base, with the history, and with each other. The text of a fingerprint
//! stands in stores, so that it stays what it is from version to version.

mod message;
mod parts;
mod summary;
mod traceback;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::outcome::Outcome;
use crate::trial::{Account, Frame, Trial};

/// The version of the rules below; it stands at the beginning of each text. With other rules, old texts no longer
/// match, and nothing is taken for the same that may be another.
const VERSION: &str = "1";

/// The most characters of a text; a longer one is replaced by its digest.
const LONGEST: usize = 200;

/// The most characters of a kind that stand before a digest.
const LONGEST_KIND: usize = 60;

/// The identity of a failure: two runs with the same fingerprint failed in the same way.
///
/// It is made of the kind of what was raised, of the functions and source lines of the project that it went through,
/// and of the message without what varies from run to run and from tree to tree: numbers, ids, addresses, times, paths.
/// Line numbers and file names are no part of it: a change moves them. Where frames are known, of the message only the
/// words count that stand outside quotes and brackets, and nothing of it if the last line is an `assert`, whose
/// message is made of its values. The parts that failed of a test with parameters count by number and name. A time-out is the same as any other, and a dead VM as one that died in the same way.
///
/// The same fingerprint does not mean the same cause.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    text: String,
    summary: String,
}

impl Fingerprint {
    /// The fingerprint of a trial.
    pub fn of(outcome: &Outcome, account: &Account) -> Self {
        Self::at_depth(outcome, account, Depth::of(account))
    }

    /// The fingerprint of a failure in the report of another tool, as far as its text can be read: a traceback of
    /// Python's or pytest's, or a stack of Java.
    pub fn of_text(kind: &str, message: &str, text: &str) -> Self {
        let account = Account {
            message: message.to_owned(),
            text: text.to_owned(),
            kind: kind.to_owned(),
            ..Account::default()
        };
        Self::of_reported(kind, &account)
    }

    /// The fingerprint of an account that has been [condensed](condense). `kind` is the kind that the report itself
    /// names.
    pub fn of_reported(kind: &str, account: &Account) -> Self {
        Self {
            summary: summary::summarize(kind, &account.message),
            ..Self::of(&Outcome::Failed, account)
        }
    }

    /// Its text: equal for equal fingerprints, of at most 200 characters, and the same in each version of unflake.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The kind and the message without what varies, for people. Empty if there is no message.
    ///
    /// Fingerprints can be equal and their summaries not, and the other way round.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    fn at_depth(outcome: &Outcome, account: &Account, depth: Depth) -> Self {
        let line = message::first_line(&account.message);
        let text = match outcome {
            Outcome::Failed | Outcome::Errored => failed(account, depth),
            // The place that a test has reached when its time is over is chance.
            Outcome::TimedOut { .. } => label(outcome, ""),
            // The numbers matter here: those of signals and exit codes.
            Outcome::VmDied { how } => label(outcome, how.trim_end_matches(" (core dumped)")),
            Outcome::Passed
            | Outcome::Skipped
            | Outcome::ExpectedFailure
            | Outcome::UnexpectedPass
            | Outcome::NotRun => label(outcome, &message::plain(line)),
        };
        Self {
            text,
            // The kind is left out: it is in the message of our own runs, as it was before it was known apart.
            summary: summary::summarize("", &account.message),
        }
    }
}

/// Whether two trials failed in the same way, as far as both are known. If only one has frames, the frames in the
/// texts are compared; if only one has those too, only kind and message are.
pub fn fails_alike(one: &Trial, other: &Trial) -> bool {
    let depth = Depth::of(&one.account).min(Depth::of(&other.account));
    let has_names = parts::have_names(one, other);
    let print = |trial: &Trial| {
        let account = parts::as_known(&trial.account, has_names);
        Fingerprint::at_depth(&trial.outcome, &account, depth)
    };
    print(one) == print(other)
}

/// What the failures of several tests in one run have in common if they have one cause: the kind, the message and the
/// project's code below the tests themselves (Eloussi 2015, Ch. 8). `None` if nothing but an assertion of the test's
/// own failed: two such failures have nothing in common.
pub fn incident(outcome: &Outcome, account: &Account) -> Option<Fingerprint> {
    let mut shared = account.clone();
    condense(&mut shared);
    shared.text = String::new();
    shared.parts.clear();
    if !shared.frames.is_empty() {
        shared.frames.remove(0);
    }
    let is_own_assert = shared.frames.is_empty() && shared.kind.ends_with("AssertionError");
    let is_failure = matches!(outcome, Outcome::Failed | Outcome::Errored);
    let is_named = !shared.kind.is_empty();
    let found = is_failure && is_named && !is_own_assert;
    found.then(|| Fingerprint::of(outcome, &shared))
}

/// Puts into an account what its text tells of the kind and the frames, where they are not known: without its text it
/// then has the fingerprint that it had with it.
pub fn condense(account: &mut Account) {
    let told = traceback::read(&account.text);
    if account.kind.is_empty() {
        account.kind = kind_of(account, told.kind.as_deref());
    }
    if account.frames.is_empty() {
        account.frames = told.frames;
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Fingerprint {}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for Fingerprint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fingerprint {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

/// The detail in which a failure is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// What it said.
    Message,
    /// The frames that stand in the framework's text.
    Text,
    /// The frames, as the runner saw them.
    Frames,
}

impl Depth {
    fn of(account: &Account) -> Self {
        if !account.frames.is_empty() {
            Self::Frames
        } else if traceback::read(&account.text).frames.is_empty() {
            Self::Message
        } else {
            Self::Text
        }
    }
}

/// An outcome that is no failure of the test's own, with what is stable about it.
fn label(outcome: &Outcome, more: &str) -> String {
    let text = format!("{VERSION}|{}|{}", outcome.label(), flat(more));
    shortened(text, outcome.label())
}

fn failed(account: &Account, depth: Depth) -> String {
    let told = traceback::read(&account.text);
    let line = message::first_line(&account.message);
    let kind = kind_of(account, told.kind.as_deref());
    let line = without_kind(line, &kind);
    let frames = match depth {
        Depth::Message => &[],
        Depth::Text => told.frames.as_slice(),
        Depth::Frames => account.frames.as_slice(),
    };
    let parts: String = account.parts.iter().map(parts::text).collect();
    let Some(last) = frames.last() else {
        let text = format!("{VERSION}|failed|{kind}||{}{parts}", message::plain(line));
        return shortened(text, &kind);
    };
    let is_assert = |text: &str| text.starts_with("assert ") || text.starts_with("assert(");
    let shape = if is_assert(last.text.trim()) && is_assert(line) {
        String::new()
    } else {
        message::shape(line)
    };
    let mut passed: Vec<String> = Vec::new();
    // A recursion ends at any depth: each line counts once.
    for line in frames.iter().map(frame_text) {
        if !passed.contains(&line) {
            passed.push(line);
        }
    }
    let passed = passed.join("/");
    shortened(
        format!("{VERSION}|failed|{kind}|{passed}|{shape}{parts}"),
        &kind,
    )
}

/// A frame in a fingerprint: its function, and its source.
fn frame_text(frame: &Frame) -> String {
    let file = frame.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let function = match frame.function.as_str() {
        "" | "<module>" => file.to_owned(),
        function => without_numbers_of_classes(function),
    };
    format!("{function}:{}", flat(&frame.text))
}

/// A function of Java without what the compiler numbers: lambdas, anonymous classes, classes made at run time.
fn without_numbers_of_classes(function: &str) -> String {
    let mut found = String::new();
    for (place, part) in function.split('.').enumerate() {
        if place > 0 {
            found.push('.');
        }
        let part = part.split("$$").next().unwrap_or(part);
        for (place, name) in part.split('$').enumerate() {
            if place > 0 {
                found.push('$');
                found.push_str(name.trim_start_matches(|one: char| one.is_ascii_digit()));
            } else {
                found.push_str(name);
            }
        }
    }
    found
}

/// A text in one line, with single spaces.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The kind of what was raised without its module or package, which not all styles tell; empty if it is not known.
fn kind_of(account: &Account, told: Option<&str>) -> String {
    let line = message::first_line(&account.message);
    let full = if !account.kind.is_empty() {
        account.kind.as_str()
    } else if let Some(kind) = leading_kind(line) {
        kind
    } else if let Some(kind) = told {
        kind
    } else if line.starts_with("assert ") {
        // pytest leaves out what an assert raises.
        "AssertionError"
    } else {
        leading_kind(message::first_line(&account.text)).unwrap_or_default()
    };
    bare(full).to_owned()
}

fn bare(kind: &str) -> &str {
    kind.rsplit(['.', '$']).next().unwrap_or(kind).trim()
}

/// The kind at the beginning of a message: `decimal.InvalidOperation: bad`.
fn leading_kind(line: &str) -> Option<&str> {
    let kind = line.split_once(": ").map_or(line, |(kind, _)| kind);
    let kind = kind.trim_end_matches(':');
    let is_part = |one: char| one.is_alphanumeric() || "._$".contains(one);
    let name = bare(kind);
    let is_named = name.starts_with(char::is_uppercase)
        || kind.contains('.') && name.starts_with(char::is_alphabetic);
    (is_named && kind.chars().all(is_part)).then_some(kind)
}

/// A message without its kind, if it begins with it.
fn without_kind<'a>(line: &'a str, kind: &str) -> &'a str {
    match leading_kind(line) {
        Some(leading) if bare(leading) == kind => {
            line[leading.len()..].trim_start_matches(':').trim_start()
        }
        Some(_) | None => line,
    }
}

/// The text itself, or its digest behind its kind if it is long.
fn shortened(text: String, kind: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    let kind: String = kind.chars().take(LONGEST_KIND).collect();
    format!("{VERSION}|{kind}|{:032x}", fnv(text.as_bytes()))
}

/// The 128-bit FNV-1a digest: the same on each machine and in each version (draft-eastlake-fnv, section 2).
fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

#[cfg(test)]
mod tests;
