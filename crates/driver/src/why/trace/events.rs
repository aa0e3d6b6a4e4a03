//! Makes calls of the events of one thread: which beginning an end belongs to, and which calls were left by
//! an exception. `docs/trace-format.md` has the rules.

use std::collections::HashMap;
use std::sync::Arc;

use unflake_core::why::trace::{Call, CallResult};

/// An event with a smaller first number is the beginning of a call at the site of that number.
pub(crate) const CAUGHT: u64 = 1 << 23;
const LINE: u64 = CAUGHT + 1;
const TASK: u64 = CAUGHT + 2;
/// An event with a first number that is not smaller is the end of a call that began then.
const FIRST_TIME: u64 = 1 << 24;

/// A place that calls something.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) number: u64,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
    pub(crate) last_line: u32,
    pub(crate) column: u32,
    pub(crate) caller: Arc<str>,
    /// The place of the call in whose arguments this one stands.
    pub(crate) inside: Option<Arc<Place>>,
    /// Whether it is in an installed package.
    pub(crate) is_library: bool,
}

/// The function that is called at a place.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) place: Arc<Place>,
    /// The site, by its place in the trace's list.
    pub(crate) site: u32,
    /// Whether it calls the function in which it stands.
    pub(crate) is_recursive: bool,
}

/// The meaning of the numbers in events.
pub(crate) trait Names {
    /// The site of a number.
    fn spot(&self, number: u64) -> Result<Spot, String>;
    /// The site of what a package calls while a call of the project's is under way.
    fn on_behalf(&mut self, called: &Spot, around: &Spot) -> Result<Spot, String>;
    /// A thread, by its place in the trace's list.
    fn thread(&self, number: u64) -> Result<u32, String>;
    /// The file that is a text.
    fn file(&self, number: u64) -> Result<&str, String>;
    /// The text of a value, by its place in the trace's list.
    fn value(&mut self, code: i64) -> Result<Option<u32>, String>;
}

/// A call that has begun and not ended.
#[derive(Debug)]
struct Open {
    spot: Spot,
    begun: u64,
    start: u64,
    receiver: Option<u32>,
    thread: u32,
}

/// The calls of one thread. Times are as in the file.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    thread: u32,
    stack: Vec<Open>,
    /// Calls that have ended.
    pub(crate) calls: Vec<Call>,
    /// The places of calls that seem to have been left by an exception, by when they began.
    left: HashMap<u64, usize>,
    /// The exception that is being handled: since when, and its text.
    caught: (u64, Option<u32>),
    receivers: HashMap<i64, u32>,
    last: u64,
}

impl Pairing {
    pub(crate) fn new(thread: u32) -> Self {
        Self {
            thread,
            ..Self::default()
        }
    }

    /// Takes in the next event.
    pub(crate) fn take(&mut self, event: [i64; 3], names: &mut impl Names) -> Result<(), String> {
        let [first, second, third] = event;
        let unsigned = |number: i64| u64::try_from(number).map_err(|_| "a number is negative");
        let (first, second) = (unsigned(first)?, unsigned(second)?);
        match first {
            TASK => {
                let task = names.thread(second)?;
                if let Some(top) = self.stack.last_mut() {
                    top.thread = task;
                }
            }
            CAUGHT => self.caught = (second, names.value(third)?),
            LINE => self.leave_line(names.file(unsigned(third)?)?, second),
            site if site < CAUGHT => {
                let mut spot = names.spot(site)?;
                if spot.place.is_library
                    && let Some(around) = self.around()
                {
                    spot = names.on_behalf(&spot, around)?;
                }
                self.begin(spot, second, third);
            }
            begun if begun >= FIRST_TIME => {
                let value = names.value(third)?;
                self.end(begun, second, value);
            }
            unknown => return Err(format!("{unknown} is no event")),
        }
        if !(CAUGHT..FIRST_TIME).contains(&first) {
            self.last = self.last.max(second);
        }
        Ok(())
    }

    /// Closes the calls that are still open when the trace ends: the thread goes on, or an exception has left them.
    pub(crate) fn finish(&mut self, is_alive: bool) {
        while !is_alive && !self.stack.is_empty() {
            self.leave(self.last, None);
        }
        self.stack.clear();
    }

    /// The innermost call of the project's that is under way.
    fn around(&self) -> Option<&Spot> {
        let mut open = self.stack.iter().rev().map(|open| &open.spot);
        open.find(|spot| !spot.place.is_library)
    }

    fn begin(&mut self, spot: Spot, now: u64, receiver: i64) {
        while self.stack.last().is_some_and(|top| is_over(top, &spot)) {
            self.leave(now, None);
        }
        let next = u32::try_from(self.receivers.len()).unwrap_or(u32::MAX - 1) + 1;
        let receiver = (receiver != 0).then(|| *self.receivers.entry(receiver).or_insert(next));
        self.stack.push(Open {
            thread: self.stack.last().map_or(self.thread, |top| top.thread),
            spot,
            begun: now,
            start: now,
            receiver,
        });
    }

    fn end(&mut self, begun: u64, now: u64, value: Option<u32>) {
        let Some(at) = self.stack.iter().rposition(|open| open.begun >= begun) else {
            // It began before the trace did; or it was not left by an exception after all.
            if let Some(at) = self.left.remove(&begun) {
                let call = &mut self.calls[at];
                call.duration = now.saturating_sub(call.start);
                call.result = CallResult::Returned(value);
            }
            return;
        };
        let first = self.stack[..=at]
            .iter()
            .rposition(|open| open.begun < begun)
            .map_or(0, |before| before + 1);
        while self.stack.len() > first + 1 {
            self.leave(now, None);
        }
        let Some(ended) = self.stack.pop() else {
            return;
        };
        self.calls.push(Call {
            site: ended.spot.site,
            thread: ended.thread,
            receiver: ended.receiver,
            start: ended.start,
            duration: now.saturating_sub(ended.start),
            result: CallResult::Returned(value),
        });
        if let Some(top) = self.stack.last_mut()
            && is_argument(&ended, top)
        {
            top.start = now;
        }
    }

    /// An exception has left the call that stands on a line, and all that it had called.
    fn leave_line(&mut self, file: &str, line: u64) {
        let is_there = |open: &Open| {
            let place = &open.spot.place;
            (u64::from(place.line)..=u64::from(place.last_line)).contains(&line)
                && *place.file == *file
        };
        if let Some(at) = self.stack.iter().rposition(is_there) {
            let (now, text) = self.caught;
            while self.stack.len() > at {
                self.leave(now, text);
            }
        }
    }

    /// An exception has left the innermost call.
    fn leave(&mut self, now: u64, text: Option<u32>) {
        let Some(mut left) = self.stack.pop() else {
            return;
        };
        self.left.insert(left.begun, self.calls.len());
        self.calls.push(Call {
            site: left.spot.site,
            thread: left.thread,
            receiver: left.receiver,
            start: left.start,
            duration: now.saturating_sub(left.start),
            result: CallResult::Raised(text),
        });
        // If it was an argument, the call around it was never made.
        while self.stack.last().is_some_and(|top| is_argument(&left, top))
            && let Some(around) = self.stack.pop()
        {
            left = around;
        }
    }
}

/// Whether a call that has not ended is over, because the function in which it stands goes on.
fn is_over(open: &Open, next: &Spot) -> bool {
    let (place, after) = (&open.spot.place, &next.place);
    let is_same = place.caller == after.caller && place.file == after.file;
    is_same && !open.spot.is_recursive && !stands_in(after, place.number)
}

/// Whether a place stands in the arguments of the call at another, or of one in them.
fn stands_in(place: &Arc<Place>, number: u64) -> bool {
    let mut around = place.inside.as_ref();
    while let Some(one) = around {
        if one.number == number {
            return true;
        }
        around = one.inside.as_ref();
    }
    false
}

fn is_argument(inner: &Open, outer: &Open) -> bool {
    let around = inner.spot.place.inside.as_ref();
    around.is_some_and(|place| place.number == outer.spot.place.number)
}
