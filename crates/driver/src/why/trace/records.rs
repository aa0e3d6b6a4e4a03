//! Reads what processes have told in a trace: texts, places, sites, threads and calls, by numbers of
//! their own, and events. What events mean is in `trace_events.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use unflake_core::why::trace::{Call, CallResult, Kind, Site, Thread, Trace};

use crate::why::trace::events::{Names, Pairing, Place, Spot};
use crate::why::trace::fields::{Fields, find, fits, le_u32};
use crate::why::trace::file::Recorded;

/// Bytes of the three numbers of an event.
pub(crate) const WIDTH: usize = 24;

/// The records of one process so far, by its own numbers.
#[derive(Default)]
pub(crate) struct Process {
    texts: HashMap<u64, u32>,
    places: HashMap<u64, Arc<Place>>,
    spots: HashMap<u64, Spot>,
    threads: HashMap<u64, u32>,
    pairings: HashMap<u64, Pairing>,
    hot: Vec<Hot>,
    alive: Vec<u64>,
    origin: u64,
    events: u64,
    is_cut: bool,
    is_ended: bool,
}

/// A place that was called too often in a thread, and is only counted.
struct Hot {
    site: u64,
    thread: u64,
    count: u64,
    /// The number of further calls that returned something else than the one before.
    changes: u64,
    /// The first value that did.
    code: i64,
}

/// A trace as far as it was read.
#[derive(Default)]
pub(crate) struct Reader {
    trace: Trace,
    /// The place of each text in the trace's list.
    known: HashMap<Arc<str>, u32>,
    names: HashSet<Arc<str>>,
    processes: HashMap<u32, Process>,
    /// Threads that a thread of another process has started, and its name.
    adopted: Vec<(u32, String)>,
    /// Sites of what packages call on the project's behalf: by what they call, and by the project's site.
    on_behalf: HashMap<(u32, u32), u32>,
    counted_calls: u64,
}

impl Reader {
    /// Takes in something that a process has told.
    pub(crate) fn take(
        &mut self,
        process: u32,
        read: impl FnOnce(&mut Self, &mut Process) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut told = self.processes.remove(&process).unwrap_or_default();
        read(self, &mut told)?;
        self.processes.insert(process, told);
        Ok(())
    }

    /// Reads the records of a frame.
    pub(crate) fn records(&mut self, told: &mut Process, bytes: &[u8]) -> Result<(), String> {
        let records: Vec<Vec<Value>> = serde_json::from_slice(bytes)
            .map_err(|error| format!("records cannot be read: {error}"))?;
        for record in &records {
            if told.is_ended {
                return Err("something follows its end".to_owned());
            }
            self.record(told, &Fields(record))?;
        }
        Ok(())
    }

    fn record(&mut self, told: &mut Process, fields: &Fields<'_>) -> Result<(), String> {
        match fields.number(0)? {
            1 => {
                let place = self.text(fields.text(2)?)?;
                told.texts.insert(fields.number(1)?, place);
            }
            2 => self.place(told, fields)?,
            3 => self.site(told, fields)?,
            4 => self.thread(told, fields)?,
            5 => self.call(told, fields)?,
            6 => told.hot.push(Hot {
                site: fields.number(1)?,
                thread: fields.number(2)?,
                count: fields.number(3)?,
                changes: fields.number(4)?,
                code: fields.signed(5)?,
            }),
            7 => told.alive.push(fields.number(1)?),
            8 => told.is_cut = true,
            9 => {
                told.is_ended = true;
                told.is_cut |= fields.number(1)? != told.events;
            }
            10 => told.origin = fields.number(1)?,
            unknown => return Err(format!("{unknown} is no record")),
        }
        Ok(())
    }

    /// The place of a text in the trace's list.
    fn text(&mut self, text: &str) -> Result<u32, String> {
        if let Some(place) = self.known.get(text) {
            return Ok(*place);
        }
        let place = fits(self.trace.values.len() as u64)?;
        self.trace.values.push(text.to_owned());
        self.known.insert(text.into(), place);
        Ok(place)
    }

    /// A text that many places share.
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return Arc::clone(known);
        }
        let name: Arc<str> = text.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn place(&mut self, told: &mut Process, fields: &Fields<'_>) -> Result<(), String> {
        let around = fields.optional(7)?;
        let place = Place {
            number: fields.number(1)?,
            file: self.shared(fields.text(2)?),
            line: fits(fields.number(3)?)?,
            last_line: fits(fields.number(4)?)?,
            column: fits(fields.number(5)?)?,
            caller: self.shared(fields.text(6)?),
            inside: around
                .map(|around| find(&told.places, around, "place").cloned())
                .transpose()?,
            // Other tracers need not tell it.
            is_library: fields.has(8) && fields.number(8)? == 1,
        };
        told.places.insert(place.number, Arc::new(place));
        Ok(())
    }

    fn site(&mut self, told: &mut Process, fields: &Fields<'_>) -> Result<(), String> {
        let place = Arc::clone(find(&told.places, fields.number(2)?, "place")?);
        let what = fields.text(3)?;
        let kind = usize::try_from(fields.number(4)?).ok();
        let kind = kind.and_then(|kind| Kind::ALL.get(kind));
        let is_own = |rest: &str| rest.is_empty() || rest.ends_with('.');
        let spot = Spot {
            site: fits(self.trace.sites.len() as u64)?,
            is_recursive: what.strip_suffix(&*place.caller).is_some_and(is_own),
            place: Arc::clone(&place),
        };
        self.trace.sites.push(Site {
            file: place.file.to_string(),
            line: place.line,
            column: place.column,
            caller: place.caller.to_string(),
            callee: what.to_owned(),
            kind: *kind.ok_or("it has a kind that is none")?,
        });
        told.spots.insert(fields.number(1)?, spot);
        Ok(())
    }

    /// The site of a package's call while a call of the project's is under way: it counts as made there.
    fn on_behalf(&mut self, called: &Spot, around: &Spot) -> Result<Spot, String> {
        let key = (called.site, around.site);
        let site = if let Some(known) = self.on_behalf.get(&key) {
            *known
        } else {
            let own = self.trace.sites[called.site as usize].clone();
            let mut site = self.trace.sites[around.site as usize].clone();
            let (_, file) = own.file.split_once('/').unwrap_or(("", &own.file));
            site.callee = format!("{} (in {file}:{})", own.callee, own.line);
            site.kind = own.kind;
            let number = fits(self.trace.sites.len() as u64)?;
            self.trace.sites.push(site);
            self.on_behalf.insert(key, number);
            number
        };
        Ok(Spot {
            site,
            ..called.clone()
        })
    }

    fn thread(&mut self, told: &mut Process, fields: &Fields<'_>) -> Result<(), String> {
        let place = fits(self.trace.threads.len() as u64)?;
        let parent = if let Ok(name) = fields.text(3) {
            self.adopted.push((place, name.to_owned()));
            None
        } else {
            fields.optional(3)?
        };
        let parent = parent.map(|parent| find(&told.threads, parent, "thread").copied());
        self.trace.threads.push(Thread {
            name: fields.text(2)?.to_owned(),
            parent: parent.transpose()?,
            process: fits(fields.number(4)?)?,
        });
        told.threads.insert(fields.number(1)?, place);
        Ok(())
    }

    fn call(&mut self, told: &mut Process, fields: &Fields<'_>) -> Result<(), String> {
        let value = self.value(told, fields.signed(7)?)?;
        let receiver = fields.number(3)?;
        let start = fields.number(4)?.checked_sub(told.origin);
        let start = start.ok_or("a call begins before its trace")?;
        let call = Call {
            site: find(&told.spots, fields.number(1)?, "site")?.site,
            thread: *find(&told.threads, fields.number(2)?, "thread")?,
            receiver: (receiver != 0).then(|| fits(receiver)).transpose()?,
            start,
            duration: fields.number(5)?.min(u64::MAX - start),
            result: if fields.number(6)? == 0 {
                CallResult::Returned(value)
            } else {
                CallResult::Raised(value)
            },
        };
        self.trace.calls.push(call);
        Ok(())
    }

    fn value(&mut self, told: &Process, code: i64) -> Result<Option<u32>, String> {
        if code & 1 == 1 {
            return self.text(&(code >> 1).to_string()).map(Some);
        }
        let number = u64::try_from(code >> 1).map_err(|_| "a value is negative")?;
        let number = number.checked_sub(1);
        number
            .map(|number| find(&told.texts, number, "text").copied())
            .transpose()
    }

    /// Reads the events of a frame.
    pub(crate) fn events(&mut self, told: &mut Process, bytes: &[u8]) -> Result<(), String> {
        if told.is_ended {
            return Err("something follows its end".to_owned());
        }
        if bytes.len() < 12 {
            return Err("events are cut".to_owned());
        }
        let [thread, count, mask] = [0, 4, 8].map(|at| le_u32(bytes, at));
        let (count, number) = (count as usize, u64::from(thread));
        let mut planes: [Option<&[u8]>; WIDTH] = [None; WIDTH];
        let mut rest = &bytes[12..];
        for (at, plane) in planes.iter_mut().enumerate() {
            if mask >> at & 1 == 1 {
                let (own, after) = rest.split_at_checked(count).ok_or("events are cut")?;
                *plane = Some(own);
                rest = after;
            }
        }
        let thread = *find(&told.threads, number, "thread")?;
        let pairing = told.pairings.remove(&number);
        let mut pairing = pairing.unwrap_or_else(|| Pairing::new(thread));
        let mut names = Naming { reader: self, told };
        for at in 0..count {
            let mut event = [[0_u8; 8]; 3];
            for (place, plane) in planes.iter().enumerate() {
                event[place / 8][place % 8] = plane.map_or(0, |plane| plane[at]);
            }
            pairing.take(event.map(i64::from_le_bytes), &mut names)?;
        }
        told.events += count as u64;
        told.pairings.insert(number, pairing);
        Ok(())
    }

    /// Puts the calls of all processes together.
    pub(crate) fn finish(mut self, first: Option<u32>, is_all_read: bool) -> Recorded {
        let mut processes: Vec<(u32, Process)> = self.processes.drain().collect();
        processes.sort_by_key(|(process, _)| (Some(*process) != first, *process));
        let own = processes.first().map(|(_, told)| told);
        let is_whole = is_all_read && own.is_some_and(|told| told.is_ended && !told.is_cut);
        for (_, mut told) in processes {
            let mut pairings: Vec<(u64, Pairing)> = told.pairings.drain().collect();
            pairings.sort_by_key(|(thread, _)| *thread);
            let mut last = 0;
            for (thread, mut pairing) in pairings {
                pairing.finish(told.alive.contains(&thread));
                for mut call in pairing.calls {
                    call.start = call.start.saturating_sub(told.origin);
                    last = last.max(call.start + call.duration);
                    self.trace.calls.push(call);
                }
            }
            self.count_hot(&told, last);
        }
        let mut trace = self.trace;
        for (thread, name) in &self.adopted {
            let parent = trace.threads.iter().position(|one| one.name == *name);
            trace.threads[*thread as usize].parent = parent.and_then(|at| u32::try_from(at).ok());
        }
        trace.calls.sort_by_key(|call| call.start);
        Recorded {
            trace,
            is_whole,
            counted_calls: self.counted_calls,
        }
    }

    /// Tells of places that were called too often as of calls of their own: how often, and what the first
    /// other value was.
    fn count_hot(&mut self, told: &Process, end: u64) {
        for hot in &told.hot {
            self.counted_calls += hot.count;
            let places = (told.spots.get(&hot.site), told.threads.get(&hot.thread));
            let (Some(spot), Some(thread)) = places else {
                continue;
            };
            let other = self.value(told, hot.code).ok().flatten();
            let further = self.text(&hot.count.to_string()).ok();
            let facts = [
                (" (how many further calls)", further),
                (" (further calls, first other value)", other),
            ];
            for (what, value) in facts.into_iter().take(if hot.changes > 0 { 2 } else { 1 }) {
                let mut fact = self.trace.sites[spot.site as usize].clone();
                fact.callee.push_str(what);
                fact.kind = Kind::Plain;
                let place = u32::try_from(self.trace.sites.len()).unwrap_or(spot.site);
                self.trace.sites.push(fact);
                self.trace.calls.push(Call {
                    site: place,
                    thread: *thread,
                    receiver: None,
                    start: end,
                    duration: 0,
                    result: CallResult::Returned(value),
                });
            }
        }
    }
}

/// The meaning of the numbers of one process.
struct Naming<'a> {
    reader: &'a mut Reader,
    told: &'a Process,
}

impl Names for Naming<'_> {
    fn spot(&self, number: u64) -> Result<Spot, String> {
        find(&self.told.spots, number, "site").cloned()
    }

    fn on_behalf(&mut self, called: &Spot, around: &Spot) -> Result<Spot, String> {
        self.reader.on_behalf(called, around)
    }

    fn thread(&self, number: u64) -> Result<u32, String> {
        find(&self.told.threads, number, "thread").copied()
    }

    fn file(&self, number: u64) -> Result<&str, String> {
        let place = *find(&self.told.texts, number, "text")?;
        Ok(&self.reader.trace.values[place as usize])
    }

    fn value(&mut self, code: i64) -> Result<Option<u32>, String> {
        self.reader.value(self.told, code)
    }
}
