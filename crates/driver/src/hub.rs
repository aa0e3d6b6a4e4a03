//! The socket that runners connect to. Every line of every VM becomes one message in one queue.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;

use unflake_core::trial::VmId;

use crate::protocol::Message;

/// The longest line that a runner may send; its texts are cut far below this.
const LONGEST_LINE: u64 = 256 * 1024 * 1024;

/// What reaches the driver's one queue.
pub enum Incoming {
    /// A VM has opened a connection; what we say to it goes here.
    Connected(VmId, UnixStream),
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

/// Listens at `address` until the process ends, and reads every connection in a thread of its own.
pub(crate) fn listen(address: &Path, queue: Sender<Incoming>) -> io::Result<()> {
    let listener = UnixListener::bind(address)?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A connection that fails while it is made is a VM that died: its exit is reported.
            let Ok(stream) = stream else { continue };
            let queue = queue.clone();
            thread::spawn(move || read_connection(stream, &queue));
        }
    });
    Ok(())
}

fn read_connection(stream: UnixStream, queue: &Sender<Incoming>) {
    let Ok(writer) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(stream);
    let Some(Ok((vm, first))) = next_line(&mut reader).map(|line| introduce(&line)) else {
        return;
    };
    // A queue without a reader means that the run is over, and nobody wants to know.
    let tell = |incoming| queue.send(incoming).is_ok();
    if !tell(Incoming::Connected(vm, writer)) || !tell(Incoming::Said(vm, Box::new(first))) {
        return;
    }
    while let Some(line) = next_line(&mut reader) {
        let incoming = match serde_json::from_str(&line) {
            Ok(message) => Incoming::Said(vm, Box::new(message)),
            Err(_) => Incoming::Garbled(vm, line.chars().take(200).collect()),
        };
        if !tell(incoming) {
            return;
        }
    }
    tell(Incoming::Closed(vm));
}

/// The VM that the first line of a connection comes from.
fn introduce(line: &str) -> Result<(VmId, Message), serde_json::Error> {
    let message: Message = serde_json::from_str(line)?;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only these three may open a connection"
    )]
    let vm = match &message {
        Message::Hello(hello) => hello.vm,
        Message::Back { vm } | Message::Unable { vm, .. } => *vm,
        _ => return Err(serde::de::Error::custom("not a first message")),
    };
    Ok((VmId(vm), message))
}

fn next_line(reader: &mut BufReader<UnixStream>) -> Option<String> {
    let mut line = String::new();
    let count = reader.take(LONGEST_LINE).read_line(&mut line).ok()?;
    // A line without its end was cut off by the death of the VM: it says nothing for certain.
    (count > 0 && line.ends_with('\n')).then_some(line)
}
