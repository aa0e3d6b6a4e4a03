//! Tests in quarantine: runs that do not fail for them, and how they leave.

use std::fmt::Write;

use serde_json::json;

use super::board::number_of;
use super::{Server, junit, new_store};
use crate::project::{Project, Python};

#[test]
fn a_test_in_quarantine_does_not_fail_a_run_and_leaves_by_evidence() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let project = Project::with(&[(
        "test_a.py",
        "def test_fine(): pass\ndef test_broken(): assert False\n",
    )]);
    let mut lines = String::new();
    for day in 1..=3 {
        let time = format!("2026-06-0{day}");
        let line = json!({"test": "test_a.test_broken", "time": time, "verdict": "failed"});
        writeln!(lines, "{line}").unwrap();
    }
    server.post("/api/v1/reports", "application/x-ndjson", &lines);
    let (report, run) = project.run_json(&python, &["--quarantine", &server.url]);
    assert_eq!(
        (run.code, &report["summary"]["broken"]),
        (Some(1), &json!(1))
    );

    let number = number_of(&server, "broken");
    let until = unflake_history::dates::day_of(unflake_history::dates::now()) + 5;
    let until = unflake_history::dates::to_text(until);
    let body = json!({"test": number, "reason": "known", "owner": "@ann", "until": until});
    let admit = |body: &serde_json::Value| {
        server.post("/api/v1/quarantine", "application/json", &body.to_string())
    };
    assert_eq!(
        admit(&json!({"test": number, "reason": " ", "until": until})).0,
        400
    );
    assert_eq!(
        admit(&json!({"test": number, "reason": "x", "until": "2020-01-01"})).0,
        400
    );
    let (status, quarantine) = admit(&body);
    assert_eq!(
        (status, &quarantine["residents"][0]["owner"]),
        (200, &json!("@ann"))
    );

    let junit = project.path().join("out.xml");
    let (report, run) = project.run_json(
        &python,
        &[
            "--quarantine",
            &server.url,
            "--junit",
            junit.to_str().unwrap(),
        ],
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(report["summary"]["quarantined"], 1);
    assert_eq!(report["findings"][0]["verdict"], "broken");
    assert_eq!(report["findings"][0]["quarantine"]["reason"], "known");
    let human = project.run(&python, &["--quarantine", &server.url]);
    assert!(
        human.code == Some(0) && human.stdout.contains("@ann: known"),
        "{human:?}"
    );
    assert!(human.stdout.contains("1 quarantined"), "{human:?}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("unflake.quarantine"), "{xml}");

    // What the report says is kept as what it is: failures, and no pass.
    let (status, answer) = server.post("/api/v1/reports?job=q", "application/xml", &xml);
    assert_eq!(status, 201, "{answer}");
    let list = server.json("/api/v1/tests?query=broken&only=all");
    let own = list["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["runs"].as_u64() > Some(0));
    let own = own.unwrap()["number"].as_u64().unwrap();
    let one = server.json(&format!("/api/v1/tests/{own}"));
    let outcomes = one["last_runs"].as_array().unwrap();
    assert!(
        outcomes.iter().all(|run| run["outcome"] == "failed"),
        "{outcomes:?}"
    );
    assert!(
        outcomes.iter().any(|run| run["verdict"] == "broken"),
        "{outcomes:?}"
    );

    // The list as a file in the repository does the same.
    let (_, list) = server.get("/api/v1/quarantine.toml");
    project.write("unflake-quarantine.toml", &list);
    assert_eq!(project.run(&python, &[]).code, Some(0));
    leave_by_evidence(&server, number);
}

#[test]
fn the_runs_of_both_names_of_a_test_speak_for_it_in_quarantine() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let now = unflake_history::dates::now();
    let until = unflake_history::dates::to_text(unflake_history::dates::day_of(now) + 5);
    let own = "tests/test_cart.py::test_total";
    let send = |case: &str, runs: i64, first: i64, job: &str| {
        let mut xml = "<testsuites>".to_owned();
        for at in 0..runs {
            let time = jiff::Timestamp::from_millisecond(now + first + at * 1000).unwrap();
            write!(
                xml,
                "<testsuite name='s' timestamp='{time}'>{case}</testsuite>"
            )
            .unwrap();
        }
        let path = format!("/api/v1/reports?job={job}");
        let (status, answer) = server.post(&path, "application/xml", &(xml + "</testsuites>"));
        assert_eq!((status, &answer["runs"]), (201, &json!(runs)), "{answer}");
    };
    let case = "<testcase classname='tests.test_cart' name='test_total'";
    let named = format!(
        "{case}><properties><property name='unflake.id' value='{own}'/></properties></testcase>"
    );
    send(
        &format!("{case}><failure message='no'/></testcase>"),
        1,
        -1000,
        "before",
    );
    let number = number_of(&server, "total");
    let body = json!({"test": number, "reason": "known", "until": until}).to_string();
    assert_eq!(
        server
            .post("/api/v1/quarantine", "application/json", &body)
            .0,
        200
    );
    send(&format!("{case}/>"), 40, 60_000, "report");
    send(&named, 40, 120_000, "own");
    // The next report is written after the quarantine was looked at.
    send("<testcase classname='x' name='x'/>", 1, 0, "other");
    let quarantine = server.json("/api/v1/quarantine");
    assert_eq!(quarantine["residents"], json!([]), "{quarantine}");
    let left = &quarantine["left"][0];
    assert_eq!(
        (&left["number"], &left["test"]),
        (&json!(number), &json!(own))
    );
    let why = left["left_because"].as_str().unwrap();
    assert!(why.contains("0 of 80 runs failed"), "{why}");
}

fn leave_by_evidence(server: &Server, number: u64) {
    let now = unflake_history::dates::now();
    let mut lines = String::new();
    for at in 1..=160 {
        let line = json!({"test": "test_a.test_broken", "time": now + at, "verdict": "passed"});
        writeln!(lines, "{line}").unwrap();
    }
    let (status, answer) = server.post("/api/v1/reports", "application/x-ndjson", &lines);
    assert_eq!((status, &answer["runs"]), (201, &json!(160)), "{answer}");
    // The next report is written after the quarantine was looked at.
    server.post(
        "/api/v1/reports?job=z",
        "application/xml",
        &junit("2026-06-01T00:00:00", &[("x", None)]),
    );
    let quarantine = server.json("/api/v1/quarantine");
    assert_eq!(quarantine["residents"], json!([]), "{quarantine}");
    assert_eq!(quarantine["left"][0]["number"], number);
    let why = quarantine["left"][0]["left_because"].as_str().unwrap();
    // The failure in the report of `unflake run`, under the test's own name, counts too.
    assert!(why.contains("1 of 161 runs failed"), "{why}");
}
