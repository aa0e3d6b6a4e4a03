//! Maven projects beyond their fixtures: errors, what is kept between two calls, reports of Surefire, and
//! changes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::junit::{build, has_maven, unflake};
use crate::project::{Project, Run};

const TEST: &str = "src/test/java/shop/ShopTest.java";
const FINE: &str = "package shop;\n\npublic class ShopTest {\n    @org.junit.Test\n    public void fine() {\n    }\n}\n";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/junit")
        .join(name)
}

/// A project with one test, with what the NIO fixture is built with.
fn shop() -> Project {
    let pom = fs::read_to_string(fixture("nio").join("pom.xml")).unwrap();
    Project::with(&[("pom.xml", &pom), (TEST, FINE)])
}

fn assert_error(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:#?}");
    assert_eq!(run.stdout, "", "errors belong on standard error");
    for part in parts {
        assert!(run.stderr.contains(part), "no {part:?} in {run:#?}");
    }
}

#[test]
fn there_is_no_pom() {
    let outside = TempDir::new().unwrap();
    let run = build(&Project::new(), outside.path(), &["--framework", "maven"]);
    assert_error(&run, 2, &["error: there is no pom.xml in", "help:"]);
}

#[test]
fn an_option_that_selects_no_test_is_named() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let run = build(&shop(), outside.path(), &["--", "-Dtest=NoSuch"]);
    assert_error(
        &run,
        3,
        &["Maven ran no tests", "no test matches `-Dtest=NoSuch`"],
    );
}

#[test]
fn what_maven_cannot_build_is_told_in_its_own_words() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    project.write(TEST, &FINE.replace("{\n    }", "{ nonsense(); }"));
    let run = build(&project, outside.path(), &[]);
    let parts = ["error: `mvn test` failed", "cannot find symbol", "help:"];
    assert_error(&run, 3, &parts);
    let empty = outside.path().join("repository");
    let repository = format!("-Dmaven.repo.local={}", empty.display());
    let run = build(&project, outside.path(), &["--", "-o", &repository]);
    assert_error(&run, 3, &["offline mode", "help:"]);
}

#[test]
fn jacocos_report_is_that_of_the_suites_jvm() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = Project::copy_of(&fixture("agents"));
    let built = build(&project, outside.path(), &[]);
    assert_eq!(built.code, Some(0), "{built:#?}");
    // Surefire's own JVM, which ran no test, has left one.
    let report = project.path().join("target/jacoco.exec");
    fs::remove_file(&report).unwrap();
    let run = unflake(&project, outside.path(), &["nio", "--mode", "suite"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(!report.exists(), "a JVM beside the suite's wrote it");
    let run = unflake(&project, outside.path(), &["run"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(report.is_file(), "the suite's JVM did not write it");
}

#[test]
fn no_tests_and_skipped_tests_are_told_apart() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let run = build(&project, outside.path(), &["--", "-DskipTests"]);
    assert_error(
        &run,
        3,
        &["Maven ran no tests", "skip the tests of shop:nio"],
    );
    fs::remove_file(project.path().join(TEST)).unwrap();
    let run = build(&project, outside.path(), &[]);
    assert_error(&run, 3, &["Maven ran no tests", "classes that are named"]);
}

#[test]
fn without_a_jdk_maven_says_so() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let mut command = project.unflake(&["list"]);
    command
        .env("XDG_CACHE_HOME", outside.path().join("cache"))
        .env("JAVA_HOME", outside.path().join("no-jdk"));
    let run = Run::of(command.output().unwrap());
    assert_error(&run, 3, &["`mvn test` failed", "JAVA_HOME", "help:"]);
}

#[test]
fn tests_of_another_kind_are_named() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let pom = project.read("pom.xml");
    let testng = pom
        .replace("<groupId>junit</groupId>", "<groupId>org.testng</groupId>")
        .replace(
            "<artifactId>junit</artifactId>",
            "<artifactId>testng</artifactId>",
        )
        .replace("4.13.2", "6.14.3")
        .replace("<excludedGroups>shop.Slow</excludedGroups>", "");
    project.write("pom.xml", &testng);
    project.write(
        TEST,
        &FINE.replace("org.junit.Test", "org.testng.annotations.Test"),
    );
    let run = build(&project, outside.path(), &[]);
    assert_error(&run, 3, &["does not support yet: TestNG", "help:"]);
}

#[test]
fn classes_in_the_style_of_junit_3_run_on_junit_4() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let old = FINE
        .replace(
            "class ShopTest",
            "class ShopTest extends junit.framework.TestCase",
        )
        .replace("    @org.junit.Test\n", "")
        .replace("fine", "testFine");
    project.write(TEST, &old);
    let run = build(&project, outside.path(), &[]);
    assert_eq!(run.stdout, "shop.ShopTest#testFine\n", "{run:#?}");
}

#[test]
fn maven_is_asked_again_only_after_a_change() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let first = build(&project, outside.path(), &[]);
    assert_eq!(first.stdout, "shop.ShopTest#fine\n", "{first:#?}");
    assert!(first.stderr.contains("building the tests: mvn test"));
    let without_maven = || {
        let mut command = project.unflake(&["list"]);
        command
            .env("XDG_CACHE_HOME", outside.path().join("cache"))
            .env("PATH", outside.path());
        Run::of(command.output().unwrap())
    };
    let second = without_maven();
    assert_eq!(second.stdout, first.stdout, "{second:#?}");
    assert_eq!(second.stderr, "");
    // A pom can name any file.
    project.write("conf/app.properties", "price=90");
    assert_error(&without_maven(), 3, &["cannot start `mvn`", "help:"]);
}

#[test]
fn failures_of_a_surefire_report_are_found_and_judged() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = Project::copy_of(&fixture("ladder"));
    let case = |class: &str, name: &str| {
        format!(
            "<testcase classname=\"{class}\" name=\"{name}\" time=\"0.1\">\
             <failure message=\"no\" type=\"java.lang.AssertionError\">no</failure></testcase>"
        )
    };
    let cases = [
        case("shop.StateTest", "b_isTheVictim"),
        case("shop.KindsTest", "oneOfThreeFails(int)[2]"),
        case("shop.Nowhere", "gone"),
    ];
    let report = format!(
        "<testsuite name=\"shop\" tests=\"3\">{}</testsuite>",
        cases.concat()
    );
    project.write("TEST-shop.xml", &report);
    build(&project, outside.path(), &[]);
    let args = [
        "triage",
        "--format",
        "json",
        "--fresh",
        "1",
        "TEST-shop.xml",
    ];
    let run = unflake(&project, outside.path(), &args);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:#?}"));
    let verdicts: Vec<(&str, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["id"].as_str().unwrap(),
                one["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("shop.StateTest#b_isTheVictim", "flaky"),
        ("shop.KindsTest#oneOfThreeFails(int)", "broken"),
    ];
    assert_eq!(verdicts, expected, "{run:#?}");
    assert_eq!(report["unmatched"].as_array().unwrap().len(), 1);
}

#[test]
fn a_failure_is_held_against_the_classes_that_changed() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = Project::copy_of(&fixture("reactor"));
    let tax = "base/src/main/java/shop/base/Tax.java";
    let unused = "base/src/main/java/shop/base/Unused.java";
    project.write(".gitignore", "target/\n");
    project.write(unused, "package shop.base;\n\nfinal class Unused {\n}\n");
    project.write(tax, &project.read(tax).replace("19", "20"));
    project.commit();
    project.write(tax, &project.read(tax).replace("20", "19"));
    project.write(
        unused,
        "package shop.base;\n\n/** None. */\nfinal class Unused {\n}\n",
    );
    build(&project, outside.path(), &[]);
    let args = [
        "run",
        "--format",
        "json",
        "--check-base",
        "--fresh",
        "1",
        "--end",
        "0",
    ];
    let run = unflake(&project, outside.path(), &args);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:#?}"));
    let findings = report["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|one| one["id"] == "shop.app.SettingsTest#usesTheOtherModule")
        .unwrap_or_else(|| panic!("{run:#?}"));
    let whose = &finding["whose"];
    let touched: Vec<&str> = whose["touches"]
        .as_array()
        .unwrap_or_else(|| panic!("{finding:#}"))
        .iter()
        .map(|touch| touch["file"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(touched, [tax], "{finding:#}");
    assert_eq!(whose["because"], "fails-more", "{finding:#}");
    assert_eq!(whose["at_base"]["failed"], 0, "{finding:#}");
}
