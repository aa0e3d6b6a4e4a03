//! The statements of a CI's variables about the branch that it builds: which commit was there before, and which branch
//! of the repository is the default one.

use std::fs;

use serde_json::Value;

use Form::{Commit, Event, Range};
use Standing::{Built, Passed, Pushed};

/// A commit that was there before the one that a CI builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    /// The variable that says so.
    pub(crate) variable: &'static str,
    /// The CI's statement about it.
    pub(crate) standing: Standing,
    /// Its hash, perhaps a short one.
    pub(crate) commit: String,
}

/// A CI's statement about an earlier commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The branch was there before the push.
    Pushed,
    /// It was built before.
    Built,
    /// The last build that passed was of it.
    Passed,
}

/// The form in which a variable names a commit.
enum Form {
    /// By its hash.
    Commit,
    /// As the first of two, with dots between them.
    Range,
    /// In a file of JSON, as `before`.
    Event,
}

/// The variables, in order. `CircleCI` and Buildkite have none.
const VARIABLES: [(&str, Standing, Form); 11] = [
    // GitHub, Gitea, Forgejo.
    ("GITHUB_EVENT_PATH", Pushed, Event),
    // GitLab.
    ("CI_COMMIT_BEFORE_SHA", Pushed, Commit),
    // Jenkins.
    ("GIT_PREVIOUS_SUCCESSFUL_COMMIT", Passed, Commit),
    ("GIT_PREVIOUS_COMMIT", Built, Commit),
    // Cirrus.
    ("CIRRUS_LAST_GREEN_CHANGE", Passed, Commit),
    // Travis.
    ("TRAVIS_COMMIT_RANGE", Pushed, Range),
    // Semaphore.
    ("SEMAPHORE_GIT_COMMIT_RANGE", Pushed, Range),
    // Drone.
    ("DRONE_COMMIT_BEFORE", Pushed, Commit),
    // Woodpecker.
    ("CI_PREV_COMMIT_SHA", Built, Commit),
    // AWS CodeBuild.
    ("CODEBUILD_WEBHOOK_PREV_COMMIT", Pushed, Commit),
    // Bamboo.
    ("bamboo_planRepository_previousRevision", Built, Commit),
];

/// Variables that name the default branch: of GitLab and Buildkite.
const DEFAULTS: [&str; 2] = ["CI_DEFAULT_BRANCH", "BUILDKITE_PIPELINE_DEFAULT_BRANCH"];

/// The commits that were there before, the best first. None of a first push, whose hash is all noughts.
pub(crate) fn before(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Before> {
    let mut all = Vec::new();
    for (name, standing, form) in &VARIABLES {
        let Some(value) = variable(name) else {
            continue;
        };
        let commit = match form {
            Commit => Some(value),
            Range => value.split("..").next().map(str::to_owned),
            Event => read_event(&value).and_then(|event| text(&event["before"])),
        };
        if let Some(commit) = commit.filter(|commit| is_hash(commit)) {
            all.push(Before {
                variable: name,
                standing: *standing,
                commit,
            });
        }
    }
    all
}

/// The repository's default branch, if the CI names it.
pub(crate) fn default_branch(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut named = DEFAULTS.iter().filter_map(|name| variable(name));
    let name = named.find(|name| !name.is_empty());
    name.or_else(|| {
        let event = read_event(&variable("GITHUB_EVENT_PATH")?)?;
        text(&event["repository"]["default_branch"])
    })
}

/// The event, as GitHub writes it down. A file that cannot be read counts as no event.
fn read_event(path: &str) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_hash(text: &str) -> bool {
    text.len() >= 7
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    const HASH: &str = "0123456789012345678901234567890123456789";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn commits(variables: &[(&str, &str)]) -> Vec<String> {
        let all = before(&|name| lookup(variables, name)).into_iter();
        all.map(|it| format!("{} {:?} {}", it.variable, it.standing, it.commit))
            .collect()
    }

    fn lookup(variables: &[(&str, &str)], name: &str) -> Option<String> {
        let found = variables.iter().find(|(it, _)| *it == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn event(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn every_ci_names_the_commit_before_in_its_own_way() {
        for (name, standing, form) in &VARIABLES {
            let file = event(&format!("{{\"before\": \"{HASH}\"}}"));
            let value = match form {
                Commit => HASH.to_owned(),
                Range => format!("{HASH}...{NONE}"),
                Event => file.path().to_str().unwrap().to_owned(),
            };
            let expected = format!("{name} {standing:?} {HASH}");
            assert_eq!(commits(&[(name, &value)]), [expected]);
        }
    }

    #[test]
    fn a_first_push_has_no_commit_before_it() {
        let file = event(&format!("{{\"before\": \"{NONE}\"}}"));
        let path = file.path().to_str().unwrap();
        let gitlab = ("CI_COMMIT_BEFORE_SHA", NONE);
        assert!(commits(&[("GITHUB_EVENT_PATH", path), gitlab]).is_empty());
    }

    #[test]
    fn an_event_that_says_nothing_is_none() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            "{\"before\": 1}",
            "{\"before\": \"--all\"}",
        ] {
            let file = event(text);
            let variables = [("GITHUB_EVENT_PATH", file.path().to_str().unwrap())];
            assert!(commits(&variables).is_empty(), "{text}");
            assert_eq!(default_branch(&|name| lookup(&variables, name)), None);
        }
        assert!(commits(&[("GITHUB_EVENT_PATH", "/nonexistent")]).is_empty());
    }

    #[test]
    fn the_default_branch_is_named_by_a_variable_or_the_event() {
        let file = event("{\"repository\": {\"default_branch\": \"trunk\"}}");
        let github = ("GITHUB_EVENT_PATH", file.path().to_str().unwrap());
        let named = |variables: &[_]| default_branch(&|name| lookup(variables, name));
        assert_eq!(named(&[github]).as_deref(), Some("trunk"));
        let gitlab = ("CI_DEFAULT_BRANCH", "develop");
        assert_eq!(named(&[gitlab]).as_deref(), Some("develop"));
        assert_eq!(named(&[("CI_DEFAULT_BRANCH", "")]), None);
    }
}
