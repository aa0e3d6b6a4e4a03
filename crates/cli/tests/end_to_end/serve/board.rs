//! Reports in, board out: what pages and the API show, labels, and hostile names.

use std::fmt::Write;
use std::fs;

use serde_json::json;

use super::{Server, junit, new_store};

/// Thirty quiet days, and a last one on which two tests fail: one for the first time, one as ever.
fn fill(server: &Server) {
    let mut lines = String::new();
    for day in 1..=30 {
        for (test, verdict) in [
            ("a.py::new", "passed"),
            ("a.py::old", if day % 2 == 0 { "failed" } else { "passed" }),
            ("a.py::fine", "passed"),
        ] {
            let verdict = if day == 30 && test != "a.py::fine" {
                "failed"
            } else {
                verdict
            };
            let line = json!({
                "test": test, "time": format!("2026-06-{day:02}T04:00:00Z"), "verdict": verdict,
                "environment": if test == "a.py::new" { "linux" } else { "mac" }, "branch": "main",
                "job": format!("{day}"), "message": format!("{test} broke at {day}"),
            });
            writeln!(lines, "{line}").unwrap();
        }
    }
    let (status, answer) = server.post("/api/v1/reports", "application/x-ndjson", &lines);
    assert_eq!(
        (status, answer["runs"].as_u64()),
        (201, Some(90)),
        "{answer}"
    );
}

#[test]
fn page_and_api_name_the_same_owner() {
    let (folder, store) = new_store();
    let owners = folder.path().join("OWNERS");
    fs::write(&owners, "a.py @shop-team\n").unwrap();
    let server = Server::start(&store, &["--owners", owners.to_str().unwrap()]);
    fill(&server);
    let number = number_of(&server, "new");
    let test = format!("/tests/{number}");
    for path in ["/", "/?since=stable", "/tests", &test] {
        let (_, page) = server.get(path);
        assert!(page.contains("@shop-team"), "{path}");
    }
    for path in ["/api/v1/triage", "/api/v1/triage?since=stable"] {
        let found = server.json(path);
        for list in ["potential_product_faults", "potential_flaky_failures"] {
            for cluster in found[list]["clusters"].as_array().unwrap() {
                for line in cluster["lines"].as_array().unwrap() {
                    assert_eq!(line["owner"], "@shop-team", "{path}: {line}");
                }
            }
        }
    }
    assert_eq!(
        server.json(&format!("/api/v1{test}"))["owner"],
        "@shop-team"
    );
    let list = server.json("/api/v1/tests");
    assert_eq!(list["tests"][0]["owner"], "@shop-team");
}

#[test]
fn what_goes_wrong_is_said_to_people_and_to_programs_and_counted_without_their_words() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    for path in [
        "/api/nothing",
        "/api/v1/tests/evil",
        "/api/v1/triage?day=evil",
    ] {
        let (status, text) = server.get(path);
        assert!(matches!(status, 400 | 404), "{path}: {status}");
        assert!(text.starts_with("{\"error\":\""), "{path}: {text}");
    }
    for path in ["/nothing%22%7D%0Aevil", "/tests/17%22evil", "/?day=evil"] {
        let (status, page) = server.get(path);
        assert!(matches!(status, 400 | 404), "{path}: {status}");
        assert!(page.contains("To the board"), "{path}: {page}");
    }
    let (status, _) = server.post("/api/v1/triage", "text/plain", "");
    assert_eq!(status, 405);
    let form = format!("bug={}", "x".repeat(70_000));
    let kind = "application/x-www-form-urlencoded";
    let (status, page) = server.post("/label", kind, &form);
    assert_eq!(status, 413);
    assert!(page.as_str().unwrap().contains("To the board"), "{page}");
    let (_, metrics) = server.get("/metrics");
    for counted in [
        "route=\"other\",status=\"404\"} 2",
        "route=\"/api/v1/tests/{number}\",status=\"404\"} 1",
        "route=\"/tests/{number}\",status=\"404\"} 1",
        "route=\"/api/v1/triage\",status=\"405\"} 1",
        "route=\"/label\",status=\"413\"} 1",
    ] {
        assert!(metrics.contains(counted), "{counted}: {metrics}");
    }
    assert!(!metrics.contains("evil"), "{metrics}");
}

pub(super) fn number_of(server: &Server, test: &str) -> u64 {
    let found = server.json(&format!("/api/v1/tests?query={test}"));
    found["tests"][0]["number"].as_u64().unwrap()
}

#[test]
fn a_report_counts_once_and_says_what_was_left_out() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let xml = junit("2026-06-01T00:00:00", &[("one", None), ("two", Some("no"))]);
    let path = "/api/v1/reports?revision=abc&branch=main&job=7&environment=linux";
    let (status, first) = server.post(path, "application/xml", &xml);
    assert_eq!((status, first["result"].as_str()), (201, Some("added")));
    assert_eq!(first["runs"], 2);
    let (status, second) = server.post(path, "application/xml", &xml);
    assert_eq!((status, second["result"].as_str()), (200, Some("known")));
    let digest = first["digest"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/v1/reports/{digest}")).0, 200);
    let other = format!("{}0", &digest[1..]);
    assert_eq!(server.get(&format!("/api/v1/reports/{other}")).0, 404);
    // Another job's report is another report.
    let (status, _) = server.post("/api/v1/reports?job=8", "application/xml", &xml);
    assert_eq!(status, 201);
    let lines = "{\"test\":\"a\",\"time\":\"2026-06-01\",\"verdict\":\"ok\"}\nnonsense\n";
    let (_, answer) = server.post("/api/v1/reports", "application/x-ndjson", lines);
    assert_eq!(answer["skipped"][0]["count"], 1, "{answer}");
    for (kind, body) in [
        ("application/xml", "<html>"),
        ("application/x-ndjson", "{}"),
        ("text/csv", "a"),
    ] {
        let (status, answer) = server.post("/api/v1/reports", kind, body);
        assert_eq!(status, 422, "{answer}");
    }
    let (status, metrics) = server.get("/metrics");
    assert_eq!(status, 200);
    assert!(
        metrics.contains("unflake_reports_total{result=\"added\"} 3"),
        "{metrics}"
    );
    assert!(
        metrics.contains("unflake_reports_total{result=\"known\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("unflake_runs_added_total 5"), "{metrics}");
}

#[test]
fn the_failure_that_stands_out_comes_first_and_the_ranking_is_measured() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    fill(&server);
    let board = server.json("/api/v1/triage");
    assert_eq!(board["day"], "2026-06-30");
    let first = &board["potential_product_faults"]["clusters"][0]["lines"][0];
    assert_eq!(first["test"], "a.py::new");
    assert_eq!(first["priority"], 1.0);
    let second = &board["potential_flaky_failures"]["clusters"][0]["lines"][0];
    assert_eq!(second["test"], "a.py::old");
    assert_eq!(board["environments"], json!(["linux", "mac"]));
    let filtered = server.json("/api/v1/triage?environment=mac");
    assert_eq!(filtered["potential_product_faults"]["tests"], 0);
    assert_eq!(filtered["potential_flaky_failures"]["tests"], 1);
    assert!(board["ranking"]["share"].is_null());

    let say = |test: &str, is_fault: bool| {
        let number = number_of(&server, test);
        let body =
            json!({"test": number, "day": "2026-06-30", "is_fault": is_fault, "bug": "SHOP-1"});
        server.post("/api/v1/labels", "application/json", &body.to_string())
    };
    assert_eq!(say("new", true).1["ranking"]["share"], 1.0);
    assert_eq!(say("old", true).1["ranking"]["share"], 0.5);
    assert_eq!(say("old", false).1["ranking"]["share"], 1.0);
    assert_eq!(say("fine", true).0, 404);
    let board = server.json("/api/v1/triage");
    let line = &board["potential_product_faults"]["clusters"][0]["lines"][0];
    assert_eq!(line["fault"]["bug"], "SHOP-1");
    // A fault of the product is no flake.
    let tests = server.json("/api/v1/tests?query=new");
    assert_eq!(tests["tests"][0]["flaky_failures"], 0);
    let (_, page) = server.get("/");
    assert!(page.contains("SHOP-1") && page.contains("100 %"), "{page}");
}

#[test]
fn failures_since_the_last_stable_run_are_those_after_nothing_new_had_failed() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    assert!(server.json("/api/v1/triage?since=stable")["since"].is_null());
    let line = |test: &str, day: u32, revision: &str, failed: bool| {
        let verdict = if failed { "failed" } else { "passed" };
        json!({
            "test": test, "time": format!("2026-06-{day:02}T04:00:00Z"), "verdict": verdict,
            "environment": if test == "a.py::new" { "linux" } else { "mac" }, "branch": "main",
            "revision": revision, "job": format!("{revision}-{test}"),
        })
    };
    let mut lines = String::new();
    for day in 1..=30 {
        let revision = format!("r{day}");
        for (test, failed) in [
            ("a.py::new", day >= 29),
            ("a.py::old", day % 2 == 0),
            ("a.py::fine", false),
        ] {
            writeln!(lines, "{}", line(test, day, &revision, failed)).unwrap();
        }
    }
    // One test of three that passes: too small a run to say that all is well.
    writeln!(lines, "{}", line("a.py::fine", 30, "small", false)).unwrap();
    server.post("/api/v1/reports", "application/x-ndjson", &lines);

    let board = server.json("/api/v1/triage?since=stable");
    assert_eq!(board["stable_run"]["revision"], "r28", "{board}");
    assert_eq!(board["stable_run"]["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&board["day"], &board["since"]),
        (&json!(null), &json!("2026-06-28"))
    );
    let new = &board["potential_product_faults"]["clusters"][0]["lines"][0];
    assert_eq!(
        (&new["test"], &new["days"]),
        (&json!("a.py::new"), &json!(2))
    );
    // Its failures stand out as much on both days; the last is shown.
    assert_eq!(
        (&new["day"], &new["priority"]),
        (&json!("2026-06-30"), &json!(1.0))
    );
    let old = &board["potential_flaky_failures"]["clusters"][0]["lines"][0];
    assert_eq!(
        (&old["test"], &old["days"]),
        (&json!("a.py::old"), &json!(1))
    );
    let mac = server.json("/api/v1/triage?since=stable&environment=mac");
    assert_eq!(mac["stable_run"]["revision"], "r28");
    assert_eq!(mac["potential_product_faults"]["tests"], 0);
    let (_, page) = server.get("/?since=stable");
    assert!(
        page.contains("Failures since the last stable run"),
        "{page}"
    );
    assert!(
        page.contains("and on 1 other day") && page.contains("r28"),
        "{page}"
    );

    // A run in which the product was at fault is not stable, whatever failed.
    let body = json!({"test": number_of(&server, "old"), "day": "2026-06-28", "is_fault": true});
    let (status, _) = server.post("/api/v1/labels", "application/json", &body.to_string());
    assert_eq!(status, 200);
    let board = server.json("/api/v1/triage?since=stable");
    assert_eq!(board["stable_run"]["revision"], "r27");
    assert_eq!(server.get("/?since=stable&day=2026-06-28").0, 400);
    assert_eq!(server.get("/?since=ever").0, 400);
}

#[test]
fn without_a_stable_run_all_failures_of_the_period_are_shown() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let mut text = "test,time,verdict\n".to_owned();
    for day in 1..=30 {
        writeln!(text, "a,2026-06-{day:02},failed").unwrap();
    }
    server.post("/api/v1/reports", "text/csv", &text);
    let board = server.json("/api/v1/triage?since=stable");
    assert!(board["stable_run"].is_null(), "{board}");
    let list = &board["potential_flaky_failures"]["clusters"][0]["lines"][0];
    assert_eq!(
        (&board["since"], &list["days"]),
        (&json!("2026-06-17"), &json!(14))
    );
    let (_, page) = server.get("/?since=stable");
    assert!(
        page.contains("No run since 2026-06-17 was stable"),
        "{page}"
    );
}

#[test]
fn a_fault_can_be_labelled_that_a_long_list_does_not_show() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let mut text = "test,time,verdict,message\n".to_owned();
    for number in 100..350 {
        // Letters, because failures that differ by a number only are of one kind.
        let kind: String = number
            .to_string()
            .chars()
            .map(|one| (one as u8 + 49) as char)
            .collect();
        writeln!(text, "t{number},2026-06-01,failed,{kind}").unwrap();
    }
    server.post("/api/v1/reports", "text/csv", &text);
    let board = server.json("/api/v1/triage");
    let list = &board["potential_product_faults"];
    assert_eq!((&list["tests"], &list["more"]), (&json!(250), &json!(50)));
    let body = json!({"test": number_of(&server, "t349"), "day": "2026-06-01", "is_fault": true});
    let (status, answer) = server.post("/api/v1/labels", "application/json", &body.to_string());
    assert_eq!(
        (status, &answer["ranking"]["share"]),
        (200, &json!(1.0)),
        "{answer}"
    );
}

#[test]
fn every_page_answers_with_and_without_runs() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let pages = ["/", "/tests", "/suite", "/next", "/quarantine", "/login"];
    for page in pages {
        let (status, text) = server.get(page);
        assert_eq!(status, 200, "{page}");
        assert!(text.contains("<main"), "{page}");
    }
    assert!(server.get("/").1.contains("No runs yet"));
    fill(&server);
    let number = number_of(&server, "old");
    let one = format!("/tests/{number}");
    for page in pages.into_iter().chain([one.as_str()]) {
        let (status, text) = server.get(page);
        assert_eq!(status, 200, "{page}");
        assert!(!text.contains("No runs yet"), "{page}");
    }
    let (_, page) = server.get(&one);
    assert!(page.contains("15×") && page.contains("broke at"), "{page}");
    assert_eq!(server.get("/tests/4000000000").0, 404);
    assert_eq!(server.get("/tests/x").0, 404);
    assert_eq!(server.get("/nothing").0, 404);
    assert_eq!(server.get("/?day=yesterday").0, 400);
    assert_eq!(server.get("/api/v1/tests?sort=x").0, 400);
    let (status, badge) = server.get("/badge.svg");
    assert!(
        status == 200 && badge.contains("flaky tests: 2 of 3"),
        "{badge}"
    );
    assert_eq!(server.json("/healthz")["status"], "ok");
}

#[test]
fn what_tests_are_called_is_text_everywhere() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let evil = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    let cases = [(evil, Some(evil)), ("=cmd()|' /C calc'!A0", None)];
    for day in 1..4 {
        let xml = junit(&format!("2026-06-0{day}T00:00:00"), &cases);
        let path = format!("/api/v1/reports?job=%3Cscript%3E{day}&environment=%3Cb%3E&branch=main");
        assert_eq!(server.post(&path, "application/xml", &xml).0, 201);
    }
    let number = number_of(&server, "alert");
    for page in [
        "/",
        "/tests",
        "/suite",
        "/next",
        &format!("/tests/{number}"),
    ] {
        let (status, text) = server.get(page);
        assert_eq!(status, 200, "{page}");
        for raw in ["<script>alert", "<img src=x", "<b>", "<script>1"] {
            assert!(!text.contains(raw), "{raw} in {page}");
        }
    }
    let (_, csv) = server.get("/api/v1/tests.csv");
    assert!(
        csv.contains("\"shop.</title>") && csv.contains("\"\"'>"),
        "{csv}"
    );
}
