//! The socket that runners connect to. Every line of every VM becomes one message in one queue.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use unflake_core::trial::VmId;

use crate::protocol::Message;

/// The longest line that a runner may send; its texts are cut far below this.
const LONGEST_LINE: u64 = 256 * 1024 * 1024;

/// How long a reader rests while its VM goes on without being told.
const NAP: Duration = Duration::from_millis(3);

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
        let incoming = match serde_json::from_slice(&line) {
            Ok(message) => Incoming::Said(vm, Box::new(message)),
            Err(_) => Incoming::Garbled(vm, beginning(&line)),
        };
        let goes_on = matches!(&incoming, Incoming::Said(_, said) if said.goes_on());
        if !tell(incoming) {
            return;
        }
        if goes_on && !reader.buffer().contains(&b'\n') {
            // More will come by itself and nobody waits for an answer: to wake up once for several
            // results leaves the processor to the tests.
            thread::sleep(NAP);
        }
    }
    tell(Incoming::Closed(vm));
}

/// The VM that the first line of a connection comes from.
fn introduce(line: &[u8]) -> Result<(VmId, Message), serde_json::Error> {
    let message: Message = serde_json::from_slice(line)?;
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

/// The next line, as long as it may be; one that is longer comes in pieces, which say nothing.
fn next_line(reader: &mut BufReader<UnixStream>) -> Option<Vec<u8>> {
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
        let address = folder.path().join("channel");
        let (sender, queue) = channel();
        listen(&address, sender).unwrap();
        let mut runner = UnixStream::connect(&address).unwrap();
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
    }
}
