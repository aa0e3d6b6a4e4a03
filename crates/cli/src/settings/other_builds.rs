//! Projects of build tools whose tests unflake cannot run: their users are told what it can do for them.

use camino::Utf8Path;

use crate::view::explain::Trouble;

/// A build tool: its name, its files, and how its tests write the reports that `record` reads.
struct Tool {
    name: &'static str,
    files: &'static [&'static str],
    reports: &'static str,
}

const TOOLS: [Tool; 8] = [
    Tool {
        name: "Gradle",
        files: &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ],
        reports: "`unflake record build/test-results` takes its reports",
    },
    Tool {
        name: "Bazel",
        files: &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"],
        reports: "`unflake record bazel-testlogs/` takes its reports",
    },
    Tool {
        name: "Go",
        files: &["go.mod"],
        reports: "`gotestsum --junitfile report.xml` and `unflake record report.xml` take its runs",
    },
    Tool {
        name: "Cargo",
        files: &["Cargo.toml"],
        reports: "`unflake record target/nextest/default/junit.xml` takes the report of cargo-nextest",
    },
    Tool {
        name: "sbt",
        files: &["build.sbt"],
        reports: "`unflake record target/test-reports` takes its reports",
    },
    Tool {
        name: "CMake",
        files: &["CMakeLists.txt"],
        reports: "`ctest --output-junit report.xml` and `unflake record report.xml` take its runs",
    },
    Tool {
        name: "Ruby",
        files: &["Gemfile"],
        reports: "`unflake record report.xml` takes JUnit XML, as rspec_junit_formatter writes it",
    },
    Tool {
        name: "Node",
        files: &["package.json"],
        reports: "`unflake record report.xml` takes JUnit XML, as Jest, Vitest and Playwright write it",
    },
];

/// The files that a project with Python tests has at its top.
const PYTHON: [&str; 8] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "conftest.py",
    "requirements.txt",
    "uv.lock",
];

/// An error if the folder is a project of another tool, and nothing at its top speaks of Python.
pub(super) fn refuse(folder: &Utf8Path) -> Result<(), Trouble> {
    let has = |name: &&str| folder.join(name).is_file();
    let tool = TOOLS.iter().find(|tool| tool.files.iter().any(has));
    match tool.filter(|_| !PYTHON.iter().any(has) && !has_sources(folder)) {
        Some(tool) => Err(Trouble::OtherBuild {
            folder: folder.to_owned(),
            tool: tool.name,
            reports: tool.reports,
        }),
        None => Ok(()),
    }
}

/// Whether there are Python files where tests usually are.
fn has_sources(folder: &Utf8Path) -> bool {
    [".", "test", "tests", "src"].iter().any(|inside| {
        let entries = folder.join(inside).read_dir_utf8();
        let mut entries = entries.into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension() == Some("py"))
    })
}
