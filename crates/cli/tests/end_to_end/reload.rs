//! `nio --mode method` where a VM cannot be copied: a first look on classes that are loaded anew finds what
//! a JVM for each test finds, and says nothing of its own.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::junit::{build, has_maven, unflake};
use crate::project::Project;

/// Passes in every JVM, and on no classes but those of its class path.
const PROUD: &str = "package shop;

public class ProudTest {
    @org.junit.Test
    public void isOnTheClassPath() {
        org.junit.Assert.assertSame(ClassLoader.getSystemClassLoader(), ProudTest.class.getClassLoader());
    }
}
";

#[test]
fn a_first_look_on_new_classes_finds_what_a_jvm_for_each_test_finds() {
    if !has_maven() {
        return;
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/junit/nio");
    let project = Project::copy_of(&fixture);
    project.write("src/test/java/shop/ProudTest.java", PROUD);
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    assert_eq!(build(&project, outside.path(), &[]).code, Some(0));
    let hunt = |more: &[&str]| {
        let mut all = vec!["nio", "--mode", "method", "--jobs", "2", "--format", "json"];
        all.extend(more);
        let run = unflake(&project, outside.path(), &all);
        let report: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
        let findings = report["findings"].as_array().unwrap().iter();
        let nio = findings.clone().filter(|one| one["verdict"] == "nio");
        let nio: BTreeSet<String> = nio.map(|one| one["id"].to_string()).collect();
        let is_proud = |one: &Value| one["id"].to_string().contains("ProudTest");
        assert!(!findings.clone().any(is_proud), "{report:#}");
        (nio, report["notes"].to_string())
    };
    let (looked_at, note) = hunt(&[]);
    let (in_jvms, no_note) = hunt(&["--fresh-by", "exec"]);
    assert_eq!(looked_at, in_jvms);
    assert_eq!(looked_at.len(), 13, "{looked_at:?}");
    assert!(
        note.contains("of 25 tests passed twice on classes that were loaded"),
        "{note}"
    );
    assert!(
        !no_note.contains("on classes that were loaded"),
        "{no_note}"
    );
}
