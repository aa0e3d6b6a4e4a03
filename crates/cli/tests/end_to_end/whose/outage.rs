//! A service on this machine that is away for some time, or for good.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::history::{Edit, History, Way};

/// A service that hangs up on so many callers before it answers one.
struct Service {
    hang_ups: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hang_ups = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (left, end) = (Arc::clone(&hang_ups), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for caller in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let take = |left: usize| left.checked_sub(1);
                let is_away = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
                if is_away.is_err() {
                    caller.unwrap().write_all(b"1").unwrap();
                }
            }
        });
        Self {
            hang_ups,
            is_over,
            address,
            thread: Some(thread),
        }
    }

    fn hang_up(&self, times: usize) {
        self.hang_ups.store(times, Ordering::SeqCst);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).expect("the service still listens");
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("the service ends");
    }
}

const FOR_GOOD: usize = usize::MAX;

const BASE: &str = r#"
=== fetch.py
import os
import socket


def name():
    return "tax"


def rate():
    name()
    address = ("127.0.0.1", int(os.environ["PORT"]))
    with socket.create_connection(address) as connection:
        answer = connection.recv(10)
    if not answer:
        raise OSError("the service hung up")
    return int(answer)
=== test_fetch.py
import fetch


def test_rate():
    assert fetch.rate() == 1
=== docs/notes.md
Tea.
=== compose.yaml
services:
  tax:
    image: tax:1
"#;

const TEST: &str = "test_fetch.py::test_rate";

/// A base and a change, with a service that plain pytest finds to be there, and away when it is.
fn history(edit: Edit) -> Option<(History, Service)> {
    let history = History::at(BASE)?;
    let service = Service::start();
    history.set("PORT", &service.address.port().to_string());
    history.change(Way::Branch, &[edit]);
    history.premise(&[]);
    service.hang_up(1);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [TEST]);
    Some((history, service))
}

#[test]
fn an_outage_that_is_over_is_not_yours_where_only_documents_changed() {
    let Some((history, service)) = history(("docs/notes.md", "Tea", "Coffee")) else {
        return;
    };
    service.hang_up(2);
    let said = history.run(&[]);
    // It does not fail again: what counts is what had been opened when it did.
    said.ends(0).is(TEST, "not-yours", &["untouched"]);
    said.fails_as(TEST, "flaky");
}

#[test]
fn an_outage_that_is_over_and_a_change_that_ran() {
    let Some((history, service)) = history(("fetch.py", "\"tax\"", "\"rate\"")) else {
        return;
    };
    service.hang_up(2);
    let said = history.run(&[]);
    said.ends(1).is(TEST, "not-known", &["not-settled"]);
    said.fails_as(TEST, "flaky");
    service.hang_up(2);
    history.run(&["--not-known", "pass"]).ends(0);
}

#[test]
fn an_outage_that_is_not_over_is_at_the_base_as_well() {
    for edit in [
        ("docs/notes.md", "Tea", "Coffee"),
        ("fetch.py", "\"tax\"", "\"rate\""),
    ] {
        let Some((history, service)) = history(edit) else {
            return;
        };
        service.hang_up(FOR_GOOD);
        let said = history.run(&[]);
        said.ends(1).is(TEST, "not-yours", &["at-base"]);
        said.fails_as(TEST, "broken");
        history.run(&["--forgive", "pre-existing"]).ends(0);
        history.set("CI", "true");
        history.run(&["--forgive", "pre-existing"]).ends(0);
    }
}

#[test]
fn an_outage_of_a_service_whose_own_files_changed_is_not_acquitted() {
    for hang_ups in [2, FOR_GOOD] {
        let Some((history, service)) = history(("compose.yaml", "tax:1", "tax:2")) else {
            return;
        };
        service.hang_up(hang_ups);
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is_not_acquitted(TEST);
    }
}
