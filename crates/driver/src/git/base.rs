//! The commit with which the work tree is compared. It is searched only in what the clone holds: nothing is fetched,
//! but the error contains the command that would fetch it.

use crate::git::ci_push::Standing;
use crate::git::clutter::Clutter;
use crate::git::pull_request::{self, Named};
use crate::git::repository::{GitError, Repository};
use crate::git::revisions::Revisions;
use crate::git::unfetched::{apart, missing, missing_branch};

/// The commit that the work tree is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its full hash.
    pub commit: String,
    /// Why it is this one.
    pub source: BaseSource,
    /// The revision that was looked for, as the user or the CI gave it, or a branch like `origin/main`.
    pub wanted: String,
}

/// Why a commit is the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaseSource {
    /// The user said so.
    Given,
    /// It is where the pull request that the CI builds left its target.
    PullRequest {
        /// The variable that names the target.
        variable: &'static str,
    },
    /// It is where HEAD left the default branch, or the branch that it is stacked on.
    Left {
        /// The branch that HEAD is on; `None` if it is detached.
        branch: Option<String>,
    },
    /// HEAD is on the default branch: it is the last of its commits that the remote has too.
    Unpushed {
        /// The default branch.
        branch: String,
    },
    /// HEAD is on the default branch, was run, and tracked files differ from it: it is HEAD itself.
    Head,
    /// HEAD is on the default branch, and the CI names a commit before it.
    Before {
        /// The variable that names it.
        variable: &'static str,
        /// The CI's statement about it.
        standing: Standing,
    },
    /// HEAD is on the default branch: it is the last commit before it that is known to have been run.
    Tested,
    /// HEAD is on the default branch, and no more is known: it is the commit before it.
    Parent,
    /// There is no commit before HEAD: only uncommitted files can have changed.
    First,
}

/// Why there is no base.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// Git has no answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no such commit.
    #[error("there is no commit `{wanted}` in this repository")]
    Unknown {
        /// The revision that was looked for.
        wanted: String,
    },
    /// The clone has no such commit; the remote may have it.
    #[error("this clone does not hold `{wanted}`")]
    Absent {
        /// The revision that was looked for.
        wanted: String,
        /// The command that fetches it, word by word.
        fetch: Vec<String>,
    },
    /// The history of the clone ends before the base.
    #[error("this clone is shallow and does not reach back to the base (`{wanted}`)")]
    Shallow {
        /// The revision that was looked for.
        wanted: String,
        /// The command that fetches what is missing, word by word.
        fetch: Vec<String>,
    },
    /// The work tree and the target of its pull request have no common history.
    #[error("HEAD and `{wanted}` have no common history")]
    Unrelated {
        /// The target.
        wanted: String,
    },
    /// There are several branches, and nobody says which one is the default.
    #[error(
        "no default branch is known among {}: name the base with `--base`, or as `base` below \
         `[intersect]` in unflake.toml",
        some_of(branches)
    )]
    NoDefault {
        /// The branches that the clone holds.
        branches: Vec<String>,
    },
    /// The only commit has none before it.
    #[error("HEAD is the first commit: there is none before it to compare with")]
    NoParent,
    /// There is no commit at all.
    #[error("this repository has no commits yet")]
    NoCommits,
}

/// The known facts about the base before git is asked.
pub struct Hints<'a> {
    /// The base, if the user names it.
    pub given: Option<&'a str>,
    /// Looks up a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether a commit is known to have been run on a clean tree.
    pub tested: &'a dyn Fn(&str) -> bool,
    /// The files in the work tree that are no change.
    pub clutter: &'a Clutter,
}

/// The base of the work tree.
///
/// It is what is given; in a CI, where the pull request left its target; on a branch, where it left the
/// branch that it tracks or the default branch, or the only other one if none is known. On the default branch, or
/// the only one, it is the last commit that the remote has, if there are others; HEAD, if it was run and tracked
/// files differ from it; the commit before it that the CI or the history knows; the commit before it. Untracked files
/// change nothing of all that.
pub fn find_base(repository: &Repository, hints: &Hints<'_>) -> Result<Base, BaseError> {
    let search = Search {
        revisions: Revisions { repository },
        hints,
    };
    if let Some(wanted) = hints.given {
        return search.given(wanted);
    }
    let revisions = &search.revisions;
    let head = revisions.resolve("HEAD")?.ok_or(BaseError::NoCommits)?;
    if let Some(base) = search.pull_request(&head)? {
        return Ok(base);
    }
    let branch = revisions.current_branch()?;
    if let Some(base) = search.left(&head, branch.as_deref())? {
        return Ok(base);
    }
    search.on_default(&head, branch.as_deref())
}

/// The search for the base: the revisions of a repository, and the hints about it.
pub(super) struct Search<'a> {
    pub(super) revisions: Revisions<'a>,
    pub(super) hints: &'a Hints<'a>,
}

impl Search<'_> {
    fn given(&self, wanted: &str) -> Result<Base, BaseError> {
        let mut commit = self.revisions.resolve(wanted)?;
        if commit.is_none() {
            // In a CI's clone `main` is often known as `origin/main` only.
            commit = self.revisions.branch(wanted)?.map(|branch| branch.tip);
        }
        match commit {
            Some(commit) => Ok(Base {
                commit,
                source: BaseSource::Given,
                wanted: wanted.to_owned(),
            }),
            None => Err(missing(&self.revisions, wanted)?),
        }
    }

    /// Several variables may name the target. The last says what to fetch if none is in the clone: it
    /// names a branch, and some servers give commits by the names of branches only.
    fn pull_request(&self, head: &str) -> Result<Option<Base>, BaseError> {
        let mut trouble = None;
        for target in pull_request::targets(self.hints.variable) {
            let found = match &target.named {
                Named::Branch(name) => self.leaves_branch(head, name),
                Named::Commit(hash) => self.leaves_commit(head, hash),
            };
            match found {
                Ok((wanted, commit)) => {
                    let variable = target.variable;
                    return Ok(Some(Base {
                        commit,
                        source: BaseSource::PullRequest { variable },
                        wanted,
                    }));
                }
                Err(error @ BaseError::Git(_)) => return Err(error),
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    fn leaves_branch(&self, head: &str, name: &str) -> Result<(String, String), BaseError> {
        let Some(branch) = self.revisions.branch(name)? else {
            return Err(match self.revisions.remote()? {
                Some(remote) => missing_branch(&self.revisions, &remote, name)?,
                None => BaseError::Unknown {
                    wanted: name.to_owned(),
                },
            });
        };
        match self.revisions.merge_base(head, &branch.tip)? {
            Some(commit) => Ok((branch.shown, commit)),
            None => Err(apart(&self.revisions, branch.shown)?),
        }
    }

    fn leaves_commit(&self, head: &str, hash: &str) -> Result<(String, String), BaseError> {
        let Some(tip) = self.revisions.resolve(hash)? else {
            return Err(missing(&self.revisions, hash)?);
        };
        match self.revisions.merge_base(head, &tip)? {
            Some(commit) => Ok((hash.to_owned(), commit)),
            None => Err(apart(&self.revisions, hash.to_owned())?),
        }
    }
}

/// The first three of some names, in quotes.
fn some_of(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(3)
        .map(|name| format!("`{name}`"))
        .collect();
    let shown = shown.join(", ");
    match names.len() {
        0..=3 => shown,
        all => format!("{shown} and {} more", all - 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repository::scratch::Scratch;

    const NOWHERE: &dyn Fn(&str) -> Option<String> = &|_| None;

    /// A server with `main` of three commits and `feature`, two commits off the second of them, and the
    /// merge of both that a pull request is tested as.
    struct Server {
        scratch: Scratch,
        main: Vec<String>,
        merge: String,
    }

    impl Server {
        fn new() -> Self {
            let scratch = Scratch::new();
            let step = |name: &str| {
                scratch.write(name, "1\n");
                scratch.git(&["add", "--all"]);
                scratch.git(&["commit", "--quiet", "--message", name]);
                scratch.git(&["rev-parse", "HEAD"])
            };
            let mut main = vec![step("one"), step("two")];
            scratch.git(&["tag", "--annotate", "--message=first", "v1", &main[0]]);
            scratch.git(&["checkout", "--quiet", "-b", "feature"]);
            step("three");
            step("four");
            scratch.git(&["checkout", "--quiet", "main"]);
            main.push(step("five"));
            scratch.git(&["checkout", "--quiet", "--detach", "main"]);
            scratch.git(&["merge", "--quiet", "--no-edit", "feature"]);
            scratch.git(&["update-ref", "refs/pull/1/merge", "HEAD"]);
            let merge = scratch.git(&["rev-parse", "HEAD"]);
            scratch.git(&["checkout", "--quiet", "main"]);
            Self {
                scratch,
                main,
                merge,
            }
        }

        fn clone(&self, options: &[&str]) -> Scratch {
            Scratch::clone_of(&self.scratch, options)
        }

        /// A CI's checkout of a pull request: its merge, alone and on no branch.
        fn checkout_of_merge(&self) -> Scratch {
            let scratch = Scratch::new();
            let url = format!("file://{}", self.scratch.root);
            let merge = "+refs/pull/1/merge:refs/remotes/pull/1/merge";
            scratch.git(&["remote", "add", "origin", &url]);
            scratch.git(&["fetch", "--quiet", "--depth=1", "origin", merge]);
            scratch.git(&["checkout", "--quiet", "refs/remotes/pull/1/merge"]);
            scratch
        }
    }

    fn find_with(
        scratch: &Scratch,
        given: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Base, BaseError> {
        let hints = Hints {
            given,
            variable,
            tested: &|_| false,
            clutter: &Clutter::default(),
        };
        find_base(&scratch.repository(), &hints)
    }

    fn find(scratch: &Scratch, given: Option<&str>) -> Result<Base, BaseError> {
        find_with(scratch, given, NOWHERE)
    }

    fn find_in_ci(scratch: &Scratch, variables: &[(&str, &str)]) -> Result<Base, BaseError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        find_with(scratch, None, &variable)
    }

    const TO_MAIN: [(&str, &str); 1] = [("GITHUB_BASE_REF", "main")];

    fn pull_request(commit: &str, wanted: &str) -> Base {
        Base {
            commit: commit.to_owned(),
            source: BaseSource::PullRequest {
                variable: "GITHUB_BASE_REF",
            },
            wanted: wanted.to_owned(),
        }
    }

    /// Runs the command that an error of a shallow clone recommends.
    fn deepen(scratch: &Scratch, error: BaseError, expected: &str) {
        let BaseError::Shallow { fetch, .. } = error else {
            panic!("{error}");
        };
        run(scratch, &fetch, expected);
    }

    /// Runs the command that an error of a whole clone recommends.
    fn bring(scratch: &Scratch, error: BaseError, expected: &str) {
        let BaseError::Absent { fetch, .. } = error else {
            panic!("{error}");
        };
        run(scratch, &fetch, expected);
    }

    fn run(scratch: &Scratch, fetch: &[String], expected: &str) {
        assert_eq!(fetch.join(" "), expected);
        let words: Vec<&str> = fetch.iter().map(String::as_str).collect();
        for words in words.split(|word| *word == "&&") {
            assert_eq!(words[0], "git");
            scratch.git(&words[1..]);
        }
    }

    const FETCH_MAIN: &str =
        "git fetch --unshallow origin +refs/heads/main:refs/remotes/origin/main";

    #[test]
    fn a_given_revision_is_taken_whatever_its_form() {
        let server = Server::new();
        let scratch = &server.scratch;
        let short = &server.main[0][..8];
        for revision in ["v1", "main~2", short, ":/^one", "refs/tags/v1", "@~2"] {
            let base = find(scratch, Some(revision)).unwrap();
            assert_eq!(base.source, BaseSource::Given);
            assert_eq!(base.wanted, revision);
            assert_eq!(base.commit, server.main[0], "{revision}");
        }
    }

    #[test]
    fn a_given_revision_goes_before_a_pull_request() {
        let server = Server::new();
        let variable = |_: &str| Some("main".to_owned());
        let base = find_with(&server.scratch, Some("v1"), &variable).unwrap();
        assert_eq!(base.source, BaseSource::Given);
    }

    #[test]
    fn what_is_no_single_commit_is_unknown_and_never_an_option() {
        let server = Server::new();
        let odd = [
            "nothing",
            "",
            " ",
            "-",
            "--exec",
            "--all",
            "--git-dir=/",
            "^main",
            "main..feature",
            "main^{tree}",
            "main:one",
            "@{upstream}",
            "HEAD@{99}",
            "../x",
            "HEAD:../x",
            "a b",
            "\n",
        ];
        for revision in odd {
            let error = find(&server.scratch, Some(revision)).unwrap_err();
            let BaseError::Unknown { wanted } = error else {
                panic!("{revision:?}: {error:?}");
            };
            assert_eq!(wanted, revision);
        }
    }

    #[test]
    fn a_given_branch_may_be_known_by_its_remote_only() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        assert!(
            !scratch
                .try_git(&["rev-parse", "--verify", "main"])
                .status
                .success()
        );
        let base = find(&scratch, Some("main")).unwrap();
        assert_eq!(base.commit, server.main[2]);
        assert_eq!(base.wanted, "main");
    }

    #[test]
    fn a_pull_request_begins_where_it_left_its_target() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "origin/main"));
        let azure = [("SYSTEM_PULLREQUEST_TARGETBRANCH", "refs/heads/main")];
        assert_eq!(find_in_ci(&scratch, &azure).unwrap().commit, server.main[1]);
        let prow = [
            ("JOB_TYPE", "presubmit"),
            ("PULL_BASE_SHA", &server.main[2]),
        ];
        assert_eq!(find_in_ci(&scratch, &prow).unwrap().commit, server.main[1]);
    }

    #[test]
    fn a_target_may_be_of_another_remote_or_our_own() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        scratch.git(&["remote", "rename", "origin", "upstream"]);
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "upstream/main"));
        server.scratch.git(&["checkout", "--quiet", "feature"]);
        let base = find_in_ci(&server.scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "main"));
    }

    #[test]
    fn a_second_variable_helps_where_the_first_names_what_is_not_there() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        let absent = "0123456789012345678901234567890123456789";
        let gitlab = [
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", absent),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ];
        let base = find_in_ci(&scratch, &gitlab).unwrap();
        let variable = "CI_MERGE_REQUEST_TARGET_BRANCH_NAME";
        assert_eq!(base.source, BaseSource::PullRequest { variable });
        assert_eq!(base.commit, server.main[1]);
        let error = find_in_ci(&scratch, &gitlab[..1]).unwrap_err();
        let BaseError::Absent { fetch, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(fetch.join(" "), format!("git fetch origin {absent}"));
    }

    #[test]
    fn a_shallow_clone_of_one_branch_is_told_how_to_get_the_target() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1", "--branch=feature"]);
        deepen(
            &scratch,
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            FETCH_MAIN,
        );
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "origin/main"));
    }

    #[test]
    fn a_shallow_clone_of_all_branches_is_told_how_to_get_the_common_history() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1", "--no-single-branch", "--branch=feature"]);
        deepen(
            &scratch,
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            FETCH_MAIN,
        );
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "origin/main"));
    }

    #[test]
    fn a_shallow_checkout_of_a_merge_is_told_how_to_get_the_target() {
        let server = Server::new();
        let scratch = server.checkout_of_merge();
        deepen(
            &scratch,
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            FETCH_MAIN,
        );
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[2], "origin/main"));
    }

    #[test]
    fn a_shallow_clone_is_told_how_to_get_a_target_by_its_hash() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1", "--branch=feature"]);
        let prow = [
            ("JOB_TYPE", "presubmit"),
            ("PULL_BASE_SHA", &server.main[2]),
        ];
        let expected = format!("git fetch --unshallow origin {}", server.main[2]);
        deepen(
            &scratch,
            find_in_ci(&scratch, &prow).unwrap_err(),
            &expected,
        );
        assert_eq!(find_in_ci(&scratch, &prow).unwrap().commit, server.main[1]);
    }

    #[test]
    fn a_whole_clone_of_one_branch_is_told_how_to_get_the_target() {
        let server = Server::new();
        let scratch = server.clone(&["--single-branch", "--branch=feature"]);
        let expected = "git fetch origin +refs/heads/main:refs/remotes/origin/main";
        bring(
            &scratch,
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            expected,
        );
        let base = find_in_ci(&scratch, &TO_MAIN).unwrap();
        assert_eq!(base, pull_request(&server.main[1], "origin/main"));
        let expected = format!("git fetch origin {}", server.merge);
        bring(
            &scratch,
            find(&scratch, Some(&server.merge)).unwrap_err(),
            &expected,
        );
        assert_eq!(
            find(&scratch, Some(&server.merge)).unwrap().commit,
            server.merge
        );
    }

    #[test]
    fn a_shallow_clone_is_told_how_to_get_a_given_revision() {
        let server = Server::new();
        let all = "git fetch --unshallow --tags origin +refs/heads/*:refs/remotes/origin/*";
        let by_hash = format!("git fetch --unshallow origin {}", server.main[0]);
        let cases = [
            ("HEAD~3", all),
            ("v1", all),
            ("main~2", all),
            ("origin/main~2", all),
            (&server.main[0], by_hash.as_str()),
        ];
        for (revision, expected) in cases {
            let scratch = server.clone(&["--depth=1", "--branch=feature"]);
            deepen(
                &scratch,
                find(&scratch, Some(revision)).unwrap_err(),
                expected,
            );
            let base = find(&scratch, Some(revision)).unwrap();
            assert_eq!(base.commit, server.main[0], "{revision}");
        }
        let scratch = server.clone(&["--depth=1", "--branch=feature"]);
        deepen(
            &scratch,
            find(&scratch, Some("origin/main")).unwrap_err(),
            FETCH_MAIN,
        );
        assert_eq!(
            find(&scratch, Some("origin/main")).unwrap().commit,
            server.main[2]
        );
    }

    #[test]
    fn a_target_without_common_history_is_no_base() {
        let scratch = Scratch::new();
        scratch.commit();
        scratch.git(&["checkout", "--quiet", "--orphan", "pages"]);
        scratch.write("a", "1\n");
        scratch.commit();
        let error = find_in_ci(&scratch, &TO_MAIN).unwrap_err();
        assert!(matches!(error, BaseError::Unrelated { wanted } if wanted == "main"));
    }

    #[test]
    fn a_target_that_nobody_has_is_unknown() {
        let scratch = Scratch::new();
        scratch.commit();
        let error = find_in_ci(&scratch, &[("GITHUB_BASE_REF", "--exec=x")]).unwrap_err();
        assert!(matches!(error, BaseError::Unknown { wanted } if wanted == "--exec=x"));
    }

    fn base(commit: &str, source: BaseSource, wanted: &str) -> Base {
        Base {
            commit: commit.to_owned(),
            source,
            wanted: wanted.to_owned(),
        }
    }

    fn left(commit: &str, branch: Option<&str>, wanted: &str) -> Base {
        let branch = branch.map(str::to_owned);
        base(commit, BaseSource::Left { branch }, wanted)
    }

    #[test]
    fn a_branch_begins_where_it_left_the_default_branch_of_the_remote() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        // It tracks `origin/feature`, a copy of it.
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.git(&["branch", "--unset-upstream"]);
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.git(&["remote", "set-head", "origin", "--delete"]);
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.git(&["remote", "rename", "origin", "company"]);
        let expected = left(&server.main[1], Some("feature"), "company/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        server.scratch.git(&["checkout", "--quiet", "feature"]);
        let expected = left(&server.main[1], Some("feature"), "main");
        assert_eq!(find(&server.scratch, None).unwrap(), expected);
    }

    #[test]
    fn a_default_branch_may_have_any_name() {
        let server = Server::new();
        let rename = ["branch", "--quiet", "--move", "main", "trunk"];
        server.scratch.git(&rename);
        let scratch = server.clone(&["--branch=feature"]);
        let expected = left(&server.main[1], Some("feature"), "origin/trunk");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        // Without the remote's HEAD the CI may know it.
        scratch.git(&["remote", "set-head", "origin", "--delete"]);
        let gitlab = [("CI_DEFAULT_BRANCH", "trunk")];
        assert_eq!(find_in_ci(&scratch, &gitlab).unwrap(), expected);
        let expected = "git fetch origin +refs/heads/*:refs/remotes/origin/* \
                        && git remote set-head origin --auto";
        bring(&scratch, find(&scratch, None).unwrap_err(), expected);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
    }

    #[test]
    fn uncommitted_changes_do_not_move_the_base_of_a_branch() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        scratch.write("untracked", "1\n");
        scratch.write("one", "2\n");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        // Nor do they on a branch without commits of its own.
        scratch.git(&["checkout", "--quiet", "-b", "new", "origin/main"]);
        let expected = left(&server.main[2], Some("new"), "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn a_stacked_branch_begins_where_it_left_the_one_that_it_tracks() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        let feature = scratch.git(&["rev-parse", "origin/feature"]);
        for (upstream, shown) in [("origin/feature", "origin/feature"), ("other", "other")] {
            scratch.git(&["branch", "--force", "other", "origin/feature"]);
            let track = ["checkout", "--quiet", "-B", "top", "--track", upstream];
            scratch.git(&track);
            // Without commits of its own it may be a copy by another name.
            let expected = left(&server.main[1], Some("top"), "origin/main");
            assert_eq!(find(&scratch, None).unwrap(), expected);
            scratch.write("top", "1\n");
            scratch.commit();
            let expected = left(&feature, Some("top"), shown);
            assert_eq!(find(&scratch, None).unwrap(), expected);
        }
    }

    #[test]
    fn an_upstream_of_the_same_name_is_a_copy_whoevers_it_is() {
        let server = Server::new();
        server.scratch.git(&["branch", "ann/top", "feature"]);
        let scratch = server.clone(&[]);
        for (branch, upstream) in [("top", "origin/ann/top"), ("bob/feature", "origin/feature")] {
            let track = ["checkout", "--quiet", "-b", branch, "--track", upstream];
            scratch.git(&track);
            scratch.write("more", "1\n");
            scratch.commit();
            let expected = left(&server.main[1], Some(branch), "origin/main");
            assert_eq!(find(&scratch, None).unwrap(), expected);
        }
    }

    #[test]
    fn a_merge_of_the_default_branch_into_a_branch_moves_its_base() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        scratch.git(&["merge", "--quiet", "--no-edit", "origin/main"]);
        let expected = left(&server.main[2], Some("feature"), "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn a_detached_head_begins_where_it_left_the_default_branch() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        scratch.git(&["checkout", "--quiet", "--detach", "origin/feature"]);
        let expected = left(&server.main[1], None, "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        // One that is on it has the base of any commit there.
        scratch.git(&["checkout", "--quiet", "--detach", &server.main[1]]);
        let parent = base(&server.main[0], BaseSource::Parent, "HEAD^");
        assert_eq!(find(&scratch, None).unwrap(), parent);
    }

    #[test]
    fn a_branch_without_common_history_has_no_base() {
        let scratch = Scratch::new();
        scratch.commit();
        scratch.git(&["checkout", "--quiet", "--orphan", "pages"]);
        scratch.write("a", "1\n");
        scratch.commit();
        scratch.write("a", "2\n");
        scratch.commit();
        let error = find(&scratch, None).unwrap_err();
        assert!(matches!(error, BaseError::Unrelated { wanted } if wanted == "main"));
    }

    /// A history of `trunk` with a commit, and `feature` with two more; nobody names a default branch.
    fn trunk() -> (Scratch, String) {
        let scratch = Scratch::new();
        scratch.commit();
        scratch.git(&["branch", "--quiet", "--move", "main", "trunk"]);
        let first = scratch.git(&["rev-parse", "HEAD"]);
        scratch.git(&["checkout", "--quiet", "-b", "feature"]);
        for text in ["1\n", "2\n"] {
            scratch.write("own", text);
            scratch.commit();
        }
        (scratch, first)
    }

    #[test]
    fn where_nobody_names_the_default_branch_the_only_other_one_is_it() {
        let (scratch, first) = trunk();
        let expected = left(&first, Some("feature"), "trunk");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        // A fetch by address leaves copies of both, and no remote.
        for name in ["trunk", "feature"] {
            scratch.git(&["update-ref", &format!("refs/remotes/origin/{name}"), name]);
        }
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.git(&["branch", "--quiet", "-D", "trunk"]);
        let expected = left(&first, Some("feature"), "origin/trunk");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn the_commit_before_the_last_is_no_base_where_the_default_branch_is_not_known() {
        let (scratch, first) = trunk();
        let before = scratch.git(&["rev-parse", "HEAD^"]);
        let gitlab = [("CI_COMMIT_BEFORE_SHA", before.as_str())];
        let no_default = |expected: &[&str]| {
            let error = find_in_ci(&scratch, &gitlab).unwrap_err();
            let BaseError::NoDefault { branches } = &error else {
                panic!("{error}");
            };
            assert_eq!(branches, expected);
            assert!(error.to_string().contains("`--base`"), "{error}");
        };
        // One that is ahead of HEAD is a branch that began here, or the default one.
        scratch.git(&["checkout", "--quiet", "trunk"]);
        no_default(&["trunk", "feature"]);
        scratch.git(&["checkout", "--quiet", "feature"]);
        scratch.git(&["branch", "spike", &first]);
        no_default(&["feature", "spike", "trunk"]);
        scratch.git(&["checkout", "--quiet", "--detach"]);
        no_default(&["feature", "spike", "trunk"]);
        assert_eq!(find(&scratch, Some("trunk")).unwrap().commit, first);
        // The CI may name it.
        let gitlab = [("CI_DEFAULT_BRANCH", "trunk"), gitlab[0]];
        scratch.git(&["update-ref", "refs/remotes/origin/trunk", "trunk"]);
        scratch.git(&["branch", "--quiet", "-D", "trunk"]);
        let found = find_in_ci(&scratch, &gitlab).unwrap();
        assert_eq!(found, left(&first, None, "origin/trunk"));
    }

    #[test]
    fn the_only_branch_there_is_may_have_any_name() {
        let (scratch, _) = trunk();
        scratch.git(&["branch", "--quiet", "-D", "trunk"]);
        let before = scratch.git(&["rev-parse", "HEAD^"]);
        let parent = base(&before, BaseSource::Parent, "HEAD^");
        assert_eq!(find(&scratch, None).unwrap(), parent);
        scratch.git(&["update-ref", "refs/remotes/origin/feature", "HEAD"]);
        assert_eq!(find(&scratch, None).unwrap(), parent);
        scratch.git(&["checkout", "--quiet", "--detach"]);
        assert_eq!(find(&scratch, None).unwrap(), parent);
    }

    #[test]
    fn the_only_branch_there_is_is_not_the_default_one_if_the_ci_names_another() {
        let (scratch, _) = trunk();
        scratch.git(&["branch", "--quiet", "-D", "trunk"]);
        let gitlab = [("CI_DEFAULT_BRANCH", "trunk")];
        let error = find_in_ci(&scratch, &gitlab).unwrap_err();
        assert!(matches!(error, BaseError::Unknown { wanted } if wanted == "trunk"));
    }

    #[test]
    fn a_branch_of_a_remote_counts_even_if_no_configuration_knows_the_remote() {
        let server = Server::new();
        let scratch = server.clone(&["--branch=feature"]);
        scratch.git(&["remote", "set-head", "origin", "--delete"]);
        let copies = scratch.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        scratch.git(&["remote", "remove", "origin"]);
        for line in copies
            .lines()
            .filter(|line| line.starts_with("refs/remotes"))
        {
            let (name, tip) = line.split_once(' ').unwrap();
            scratch.git(&["update-ref", name, tip]);
        }
        let own = scratch.git(&["rev-parse", "HEAD^"]);
        let gitlab = [("CI_COMMIT_BEFORE_SHA", own.as_str())];
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        assert_eq!(find_in_ci(&scratch, &gitlab).unwrap(), expected);
        assert_eq!(
            find_in_ci(&scratch, &TO_MAIN).unwrap().wanted,
            "origin/main"
        );
        scratch.git(&["checkout", "--quiet", "--detach"]);
        scratch.git(&["branch", "--quiet", "-D", "feature"]);
        let expected = left(&server.main[1], None, "origin/main");
        assert_eq!(find_in_ci(&scratch, &gitlab).unwrap(), expected);
        // Commits of the default branch that this remote does not have are the change.
        scratch.git(&["checkout", "--quiet", "-b", "main", "origin/main"]);
        for text in ["1\n", "2\n"] {
            scratch.write("own", text);
            scratch.commit();
        }
        let branch = "main".to_owned();
        let unpushed = BaseSource::Unpushed { branch };
        let expected = base(&server.main[2], unpushed, "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn on_the_default_branch_commits_that_are_not_pushed_are_the_change() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        for text in ["1\n", "2\n"] {
            scratch.write("own", text);
            scratch.commit();
        }
        let branch = "main".to_owned();
        let unpushed = BaseSource::Unpushed { branch };
        let expected = base(&server.main[2], unpushed, "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.write("own", "3\n");
        scratch.write("untracked", "1\n");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        scratch.git(&["branch", "--unset-upstream"]);
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn on_the_default_branch_a_tracked_change_makes_head_the_base_if_head_was_run() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        let parent = base(&server.main[1], BaseSource::Parent, "HEAD^");
        let was_run = |commit: &str| commit == server.main[2];
        let find = |tested: &dyn Fn(&str) -> bool| {
            let hints = Hints {
                given: None,
                variable: NOWHERE,
                tested,
                clutter: &Clutter::default(),
            };
            find_base(&scratch.repository(), &hints).unwrap()
        };
        assert_eq!(find(&was_run), parent);
        scratch.write("report.xml", "<testsuites/>\n");
        scratch.write(".venv/pyvenv.cfg", "");
        assert_eq!(find(&was_run), parent);
        scratch.write("one", "2\n");
        let head = base(&server.main[2], BaseSource::Head, "HEAD");
        assert_eq!(find(&was_run), head);
        assert_eq!(find(&|_| false), parent, "the commit may be at fault");
        scratch.git(&["checkout", "--quiet", "one"]);
        scratch.git(&["add", "report.xml"]);
        assert_eq!(find(&was_run), head);
    }

    #[test]
    fn what_the_run_itself_wrote_does_not_make_head_the_base() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        scratch.write("one", "2\n");
        let report = [scratch.root.join("one")];
        let began = Some(std::time::SystemTime::UNIX_EPOCH);
        for clutter in [
            Clutter::new(&scratch.root, &report, None),
            Clutter::new(&scratch.root, &[], began),
        ] {
            let hints = Hints {
                given: None,
                variable: NOWHERE,
                tested: &|commit| commit == server.main[2],
                clutter: &clutter,
            };
            let found = find_base(&scratch.repository(), &hints).unwrap();
            assert_eq!(found.source, BaseSource::Parent);
        }
    }

    #[test]
    fn on_the_default_branch_the_ci_may_know_the_commit_before_the_push() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        let event = Scratch::folder();
        event.write("event", format!("{{\"before\": \"{}\"}}", server.main[0]));
        let path = event.root.join("event");
        let variables = [
            ("GITHUB_EVENT_PATH", path.as_str()),
            ("CI_COMMIT_BEFORE_SHA", &server.main[0]),
        ];
        for variable in variables {
            let source = BaseSource::Before {
                variable: variable.0,
                standing: Standing::Pushed,
            };
            let expected = base(&server.main[0], source, &server.main[0]);
            assert_eq!(find_in_ci(&scratch, &[variable]).unwrap(), expected);
        }
        // On another branch it says nothing: the branch may have been pushed several times.
        scratch.git(&["checkout", "--quiet", "feature"]);
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        assert_eq!(find_in_ci(&scratch, &variables).unwrap(), expected);
    }

    #[test]
    fn a_commit_that_is_not_before_head_is_none_that_the_ci_knows() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        let feature = scratch.git(&["rev-parse", "origin/feature"]);
        let absent = "0123456789012345678901234567890123456789";
        for value in [absent, &feature, &server.main[2]] {
            let gitlab = [("CI_COMMIT_BEFORE_SHA", value)];
            let found = find_in_ci(&scratch, &gitlab).unwrap();
            assert_eq!(found.source, BaseSource::Parent, "{value}");
        }
        let jenkins = [
            ("GIT_PREVIOUS_SUCCESSFUL_COMMIT", absent),
            ("GIT_PREVIOUS_COMMIT", &server.main[0]),
        ];
        assert_eq!(
            find_in_ci(&scratch, &jenkins).unwrap().commit,
            server.main[0]
        );
    }

    #[test]
    fn on_the_default_branch_the_history_may_know_a_commit_that_was_run() {
        let server = Server::new();
        let tested = |scratch: &Scratch, known: &dyn Fn(&str) -> bool| {
            let hints = Hints {
                given: None,
                variable: NOWHERE,
                tested: known,
                clutter: &Clutter::default(),
            };
            find_base(&scratch.repository(), &hints).unwrap()
        };
        let first = &server.main[0];
        let scratch = server.clone(&[]);
        let expected = base(first, BaseSource::Tested, first);
        assert_eq!(tested(&scratch, &|commit| commit == first), expected);
        // HEAD itself is not before HEAD, and the nearest goes first.
        assert_eq!(tested(&scratch, &|_| true).commit, server.main[1]);
        // A commit that came by a merge was never on the branch.
        scratch.git(&["checkout", "--quiet", "--detach", "origin/main"]);
        scratch.git(&["merge", "--quiet", "--no-edit", "origin/feature"]);
        scratch.git(&["push", "--quiet", "origin", "HEAD:refs/heads/next"]);
        scratch.git(&["branch", "--force", "main", "HEAD"]);
        scratch.git(&["checkout", "--quiet", "main"]);
        scratch.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        let feature = scratch.git(&["rev-parse", "origin/feature"]);
        let found = tested(&scratch, &|commit| commit == feature);
        assert_eq!(found, base(&server.main[2], BaseSource::Parent, "HEAD^"));
    }

    #[test]
    fn a_tag_may_have_the_name_of_a_branch() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        for name in ["main", "feature"] {
            scratch.git(&["tag", name, &server.main[0]]);
        }
        let parent = base(&server.main[1], BaseSource::Parent, "HEAD^");
        assert_eq!(find(&scratch, None).unwrap(), parent);
        let track = ["checkout", "--quiet", "-b", "feature", "origin/feature"];
        scratch.git(&track);
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn an_upstream_that_is_gone_is_none() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        scratch.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
        assert_eq!(find(&scratch, None).unwrap().source, BaseSource::Parent);
        scratch.git(&["checkout", "--quiet", "--detach"]);
        assert_eq!(find(&scratch, None).unwrap().source, BaseSource::Parent);
    }

    #[test]
    fn a_submodule_has_a_base_of_its_own() {
        let server = Server::new();
        let scratch = Scratch::new();
        scratch.commit();
        let url = format!("file://{}", server.scratch.root);
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
        ];
        scratch.git(&[&add[..], &[url.as_str(), "library"]].concat());
        let around = scratch.commit();
        scratch.git(&["-C", "library", "checkout", "--quiet", "--detach"]);
        let library = Repository::find(&scratch.root.join("library"));
        let hints = Hints {
            given: None,
            variable: NOWHERE,
            tested: &|_| false,
            clutter: &Clutter::default(),
        };
        let found = find_base(&library.unwrap().unwrap(), &hints).unwrap();
        assert_eq!(found, base(&server.main[1], BaseSource::Parent, "HEAD^"));
        // Around it, files that it does not track move nothing, and those that it tracks do.
        scratch.write("library/untracked", "1\n");
        assert_eq!(find(&scratch, None).unwrap().source, BaseSource::Parent);
        scratch.write("library/one", "2\n");
        let hints = Hints {
            tested: &|commit| commit == around,
            ..hints
        };
        assert_eq!(
            find_base(&scratch.repository(), &hints).unwrap(),
            base(&around, BaseSource::Head, "HEAD")
        );
    }

    #[test]
    fn a_clone_of_a_single_branch_is_told_how_to_get_the_default_one() {
        let server = Server::new();
        let all = "origin +refs/heads/*:refs/remotes/origin/* && git remote set-head origin --auto";
        let scratch = server.clone(&["--single-branch", "--branch=feature"]);
        let command = format!("git fetch {all}");
        bring(&scratch, find(&scratch, None).unwrap_err(), &command);
        let expected = left(&server.main[1], Some("feature"), "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
        let scratch = server.clone(&["--depth=1", "--branch=feature"]);
        let command = format!("git fetch --unshallow {all}");
        deepen(&scratch, find(&scratch, None).unwrap_err(), &command);
        assert_eq!(find(&scratch, None).unwrap(), expected);
        // A CI that knows its name asks for less.
        let gitlab = [("CI_DEFAULT_BRANCH", "main")];
        let scratch = server.clone(&["--depth=1", "--branch=feature"]);
        let error = find_in_ci(&scratch, &gitlab).unwrap_err();
        deepen(&scratch, error, FETCH_MAIN);
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn a_shallow_clone_is_told_how_to_get_the_commit_before_the_last() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1"]);
        let expected = format!("git fetch --deepen=1 origin {}", server.main[2]);
        deepen(&scratch, find(&scratch, None).unwrap_err(), &expected);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
    }

    #[test]
    fn a_shallow_checkout_on_no_branch_is_told_how_to_get_the_default_one() {
        let server = Server::new();
        let scratch = server.checkout_of_merge();
        let expected = "git fetch --unshallow origin +refs/heads/*:refs/remotes/origin/* \
                        && git remote set-head origin --auto";
        deepen(&scratch, find(&scratch, None).unwrap_err(), expected);
        let expected = left(&server.main[2], None, "origin/main");
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn a_shallow_branch_is_told_how_to_meet_its_upstream() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1", "--no-single-branch", "--branch=feature"]);
        deepen(&scratch, find(&scratch, None).unwrap_err(), FETCH_MAIN);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
        let scratch = server.clone(&["--depth=1", "--no-single-branch", "--branch=feature"]);
        scratch.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
        deepen(&scratch, find(&scratch, None).unwrap_err(), FETCH_MAIN);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
    }

    #[test]
    fn before_a_first_commit_there_is_none_and_it_is_the_base_itself() {
        let scratch = Scratch::new();
        assert!(matches!(
            find(&scratch, None).unwrap_err(),
            BaseError::NoCommits
        ));
        assert!(matches!(
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            BaseError::NoCommits
        ));
        scratch.write("a", "1\n");
        let first = scratch.commit();
        scratch.write("b", "1\n");
        let found = base(&first, BaseSource::First, "HEAD");
        assert_eq!(find(&scratch, None).unwrap(), found);
        let shallow = Scratch::clone_of(&scratch, &["--depth=1"]);
        assert_eq!(find(&shallow, None).unwrap(), found);
        scratch.write("a", "2\n");
        assert_eq!(find(&scratch, None).unwrap().commit, first);
    }
}
