//! The pipes between the driver and its VMs. Every line of every VM becomes one message in one queue.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use unflake_core::trial::VmId;

use crate::protocol::messages::Message;

/// The longest line that a runner may send; its texts are cut far below this.
const LONGEST_LINE: u64 = 256 * 1024 * 1024;

/// The time for which a reader rests while its VM goes on by itself.
const NAP: Duration = Duration::from_millis(3);

/// The entries of the driver's one queue.
pub(crate) enum Incoming {
    /// A VM has opened its ends; what we say to it goes here.
    Connected(VmId, File),
    /// A VM said something.
    Said(VmId, Box<Message>),
    /// A VM said something that is not in the protocol.
    Garbled(VmId, String),
    /// A VM's connection is closed.
    Closed(VmId),
    /// A process that we started has ended.
    Exited(VmId, io::Result<ExitStatus>),
    /// The user wants to stop.
    Interrupted,
}

/// The two pipes of a VM, as they lie in the folder of a run.
#[derive(Clone, Debug)]
pub(crate) struct Pipes {
    messages: PathBuf,
    commands: PathBuf,
}

impl Pipes {
    /// Makes the pipes of a VM.
    pub(crate) fn make(folder: &Path, vm: VmId) -> io::Result<Self> {
        let pipes = Self {
            messages: folder.join(format!("{}.messages", vm.0)),
            commands: folder.join(format!("{}.commands", vm.0)),
        };
        mkfifo(&pipes.messages, Mode::S_IRUSR | Mode::S_IWUSR)?;
        mkfifo(&pipes.commands, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok(pipes)
    }

    /// Reads the VM's messages in a thread of its own, until the pipes are removed.
    pub(crate) fn listen(&self, vm: VmId, queue: Sender<Incoming>) {
        let pipes = self.clone();
        thread::spawn(move || {
            // Opening waits for the runner. An error means that the pipes, and so the VM, are gone.
            while let Ok((messages, commands)) = pipes.open() {
                // A queue without a reader means that the run is over, and nobody wants to know.
                let is_heard = queue.send(Incoming::Connected(vm, commands)).is_ok();
                if !is_heard || !read_messages(vm, messages, &queue) {
                    return;
                }
            }
        });
    }

    fn open(&self) -> io::Result<(File, File)> {
        let messages = File::open(&self.messages)?;
        let commands = OpenOptions::new().write(true).open(&self.commands)?;
        Ok((messages, commands))
    }

    /// Removes the pipes of a VM that is over, and wakes its reader up so that it sees that.
    pub(crate) fn remove(&self) {
        // A pipe that is opened for both ends waits for nobody, and a process that waits for its other end goes on.
        let both_ends = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let wake_up = [both_ends(&self.messages), both_ends(&self.commands)];
        for path in [&self.messages, &self.commands] {
            // A test may have removed the whole folder; then there is nothing left to remove.
            drop(std::fs::remove_file(path));
        }
        drop(wake_up);
    }
}

/// Reads one connection to its end; whether there is anybody left to tell.
fn read_messages(vm: VmId, messages: File, queue: &Sender<Incoming>) -> bool {
    let mut reader = BufReader::new(messages);
    let mut copies = 0_usize;
    let tell = |incoming| queue.send(incoming).is_ok();
    while let Some(line) = next_line(&mut reader) {
        let incoming = match serde_json::from_slice(&line) {
            Ok(message) => Incoming::Said(vm, Box::new(message)),
            Err(_) => Incoming::Garbled(vm, beginning(&line)),
        };
        let mut goes_on = false;
        if let Incoming::Said(_, said) = &incoming {
            // A copy that runs one test soon ends, and then somebody waits.
            copies += usize::from(matches!(**said, Message::Apart { .. }));
            let has_ended = matches!(**said, Message::Rejoined { .. });
            copies = copies.saturating_sub(usize::from(has_ended));
            goes_on = said.goes_on() && copies == 0;
        }
        if !tell(incoming) {
            return false;
        }
        if goes_on && !reader.buffer().contains(&b'\n') {
            // More will come by itself and nobody waits for an answer: to wake up once for several
            // results leaves the processor to the tests.
            thread::sleep(NAP);
        }
    }
    tell(Incoming::Closed(vm))
}

/// The next line, as long as it may be; one that is longer comes in pieces, which say nothing.
fn next_line(reader: &mut BufReader<File>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let count = reader
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)
        .ok()?;
    let is_whole = line.ends_with(b"\n") || count as u64 == LONGEST_LINE;
    // A line without its end was cut off by the death of the VM: it says nothing for certain.
    is_whole.then_some(line)
}

fn beginning(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_is_not_the_protocol_is_reported_and_a_cut_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, queue) = channel();
        let pipes = Pipes::make(folder.path(), VmId(3)).unwrap();
        pipes.listen(VmId(3), sender);
        let mut runner = OpenOptions::new()
            .write(true)
            .open(&pipes.messages)
            .unwrap();
        let _commands = File::open(&pipes.commands).unwrap();
        let said = b"{\"say\":\"back\",\"vm\":3}\n\xff\xfe\n{\"say\":\"sing\"}\n{\"say\":\"ba";
        runner.write_all(said).unwrap();
        drop(runner);
        let mut heard = Vec::new();
        loop {
            match queue.recv().unwrap() {
                Incoming::Connected(VmId(3), _) => heard.push("connected"),
                Incoming::Said(VmId(3), _) => heard.push("said"),
                Incoming::Garbled(VmId(3), _) => heard.push("garbled"),
                Incoming::Closed(VmId(3)) => break,
                Incoming::Connected(..)
                | Incoming::Said(..)
                | Incoming::Garbled(..)
                | Incoming::Closed(_)
                | Incoming::Exited(..)
                | Incoming::Interrupted => panic!("{heard:?}"),
            }
        }
        assert_eq!(heard, ["connected", "said", "garbled", "garbled"]);
        // The reader waits for the VM to come back; when its pipes are removed, it ends.
        pipes.remove();
        let rest: Vec<Incoming> = queue.iter().collect();
        assert!(
            rest.iter()
                .all(|one| matches!(one, Incoming::Connected(..) | Incoming::Closed(_)))
        );
    }
}
