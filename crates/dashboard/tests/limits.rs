//! A server takes only so much at once, and waits only so long for anybody.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use unflake_core::owners::Owners;
use unflake_core::quarantine::Release;
use unflake_dashboard::{Limits, Options, serve};
use unflake_history::periods::PeriodWish;

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A server with these limits, which ends with this process.
fn start(folder: &TempDir, limits: Limits) -> SocketAddr {
    let options = Options {
        store: folder.path().join("history.db"),
        tokens: None,
        periods: PeriodWish::default(),
        owners: Owners::default(),
        release: Release::DEFAULT,
        limits,
    };
    let (tell, address) = mpsc::channel();
    thread::spawn(move || {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        serve(listen, options, |address| tell.send(address).unwrap()).unwrap();
    });
    address.recv().unwrap()
}

fn read_all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_connection_too_many_is_answered_when_another_ends() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let address = start(&folder, limits);
    // This one holds the only place: it has been answered, and may ask for more.
    let mut first = TcpStream::connect(address).unwrap();
    first
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut some = [0; 12];
    first.read_exact(&mut some).unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    let mut second = TcpStream::connect(address).unwrap();
    second.write_all(HEALTH).unwrap();
    // Time enough for a server that has a place for it; none is a failure of a slow one.
    let patience = Some(Duration::from_millis(200));
    second.set_read_timeout(patience).unwrap();
    let early = second.read(&mut some).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    second.set_read_timeout(None).unwrap();
    drop(first);
    assert!(read_all(second).starts_with("HTTP/1.1 200"));
}

#[test]
fn whoever_does_not_send_what_was_promised_is_not_waited_for() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        time: Duration::from_millis(50),
        ..Limits::default()
    };
    let address = start(&folder, limits);
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        b"POST /api/v1/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/xml\r\n\
                 Content-Length: 1000\r\nConnection: close\r\n\r\n<testsuite>";
    stream.write_all(head).unwrap();
    let answer = read_all(stream);
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("it took too long"), "{answer}");
}
