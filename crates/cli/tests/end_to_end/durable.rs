//! A history under kills, full disks and several writers.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::history::{command, json, unflake};
use crate::project::{Project, Run};

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let project = Project::new();
    for at in 0..6_u64 {
        let mut table = "test,time,verdict\n".to_owned();
        for line in 0..20_000 {
            let time = 1_700_000_000 + line + at * 100_000;
            writeln!(table, "t{},{time},passed", line % 50).unwrap();
        }
        project.write(&format!("{at}.csv"), &table);
    }
    let mut acknowledged = 0;
    for at in 0..6 {
        let file = format!("{at}.csv");
        let mut child = command(&project, &["record", &file])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Later and later in its work, by what it has written so far.
        let log = project.path().join(".unflake/history.db-wal");
        if at % 2 == 1 {
            wait_for(&mut child, &log, at * 20_000);
            child.kill().unwrap();
        }
        acknowledged += u64::from(child.wait().unwrap().success()) * 20_000;
    }
    let rates = json(
        &project,
        &["rates", "--days", "9999", "--baseline-days", "1"],
    );
    let there = rates["summary"]["runs"].as_u64().unwrap();
    assert!(
        there >= acknowledged && there.is_multiple_of(20_000),
        "{there} of {acknowledged}"
    );
    assert!(acknowledged >= 60_000);
}

#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    let project = Project::with(&[("small.csv", "test,time,verdict\na,2025-01-01,ok\n")]);
    assert_eq!(unflake(&project, &["record", "small.csv"]).code, Some(0));
    let mut table = "test,time,verdict\n".to_owned();
    for line in 0..200_000 {
        writeln!(table, "t{},{},passed", line % 50, 1_700_000_000 + line).unwrap();
    }
    project.write("large.csv", &table);
    // A limit on the size of files stands in for the end of the disk.
    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" record large.csv";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_unflake")]);
    let full = Run::of(command.current_dir(project.path()).output().unwrap());
    assert_eq!(full.code, Some(3), "{full:#?}");
    assert!(full.stderr.contains("nothing was added"), "{full:#?}");
    assert_eq!(json(&project, &["rates"])["summary"]["runs"], 1);
    assert_eq!(unflake(&project, &["record", "large.csv"]).code, Some(0));
}

/// Waits until a child has written so much, or has ended.
fn wait_for(child: &mut std::process::Child, log: &Path, bytes: u64) {
    while child.try_wait().unwrap().is_none() {
        if fs::metadata(log).is_ok_and(|data| data.len() >= bytes) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn several_processes_record_at_once() {
    let project = Project::new();
    let mut children = Vec::new();
    for at in 0..6 {
        project.write(
            &format!("{at}.csv"),
            &format!("test,time,verdict\nt{at},2025-01-01,ok\n"),
        );
        let mut record = command(&project, &["record", &format!("{at}.csv")]);
        children.push(record.stdout(Stdio::null()).spawn().unwrap());
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(json(&project, &["rates"])["summary"]["tests"], 6);
}
