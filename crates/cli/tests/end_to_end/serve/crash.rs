//! Kills and ends: what was acknowledged is there.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::Signal;
use unflake_history::engine::{self, Missing};

use super::{Server, agent, new_store};

/// The body of a report that no other has.
fn body(number: usize) -> String {
    let mut text = "test,time,verdict\n".to_owned();
    for test in 0..50 {
        writeln!(text, "t{test},{},passed", 1_750_000_000 + number).unwrap();
    }
    text
}

/// Sends reports from several threads until the server is gone, and says which were acknowledged. After so
/// many acknowledgements it gets the signal.
fn load(server: &Server, first: usize, after: usize, signal: Signal) -> Vec<String> {
    let next = AtomicUsize::new(first);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let request = agent().post(format!("{}/api/v1/reports", server.url));
                    let answer = request.content_type("text/csv").send(body(number));
                    let Ok(mut response) = answer else {
                        return;
                    };
                    let Ok(text) = response.body_mut().read_to_string() else {
                        return;
                    };
                    if response.status() != 201 {
                        return;
                    }
                    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
                    let mut all = acknowledged.lock().unwrap();
                    all.push(answer["digest"].as_str().unwrap().to_owned());
                    if all.len() == after {
                        server.signal(signal);
                    }
                }
            });
        }
    });
    acknowledged.into_inner().unwrap()
}

fn to_bytes(digest: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&digest[at * 2..at * 2 + 2], 16).unwrap();
    std::array::from_fn(byte)
}

#[test]
fn after_a_kill_every_acknowledged_report_is_there_once() {
    let (_folder, store) = new_store();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let mut server = Server::start(&store, &[]);
        let found = load(&server, round * 10_000, 5 + round * 17, Signal::SIGKILL);
        assert!(found.len() >= 5 + round * 17);
        acknowledged.extend(found);
        assert_eq!(server.wait(), None, "it was killed");
    }
    let opened = engine::open(&store, Missing::Refuse).unwrap();
    for digest in &acknowledged {
        assert!(opened.has_import(&to_bytes(digest)).unwrap(), "{digest}");
    }
    let runs = opened.extent().unwrap().run;
    let reports = i64::try_from(acknowledged.len()).unwrap();
    // What was stored and not acknowledged in time is there as a whole: at most one per client and round.
    assert!(runs % 50 == 0 && runs >= reports * 50, "{runs}");
    assert!(runs <= (reports + 4 * 6) * 50, "{runs} of {reports}");
    // The server goes on with it.
    let server = Server::start(&store, &[]);
    assert_eq!(server.json("/api/v1/tests")["all"], 50);
}

#[test]
fn asked_to_end_it_finishes_what_it_has_taken() {
    let (_folder, store) = new_store();
    let mut server = Server::start(&store, &[]);
    let acknowledged = load(&server, 0, 20, Signal::SIGTERM);
    assert_eq!(server.wait(), Some(0));
    let opened = engine::open(&store, Missing::Refuse).unwrap();
    for digest in &acknowledged {
        assert!(opened.has_import(&to_bytes(digest)).unwrap());
    }
    let runs = opened.extent().unwrap().run;
    // It broke nothing off: whatever it stored, somebody was told.
    assert_eq!(runs, i64::try_from(acknowledged.len()).unwrap() * 50);
}
