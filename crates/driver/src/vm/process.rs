//! One VM: a process of the project's interpreter with our runner inside, in a process group of
//! its own, so that everything it started can be ended with it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unflake_core::trial::{Birth, VmId};

use crate::protocol::messages;
use crate::vm::output::Output;
use crate::vm::pipes::{Incoming, Pipes};

/// One VM as the driver sees it.
pub struct Vm {
    /// The way in which it was made.
    pub birth: Birth,
    /// Its process, which leads its process group. Unknown until a forked one says hello.
    pub pid: Option<Pid>,
    /// The signal that makes it write its stacks, once it has said hello.
    pub stack_signal: Option<i32>,
    /// The number of its trials so far.
    pub trials: usize,
    /// The time at which we asked for it.
    pub started: Instant,
    /// The time at which its process ended, and how, once we know. Its last words may still be on their way.
    pub exited: Option<(Instant, String)>,
    /// The command that starts its framework.
    pub launch: Option<messages::Command>,
    /// Its output; a forked VM writes into its parent's.
    pub output: Output,
    /// The place of its pipes.
    pub(crate) pipes: Pipes,
    commands: Option<File>,
    connections: Connections,
}

/// The number of connections that a VM has made, and of those that have ended.
#[derive(Clone, Copy, Default)]
struct Connections {
    made: usize,
    ended: usize,
}

impl Vm {
    /// Starts a process and a thread that waits for its end.
    pub(crate) fn spawn(
        id: VmId,
        mut command: Command,
        pipes: Pipes,
        queue: Sender<Incoming>,
    ) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        // The command holds our copies of the pipe's writing end: the output ends with the VM.
        drop(command);
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        thread::spawn(move || {
            let status = child.wait();
            // Without a reader the run is over, and nobody wants to know.
            drop(queue.send(Incoming::Exited(id, status)));
        });
        let vm = Self::new(Birth::Exec, Output::drain(reader), pipes);
        Ok(Self {
            pid: Some(Pid::from_raw(pid)),
            ..vm
        })
    }

    /// A copy of another VM that will say hello by itself.
    pub(crate) fn forked(output: Output, pipes: Pipes) -> Self {
        Self::new(Birth::Fork, output, pipes)
    }

    fn new(birth: Birth, output: Output, pipes: Pipes) -> Self {
        Self {
            birth,
            pid: None,
            stack_signal: None,
            trials: 0,
            started: Instant::now(),
            exited: None,
            launch: None,
            output,
            pipes,
            commands: None,
            connections: Connections::default(),
        }
    }

    /// Takes the end of a pipe that the VM now reads commands from.
    pub fn connect(&mut self, commands: File) {
        self.connections.made += 1;
        self.commands = Some(commands);
    }

    /// Notes that a connection of this VM has ended.
    pub fn disconnect(&mut self) {
        self.connections.ended += 1;
    }

    /// Whether all that it will ever say has arrived.
    pub fn has_spoken(&self) -> bool {
        let Connections { made, ended } = self.connections;
        self.exited.is_some() && made > 0 && made == ended
    }

    /// Tells the VM to do something. That it is gone shows soon enough, by its end.
    pub fn tell(&mut self, command: &messages::Command) {
        if let Some(commands) = &mut self.commands {
            // A VM that is gone says so by its end, which is an event of its own.
            drop(commands.write_all(&command.to_line()));
        }
    }

    /// Ends the VM and everything in its process group.
    pub fn kill(&self) {
        let Some(pid) = self.pid else { return };
        match killpg(pid, Signal::SIGKILL) {
            // Gone already, or only zombies are left in it (macOS says EPERM for those).
            Ok(()) | Err(Errno::ESRCH | Errno::EPERM) => {}
            Err(errno) => unreachable!("killing our own process group failed: {errno}"),
        }
    }
}

/// The end of a process, in words.
pub(crate) fn describe(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => {
                let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
                let hint = if name == "SIGKILL" {
                    ", perhaps for memory"
                } else {
                    ""
                };
                format!("killed by signal {signal} ({name}{hint})")
            }
            (None, None) => "ended without a status".to_owned(),
        },
        Err(error) => format!("lost ({error})"),
    }
}
