//! The statements of a CI's variables about the pull request that it builds: what it is to be merged into.

use Condition::{Always, Among, Numbered, With};
use Meaning::{Branch, Commit};

/// The target of a pull request, and the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The variable.
    pub(crate) variable: &'static str,
    /// The thing that it names.
    pub(crate) named: Named,
}

/// The thing that a variable names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A branch of the remote, without `refs/heads/`.
    Branch(String),
    /// A commit, perhaps by a short hash.
    Commit(String),
}

/// The way to read a variable.
enum Meaning {
    Branch,
    Commit,
}

/// The condition under which a variable speaks of a pull request. Most CIs set it for nothing else.
enum Condition {
    Always,
    /// Another variable is set.
    With(&'static str),
    /// Another variable is a number; Travis says "false" where there is none.
    Numbered(&'static str),
    /// Another variable has one of these values.
    Among(&'static str, &'static [&'static str]),
}

/// The variables, in order. Of two of one CI the first is the more exact, the second is there when the
/// first names what is not in the clone.
const VARIABLES: [(&str, Meaning, Condition); 16] = [
    // GitHub, Gitea, Forgejo.
    ("GITHUB_BASE_REF", Branch, Always),
    // GitLab.
    ("CI_MERGE_REQUEST_DIFF_BASE_SHA", Commit, Always),
    ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", Branch, Always),
    // Buildkite.
    ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", Branch, Always),
    // Bitbucket.
    ("BITBUCKET_PR_DESTINATION_COMMIT", Commit, Always),
    ("BITBUCKET_PR_DESTINATION_BRANCH", Branch, Always),
    // Azure Pipelines; a full or a short name, by what hosts the repository.
    ("SYSTEM_PULLREQUEST_TARGETBRANCH", Branch, Always),
    // Jenkins.
    ("CHANGE_TARGET", Branch, Always),
    // Travis; otherwise the branch that is built.
    ("TRAVIS_BRANCH", Branch, Numbered("TRAVIS_PULL_REQUEST")),
    // Drone; otherwise the branch that is pushed.
    (
        "DRONE_TARGET_BRANCH",
        Branch,
        Among("DRONE_BUILD_EVENT", &["pull_request"]),
    ),
    // Woodpecker.
    ("CI_COMMIT_TARGET_BRANCH", Branch, Always),
    // AppVeyor; otherwise the branch that is built.
    (
        "APPVEYOR_REPO_BRANCH",
        Branch,
        With("APPVEYOR_PULL_REQUEST_NUMBER"),
    ),
    // Cirrus.
    ("CIRRUS_BASE_SHA", Commit, Always),
    ("CIRRUS_BASE_BRANCH", Branch, Always),
    // Prow; otherwise the commit that is built.
    (
        "PULL_BASE_SHA",
        Commit,
        Among("JOB_TYPE", &["presubmit", "batch"]),
    ),
    // Codefresh.
    ("CF_PULL_REQUEST_TARGET", Branch, Always),
];

/// The targets of the pull request, the most exact first; empty without a pull request.
///
/// An empty variable is an unset one: several CIs set all they know.
pub(crate) fn targets(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Target> {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    let holds = |condition: &Condition| match condition {
        Always => true,
        With(other) => value(other).is_some(),
        Numbered(other) => value(other).is_some_and(|number| number.parse::<u64>().is_ok()),
        Among(other, values) => value(other).is_some_and(|it| values.contains(&it.as_str())),
    };
    let mut targets = Vec::new();
    for (variable, meaning, condition) in &VARIABLES {
        let Some(value) = value(variable).filter(|_| holds(condition)) else {
            continue;
        };
        let named = match meaning {
            Branch => {
                let name = value.strip_prefix("refs/heads/").unwrap_or(&value);
                Named::Branch(name.to_owned())
            }
            Commit => Named::Commit(value),
        };
        targets.push(Target { variable, named });
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let shown = targets(&variable).into_iter().map(|target| {
            let named = match target.named {
                Named::Branch(name) => format!("branch {name}"),
                Named::Commit(hash) => format!("commit {hash}"),
            };
            format!("{}: {named}", target.variable)
        });
        shown.collect()
    }

    #[test]
    fn every_ci_says_it_in_its_own_way() {
        let branch = [
            "GITHUB_BASE_REF",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
            "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
            "BITBUCKET_PR_DESTINATION_BRANCH",
            "SYSTEM_PULLREQUEST_TARGETBRANCH",
            "CHANGE_TARGET",
            "CI_COMMIT_TARGET_BRANCH",
            "CIRRUS_BASE_BRANCH",
            "CF_PULL_REQUEST_TARGET",
        ];
        for name in branch {
            assert_eq!(
                shown(&[(name, "refs/heads/a/b")]),
                [format!("{name}: branch a/b")]
            );
            assert_eq!(shown(&[(name, "main")]), [format!("{name}: branch main")]);
        }
        let commit = [
            "CI_MERGE_REQUEST_DIFF_BASE_SHA",
            "BITBUCKET_PR_DESTINATION_COMMIT",
            "CIRRUS_BASE_SHA",
        ];
        for name in commit {
            assert_eq!(shown(&[(name, "abc")]), [format!("{name}: commit abc")]);
        }
    }

    #[test]
    fn a_variable_that_is_always_set_counts_only_in_a_pull_request() {
        let cases = [
            ("TRAVIS_BRANCH", "TRAVIS_PULL_REQUEST", "12", "false"),
            (
                "DRONE_TARGET_BRANCH",
                "DRONE_BUILD_EVENT",
                "pull_request",
                "push",
            ),
            (
                "APPVEYOR_REPO_BRANCH",
                "APPVEYOR_PULL_REQUEST_NUMBER",
                "12",
                "",
            ),
            ("PULL_BASE_SHA", "JOB_TYPE", "presubmit", "postsubmit"),
        ];
        for (name, condition, yes, no) in cases {
            assert_eq!(
                shown(&[(name, "main"), (condition, yes)]).len(),
                1,
                "{name}"
            );
            assert!(
                shown(&[(name, "main"), (condition, no)]).is_empty(),
                "{name}"
            );
            assert!(shown(&[(name, "main")]).is_empty(), "{name}");
        }
    }

    #[test]
    fn an_empty_variable_is_an_unset_one() {
        assert!(shown(&[("GITHUB_BASE_REF", ""), ("CHANGE_TARGET", "")]).is_empty());
    }

    #[test]
    fn the_more_exact_variable_comes_first() {
        let gitlab = [
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "abc"),
        ];
        let expected = [
            "CI_MERGE_REQUEST_DIFF_BASE_SHA: commit abc",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME: branch main",
        ];
        assert_eq!(shown(&gitlab), expected);
    }
}
