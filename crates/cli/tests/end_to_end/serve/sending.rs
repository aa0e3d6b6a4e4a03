//! `unflake record --to`: with patience, and never twice.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Server, junit, new_store};
use crate::project::{Project, Run};

fn record(project: &Project, url: &str, more: &[&str]) -> Run {
    let mut arguments = vec!["record", "--to", url, "--format", "json"];
    arguments.extend(more);
    let mut command = project.unflake(&arguments);
    command.env_remove("UNFLAKE_STORE");
    Run::of(command.output().unwrap())
}

#[test]
fn a_folder_is_sent_once_with_where_it_comes_from() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let project = Project::with(&[
        ("out/a.xml", &junit("2026-06-01T00:00:00", &[("one", None)])),
        ("out/b.csv", "test,time,verdict\nb,2026-06-01,failed\n"),
        (
            "out/c.ndjson",
            "{\"test\":\"c\",\"time\":\"2026-06-01\",\"verdict\":\"ok\"}\n",
        ),
    ]);
    let options = [
        "out",
        "--job",
        "17",
        "--branch",
        "main",
        "--environment",
        "linux",
    ];
    let first = record(&project, &server.url, &options);
    let answer: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(
        (first.code, &answer["runs"]),
        (Some(0), &serde_json::json!(3)),
        "{answer}"
    );
    let second = record(&project, &server.url, &options);
    let answer: serde_json::Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(answer["files"][0]["result"], "known");
    let metrics = server.get("/metrics").1;
    assert!(
        metrics.contains("unflake_reports_total{result=\"known\"} 0"),
        "nothing was sent again: {metrics}"
    );
    let one = server.json("/api/v1/tests/1");
    assert_eq!(
        (
            &one["last_runs"][0]["job"],
            &one["last_runs"][0]["environment"]
        ),
        (&"17".into(), &"linux".into())
    );
    project.write("out/broken.xml", "<html/>");
    let third = record(&project, &server.url, &options);
    assert_eq!(third.code, Some(1));
    assert!(third.stdout.contains("422"), "{third:?}");
}

#[test]
fn an_answer_that_is_lost_does_not_make_a_report_count_or_go_twice() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let project = Project::with(&[("a.xml", &junit("2026-06-01T00:00:00", &[("one", None)]))]);
    let (url, posts) = lossy(&server);
    let run = record(&project, &url, &["a.xml"]);
    let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &answer["files"][0]["result"]),
        (Some(0), &"known".into()),
        "{run:?}"
    );
    assert_eq!(posts.load(Ordering::SeqCst), 1, "sent once");
    assert!(run.stderr.contains("trying again"), "{run:?}");
    assert_eq!(server.json("/api/v1/tests")["tests"][0]["runs"], 1);
}

/// A way to the server that swallows its first answer to a report.
fn lossy(server: &Server) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = server.url.trim_start_matches("http://").to_owned();
    let posts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&posts);
    thread::spawn(move || {
        for client in listener.incoming() {
            pass_on(client.unwrap(), &target, &counted);
        }
    });
    (url, posts)
}

/// Passes one request on, and its answer back, unless it is a report.
fn pass_on(mut client: TcpStream, target: &str, posts: &AtomicUsize) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = client.read(&mut buffer).unwrap();
        request.extend(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return;
            }
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            break;
        }
    }
    let is_report = request.starts_with(b"POST");
    // One request a connection, so that the answer ends with it.
    let text = String::from_utf8(request).unwrap();
    let text = text.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mut server = TcpStream::connect(target).unwrap();
    server.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    if is_report {
        posts.fetch_add(1, Ordering::SeqCst);
        return;
    }
    client.write_all(&answer).unwrap();
}
