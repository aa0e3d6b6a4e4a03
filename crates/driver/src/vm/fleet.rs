//! All VMs of a run, and the one queue of what they say.
//!
//! The fleet does the greetings by itself and turns words and deaths into happenings. What to do
//! about them is the session's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command as Process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use nix::unistd::Pid;
use unflake_core::event::Event;
use unflake_core::state::Piece;
use unflake_core::trial::{Birth, VmId};

use crate::framework::pytest::without_framework;
use crate::lab::start_error::StartError;
use crate::protocol::hello::Hello;
use crate::protocol::messages::{Command, Message, PROTOCOL, Worker};
use crate::vm::descendants::kill_descendants;
use crate::vm::event::{Fate, Happening};
use crate::vm::interrupter::Interrupter;
use crate::vm::pipes::{Incoming, Pipes};
use crate::vm::process::{Vm, describe};
use crate::vm::stacks::read_stack;

/// The time that a VM's last words may take to arrive after its process has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// All VMs of a run.
pub struct Fleet {
    folder: tempfile::TempDir,
    queue: Receiver<Incoming>,
    sender: Sender<Incoming>,
    vms: BTreeMap<VmId, Vm>,
    born: u32,
    events: Sender<Event>,
    hello: Option<Hello>,
    interrupter: Interrupter,
}

impl Fleet {
    /// A fleet without VMs, whose first has the number `born`; everything that is worth telling goes to
    /// `events`.
    pub fn new(events: Sender<Event>, born: u32) -> Result<Self, StartError> {
        Self::with(events, born, Interrupter::default())
    }

    /// A fleet that stops when another does, and whose VMs have numbers of their own.
    pub fn beside(&self, events: Sender<Event>, born: u32) -> Result<Self, StartError> {
        Self::with(events, born, self.interrupter())
    }

    fn with(events: Sender<Event>, born: u32, stop: Interrupter) -> Result<Self, StartError> {
        let folder = tempfile::Builder::new()
            .prefix("unflake-")
            .tempdir()
            .map_err(StartError::Scratch)?;
        let (sender, queue) = channel();
        stop.tell(sender.clone());
        Ok(Self {
            folder,
            queue,
            sender,
            vms: BTreeMap::new(),
            born,
            events,
            hello: None,
            interrupter: stop,
        })
    }

    /// A handle that stops the run.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// A private folder that lives as long as the fleet.
    pub fn folder(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().to_owned())
            .unwrap_or_else(|path| Utf8PathBuf::from(path.to_string_lossy().into_owned()))
    }

    /// Starts a new process. It says hello, is told to `start`, and next comes `Parsed`; without a `start` it
    /// waits for `launch`.
    pub fn spawn(
        &mut self,
        mut process: Process,
        start: Option<Command>,
    ) -> Result<VmId, StartError> {
        let vm = self.number();
        process
            .env("UNFLAKE_CHANNEL", self.folder.path())
            .env("UNFLAKE_VM", vm.0.to_string());
        let command = format!("{}", process.get_program().display());
        let pipes = self.make_pipes(vm)?;
        let mut spawned = Vm::spawn(vm, process, pipes, self.sender.clone())
            .map_err(|source| StartError::Spawn { command, source })?;
        spawned.launch = start;
        self.vms.insert(vm, spawned);
        Ok(vm)
    }

    /// Has a VM that was started ahead start.
    pub(crate) fn launch(&mut self, id: VmId, start: Command) {
        if self.has_greeted(id) {
            self.welcome(id, &start);
        } else if let Some(vm) = self.vms.get_mut(&id) {
            vm.launch = Some(start);
        }
    }

    /// Makes a copy of a VM that draws anew from these generators. Next comes `Cloned` or `Unforked`.
    pub fn fork(&mut self, parent: VmId, redraw: Vec<String>) -> Result<VmId, StartError> {
        let vm = self.number();
        let output = self.vms.get(&parent).map(|vm| vm.output.clone());
        let copy = Vm::forked(output.unwrap_or_default(), self.make_pipes(vm)?);
        self.vms.insert(vm, copy);
        self.tell(parent, &Command::Fork { vm: vm.0, redraw });
        Ok(vm)
    }

    /// The number that the next VM will have.
    pub(crate) fn next_number(&self) -> u32 {
        self.born
    }

    /// The number of a VM that there never will be.
    pub(crate) fn number_unused(&mut self) -> VmId {
        self.number()
    }

    /// The number of a VM that another command had, and of which there is only a report.
    pub(crate) fn number_elsewhere(&mut self) -> VmId {
        let (vm, birth) = (self.number(), Birth::Elsewhere);
        drop(self.events.send(Event::VmStarted { vm, birth }));
        vm
    }

    /// Lets a VM that has parsed its configuration collect. Next comes `Ready`.
    pub fn collect(&mut self, vm: VmId, worker: Option<Worker>) {
        self.tell(vm, &Command::Collect { worker });
    }

    /// Tells a VM to do something. A VM that is gone is told nothing.
    pub fn tell(&mut self, vm: VmId, command: &Command) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            vm.tell(command);
        }
    }

    /// Whether a VM has said hello.
    pub(crate) fn has_greeted(&self, vm: VmId) -> bool {
        self.vms
            .get(&vm)
            .is_some_and(|vm| vm.stack_signal.is_some())
    }

    /// The VM with this number, while it lives.
    pub fn vm(&self, vm: VmId) -> Option<&Vm> {
        self.vms.get(&vm)
    }

    /// Counts a trial, and says how many the VM had done before.
    pub fn count_trial(&mut self, vm: VmId) -> usize {
        self.vms.get_mut(&vm).map_or(0, |vm| {
            vm.trials += 1;
            vm.trials - 1
        })
    }

    /// The hello of the first VM.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// The stacks of a VM that hangs, or of the copy that works in its place.
    pub fn stack(&self, id: VmId, copy: Option<Pid>) -> Option<String> {
        let vm = self.vms.get(&id)?;
        let file: PathBuf = self.folder.path().join(format!("{}.stack", id.0));
        if copy.is_some() {
            // An earlier copy of this VM may have written there; it is only ever appended to.
            std::fs::write(&file, "").ok()?;
        }
        let stacks = read_stack(copy.or(vm.pid)?, vm.stack_signal?, &file)?;
        Some(without_framework(&stacks))
    }

    /// Ends a VM and its process group. `Ended` still follows for an interpreter of ours.
    pub fn kill(&mut self, id: VmId) {
        let Some(vm) = self.vms.get(&id) else { return };
        vm.kill();
        if vm.birth == Birth::Fork
            && let Some(Vm { pid: Some(pid), .. }) = self.remove(id)
        {
            collect(pid);
        }
    }

    /// Waits for the next happening, until `deadline` if there is one.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Happening, StartError> {
        loop {
            if let Some(happening) = self.gone() {
                return Ok(happening);
            }
            let patience = self.vms.values().filter_map(|vm| vm.exited.as_ref());
            let patience = patience.map(|(since, _)| *since + LAST_WORDS).min();
            let until = [deadline, patience].into_iter().flatten().min();
            let incoming = match until {
                None => self
                    .queue
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    self.queue.recv_timeout(left)
                }
            };
            match incoming {
                Ok(incoming) => {
                    if let Some(happening) = self.take(incoming)? {
                        return Ok(happening);
                    }
                }
                Err(RecvTimeoutError::Timeout) if deadline.is_some_and(|d| d <= Instant::now()) => {
                    return Ok(Happening::Deadline);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the fleet holds a sender of its own queue")
                }
            }
        }
    }

    fn make_pipes(&self, vm: VmId) -> Result<Pipes, StartError> {
        let pipes = Pipes::make(self.folder.path(), vm).map_err(StartError::Scratch)?;
        pipes.listen(vm, self.sender.clone());
        Ok(pipes)
    }

    fn remove(&mut self, id: VmId) -> Option<Vm> {
        let vm = self.vms.remove(&id)?;
        vm.pipes.remove();
        Some(vm)
    }

    fn number(&mut self) -> VmId {
        self.born += 1;
        VmId(self.born - 1)
    }

    fn take(&mut self, incoming: Incoming) -> Result<Option<Happening>, StartError> {
        match incoming {
            Incoming::Connected(id, commands) => {
                if let Some(vm) = self.vms.get_mut(&id) {
                    vm.connect(commands);
                }
                Ok(None)
            }
            Incoming::Said(id, message) if self.vms.contains_key(&id) => self.hear(id, *message),
            // The late words of a VM that we have buried.
            Incoming::Said(..) => Ok(None),
            Incoming::Garbled(id, line) => {
                self.kill(id);
                Ok(Some(Happening::Garbled(id, line)))
            }
            Incoming::Closed(id) => Ok(self.closed(id)),
            Incoming::Exited(id, status) => {
                if let Some(vm) = self.vms.get_mut(&id) {
                    vm.exited = Some((Instant::now(), describe(&status)));
                    // The processes that it left running must not outlive it, nor hold its channel open.
                    vm.kill();
                }
                Ok(None)
            }
            Incoming::Interrupted => Ok(Some(Happening::Interrupted)),
        }
    }

    fn hear(&mut self, id: VmId, message: Message) -> Result<Option<Happening>, StartError> {
        Ok(match message {
            Message::Hello(hello) => return self.greet(id, hello),
            Message::Back {} => None,
            Message::Branching {} => Some(Happening::Branching(id)),
            Message::Apart { pid } => Some(Happening::Apart(id, Pid::from_raw(pid))),
            Message::Rejoined { how } => Some(Happening::Rejoined(id, how)),
            Message::Marked { unseen } => Some(Happening::Marked(id, unseen)),
            Message::Changed { pieces, unseen } => {
                let pieces = pieces.into_iter().map(Piece::from).collect();
                Some(Happening::Changed(id, pieces, unseen))
            }
            Message::Located { places, why } => Some(Happening::Located(id, places, why)),
            Message::Forked {} => Some(Happening::Forked(id)),
            Message::Unable { why, detail } => Some(Happening::Unable(id, why, detail)),
            Message::Parsed(parsed) => Some(Happening::Parsed(id, parsed)),
            Message::Tests(collected) => Some(Happening::Ready(id, Box::new(collected))),
            Message::Ran(ran) => Some(Happening::Ran(id, Box::new(ran))),
            Message::Unknown {} => Some(Happening::Unknown(id)),
            Message::Finished { status, extra } => Some(Happening::Finished(id, status, extra)),
            Message::Stopped { why, message, .. } => Some(Happening::Stopped(id, why, message)),
            Message::Unforked { vm: None, why } => Some(Happening::Unforked(id, why)),
            Message::Unforked { vm: Some(vm), why } => {
                self.remove(VmId(vm));
                Some(Happening::Unforked(VmId(vm), why))
            }
        })
    }

    fn greet(&mut self, id: VmId, hello: Hello) -> Result<Option<Happening>, StartError> {
        if hello.protocol != PROTOCOL {
            return Err(StartError::Protocol {
                theirs: hello.protocol,
                ours: PROTOCOL,
            });
        }
        let Some(vm) = self.vms.get_mut(&id) else {
            return Ok(None);
        };
        vm.pid = Some(Pid::from_raw(hello.pid));
        vm.stack_signal = Some(hello.stack_signal);
        let birth = vm.birth;
        let start = vm.launch.take();
        self.hello.get_or_insert(hello);
        Ok(match (start, birth) {
            (Some(start), _) => {
                self.welcome(id, &start);
                None
            }
            // It was started ahead of need.
            (None, Birth::Exec) => None,
            (None, Birth::Fork | Birth::Elsewhere) => {
                self.tell_of(id, birth);
                Some(Happening::Cloned(id))
            }
        })
    }

    /// Has a new process start.
    fn welcome(&mut self, id: VmId, start: &Command) {
        self.tell_of(id, Birth::Exec);
        self.tell(id, start);
    }

    /// Tells of a VM that is ready to work.
    fn tell_of(&self, vm: VmId, birth: Birth) {
        // The events have no reader only when the run is given up.
        drop(self.events.send(Event::VmStarted { vm, birth }));
    }

    /// A closed channel is the end of a fork; an interpreter of ours is over when its process is.
    fn closed(&mut self, id: VmId) -> Option<Happening> {
        let vm = self.vms.get_mut(&id)?;
        vm.disconnect();
        if vm.birth == Birth::Exec {
            return None;
        }
        let (how, output) = ("ended unexpectedly".to_owned(), vm.output.clone());
        self.kill(id);
        Some(Happening::Ended(id, Fate { how, output }))
    }

    /// An interpreter whose process has ended, once its last words are here or late.
    fn gone(&mut self) -> Option<Happening> {
        let now = Instant::now();
        let (id, how) = self.vms.iter().find_map(|(id, vm)| {
            let (since, how) = vm.exited.as_ref()?;
            (vm.has_spoken() || now >= *since + LAST_WORDS).then(|| (*id, how.clone()))
        })?;
        let output = self.remove(id)?.output;
        Some(Happening::Ended(id, Fate { how, output }))
    }
}

impl Fleet {
    /// Ends every process of the run at once, also those that have left a VM's process group.
    pub(crate) fn kill_all(&mut self) {
        kill_descendants(self.vms.values().filter_map(|vm| vm.pid).collect());
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if self.vms.values().any(|vm| vm.birth == Birth::Exec) {
            // The run was cut short: a VM may have a copy at work, in a process group of its own.
            self.kill_all();
        }
        for vm in self.vms.values() {
            vm.kill();
        }
    }
}

/// Collects a killed fork in a container whose first process we are; else the system does.
fn collect(pid: Pid) {
    // As a rule it is not our child, and then the call fails, which is no harm.
    let _not_ours = nix::sys::wait::waitpid(pid, None);
}
