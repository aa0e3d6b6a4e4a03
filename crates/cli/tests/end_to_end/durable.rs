//! A history under kills, full disks and several writers.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
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
fn a_first_import_of_many_runs_survives_a_kill() {
    let project = Project::new();
    let mut table = "test,time,verdict\n".to_owned();
    for line in 0..100_000 {
        writeln!(table, "t{},{},passed", line % 50, 1_700_000_000 + line).unwrap();
    }
    project.write("many.csv", &table);
    let mut child = command(&project, &["record", "many.csv"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // It goes without its log: what is written is in the file or its journal.
    let journal = project.path().join(".unflake/history.db-journal");
    wait_for(&mut child, &journal, 1);
    child.kill().unwrap();
    let acknowledged = child.wait().unwrap().success();
    let again = unflake(&project, &["record", "many.csv"]);
    assert_eq!(again.code, Some(0), "{again:#?}");
    assert!(
        !acknowledged || again.stdout.contains("1 had been added before"),
        "{again:#?}"
    );
    let rates = json(
        &project,
        &["rates", "--days", "9999", "--baseline-days", "1"],
    );
    assert_eq!(rates["summary"]["runs"], 100_000);
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

/// The most memory, in megabytes, that a child takes while it reads `begin`, `part` so often, and `end`.
#[cfg(target_os = "linux")]
fn peak_while_reading(project: &Project, begin: &str, part: &str, times: usize, end: &str) -> u64 {
    let mut child = command(project, &["record", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(begin.as_bytes()).unwrap();
    for _ in 0..times {
        input.write_all(part.as_bytes()).unwrap();
    }
    // It has read nearly all of it, and waits for the rest.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    input.write_all(end.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() / 1024
}

#[cfg(target_os = "linux")]
#[test]
fn files_of_any_size_take_little_memory() {
    let project = Project::new();
    let begin = "<testsuite name='s'><testcase name='a' classname='c'><system-out>";
    let end = "</system-out></testcase></testsuite>";
    let line = "what a test may write without end &amp; without sense\n".repeat(20_000);
    let output = peak_while_reading(&project, begin, &line, 200, end);

    let cases = "<testcase name='a' classname='c' time='1'/>".repeat(1000);
    let many = peak_while_reading(&project, "<testsuite>", &cases, 300, "</testsuite>");

    let cell = "x".repeat(10_000);
    let rows = format!("t,2025-01-01,passed,{cell}\n").repeat(100);
    let table = peak_while_reading(&project, "test,time,verdict,log\n", &rows, 200, "");
    for peak in [output, many, table] {
        assert!(peak < 150, "{output} MB, {many} MB, {table} MB");
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
