//! Which commit the work tree is compared with. It is only looked for in what the clone holds: nothing
//! is fetched, but the command that would fetch it is part of the error.

use crate::changes::is_dirty;
use crate::git::{GitError, Repository};
use crate::pull_request::{self, Named};

/// The commit that the work tree is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its full hash.
    pub commit: String,
    /// Why it is this one.
    pub source: BaseSource,
    /// What was looked for: a revision as the user or the CI gave it, or a branch like `origin/main`.
    pub wanted: String,
}

/// Why a commit is the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseSource {
    /// The user said so.
    Given,
    /// It is where the pull request that the CI builds left its target.
    PullRequest {
        /// The variable that names the target.
        variable: &'static str,
    },
    /// It is where the branch left its upstream.
    Upstream,
    /// The work tree has changes that are not committed: it is the last commit.
    Head,
    /// The work tree has none: it is the commit before the last.
    Parent,
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
        /// What was looked for.
        wanted: String,
    },
    /// The clone has no such commit; the remote may have it.
    #[error("this clone does not hold `{wanted}`")]
    Absent {
        /// What was looked for.
        wanted: String,
        /// The command that fetches it, word by word.
        fetch: Vec<String>,
    },
    /// The history of the clone ends before the base.
    #[error("this clone is shallow and does not reach back to the base (`{wanted}`)")]
    Shallow {
        /// What was looked for.
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
    /// The only commit has none before it.
    #[error("nothing has changed since the first commit, and there is none before it")]
    NoParent,
    /// There is no commit at all.
    #[error("this repository has no commits yet")]
    NoCommits,
}

/// The base of the work tree: what is given; in a CI, where the pull request left its target; where the
/// branch left its upstream, unless nothing was committed since; the last commit, if the work tree
/// differs from it; the commit before it.
///
/// `variable` looks up a variable of the environment.
pub fn find_base(
    repository: &Repository,
    given: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Base, BaseError> {
    let search = Search { repository };
    if let Some(wanted) = given {
        return search.given(wanted);
    }
    let head = search.resolve("HEAD")?.ok_or(BaseError::NoCommits)?;
    if let Some(base) = search.pull_request(&head, variable)? {
        return Ok(base);
    }
    if let Some(base) = search.upstream(&head)? {
        return Ok(base);
    }
    if is_dirty(repository, &head)? {
        return Ok(Base {
            commit: head,
            source: BaseSource::Head,
            wanted: "HEAD".to_owned(),
        });
    }
    search.parent(&head)
}

struct Search<'a> {
    repository: &'a Repository,
}

impl Search<'_> {
    fn given(&self, wanted: &str) -> Result<Base, BaseError> {
        let mut commit = self.resolve(wanted)?;
        if commit.is_none() {
            // In a CI's clone `main` is often known as `origin/main` only.
            commit = self.branch(wanted)?.map(|(_, commit)| commit);
        }
        match commit {
            Some(commit) => Ok(Base {
                commit,
                source: BaseSource::Given,
                wanted: wanted.to_owned(),
            }),
            None => Err(self.missing(wanted)?),
        }
    }

    /// Several variables may name the target. The last says what to fetch if none is in the clone: it
    /// names a branch, and some servers give commits by the names of branches only.
    fn pull_request(
        &self,
        head: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Base>, BaseError> {
        let mut trouble = None;
        for target in pull_request::targets(variable) {
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
        let Some((wanted, tip)) = self.branch(name)? else {
            return Err(match self.remote()? {
                Some(remote) => self.unfetched(&remote, name)?,
                None => BaseError::Unknown {
                    wanted: name.to_owned(),
                },
            });
        };
        match self.merge_base(head, &tip)? {
            Some(commit) => Ok((wanted, commit)),
            None => Err(self.apart(wanted)?),
        }
    }

    fn leaves_commit(&self, head: &str, hash: &str) -> Result<(String, String), BaseError> {
        let Some(tip) = self.resolve(hash)? else {
            return Err(self.missing(hash)?);
        };
        match self.merge_base(head, &tip)? {
            Some(commit) => Ok((hash.to_owned(), commit)),
            None => Err(self.apart(hash.to_owned())?),
        }
    }

    fn upstream(&self, head: &str) -> Result<Option<Base>, BaseError> {
        // A detached HEAD has no upstream, and one whose branch is gone resolves to nothing.
        let Some(tip) = self.resolve("@{upstream}")? else {
            return Ok(None);
        };
        let name = ["rev-parse", "--abbrev-ref", "@{upstream}"];
        let wanted = self.repository.ask(&name)?.unwrap_or_default();
        match self.merge_base(head, &tip)? {
            Some(commit) if commit == head => Ok(None),
            Some(commit) => Ok(Some(Base {
                commit,
                source: BaseSource::Upstream,
                wanted,
            })),
            None if self.is_shallow()? => Err(self.missing(&wanted)?),
            // An upstream without common history says nothing about what changed.
            None => Ok(None),
        }
    }

    fn parent(&self, head: &str) -> Result<Base, BaseError> {
        let wanted = "HEAD^".to_owned();
        if let Some(commit) = self.resolve(&wanted)? {
            return Ok(Base {
                commit,
                source: BaseSource::Parent,
                wanted,
            });
        }
        // Where the history was cut off the commit still names its parent.
        let commit = self.repository.run(&["cat-file", "commit", head])?;
        let lines = commit.split(|byte| *byte == b'\n');
        let has_parent = lines
            .take_while(|line| !line.is_empty())
            .any(|line| line.starts_with(b"parent "));
        match self.remote()? {
            Some(remote) if has_parent => Err(BaseError::Shallow {
                wanted,
                // By its hash: HEAD may be on no branch of the remote.
                fetch: words(&["git", "fetch", "--deepen=1", &remote, head]),
            }),
            Some(_) | None => Err(BaseError::NoParent),
        }
    }

    /// The full hash of a commit. A revision never begins like an option, and never names two.
    fn resolve(&self, revision: &str) -> Result<Option<String>, GitError> {
        if revision.starts_with(['-', '^']) {
            return Ok(None);
        }
        // In two questions: `:/text` takes all that follows it for text.
        match self.verify(revision)? {
            Some(hash) => self.verify(&format!("{hash}^{{commit}}")),
            None => Ok(None),
        }
    }

    fn verify(&self, revision: &str) -> Result<Option<String>, GitError> {
        let arguments = ["rev-parse", "--verify", "--quiet", revision];
        match self.repository.ask(&arguments) {
            // A revision of a form that leads nowhere, like `@{upstream}` without one.
            Err(GitError::Failed { .. }) => Ok(None),
            answer => answer,
        }
    }

    /// A branch of `origin`, of another remote, or of our own: its name and its commit.
    fn branch(&self, name: &str) -> Result<Option<(String, String)>, GitError> {
        let remotes = self.remotes()?;
        let known = remotes.iter().map(|remote| {
            let shown = format!("{remote}/{name}");
            (format!("refs/remotes/{shown}"), shown)
        });
        let own = (format!("refs/heads/{name}"), name.to_owned());
        for (reference, shown) in known.chain([own]) {
            if let Some(commit) = self.resolve(&reference)? {
                return Ok(Some((shown, commit)));
            }
        }
        Ok(None)
    }

    fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        self.repository.ask(&["merge-base", one, other])
    }

    /// All remotes, `origin` first.
    fn remotes(&self) -> Result<Vec<String>, GitError> {
        let names = crate::git::text(self.repository.run(&["remote"])?)?;
        let mut remotes: Vec<String> = names.lines().map(str::to_owned).collect();
        remotes.sort_by_key(|name| name != "origin");
        Ok(remotes)
    }

    fn remote(&self) -> Result<Option<String>, GitError> {
        Ok(self.remotes()?.into_iter().next())
    }

    fn is_shallow(&self) -> Result<bool, GitError> {
        let answer = self
            .repository
            .ask(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer.as_deref() == Some("true"))
    }
}

/// Errors, with the commands that help.
impl Search<'_> {
    /// A revision that does not resolve.
    fn missing(&self, wanted: &str) -> Result<BaseError, GitError> {
        let remotes = self.remotes()?;
        let Some(remote) = remotes.first() else {
            let wanted = wanted.to_owned();
            return Ok(BaseError::Unknown { wanted });
        };
        let branch = remotes.iter().find_map(|remote| {
            let name = wanted.strip_prefix(remote)?.strip_prefix('/')?;
            Some((remote, name)).filter(|(_, name)| is_plain(name))
        });
        if let Some((remote, name)) = branch {
            return self.unfetched(remote, name);
        }
        let is_hash = wanted.len() >= 40 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
        let wanted = wanted.to_owned();
        Ok(match (self.is_shallow()?, is_hash) {
            (true, true) => BaseError::Shallow {
                fetch: words(&["git", "fetch", "--unshallow", remote, &wanted]),
                wanted,
            },
            // All that the remote has: whether it is a branch, a tag or a way back from HEAD.
            (true, false) => BaseError::Shallow {
                fetch: words(&[
                    "git",
                    "fetch",
                    "--unshallow",
                    "--tags",
                    remote,
                    &format!("+refs/heads/*:refs/remotes/{remote}/*"),
                ]),
                wanted,
            },
            (false, true) => BaseError::Absent {
                fetch: words(&["git", "fetch", remote, &wanted]),
                wanted,
            },
            (false, false) => BaseError::Unknown { wanted },
        })
    }

    /// A branch of a remote that is not in the clone.
    fn unfetched(&self, remote: &str, name: &str) -> Result<BaseError, GitError> {
        let wanted = format!("{remote}/{name}");
        // With both sides named it works in a clone of a single branch as well.
        let branch = format!("+refs/heads/{name}:refs/remotes/{remote}/{name}");
        Ok(if self.is_shallow()? {
            BaseError::Shallow {
                wanted,
                fetch: words(&["git", "fetch", "--unshallow", remote, &branch]),
            }
        } else {
            BaseError::Absent {
                wanted,
                fetch: words(&["git", "fetch", remote, &branch]),
            }
        })
    }

    /// A target whose common history with HEAD is not in the clone.
    fn apart(&self, wanted: String) -> Result<BaseError, GitError> {
        if self.is_shallow()? {
            self.missing(&wanted)
        } else {
            Ok(BaseError::Unrelated { wanted })
        }
    }
}

/// Whether it is a name and nothing else: no `~1`, `^`, `@{…}`.
fn is_plain(name: &str) -> bool {
    !name.contains(['~', '^', ':', '*', '?', '[', ' ', '\\']) && !name.contains("@{")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::scratch::Scratch;

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

        /// What a CI checks out of a pull request: its merge, alone and on no branch.
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

    fn find(scratch: &Scratch, given: Option<&str>) -> Result<Base, BaseError> {
        find_base(&scratch.repository(), given, NOWHERE)
    }

    fn find_in_ci(scratch: &Scratch, variables: &[(&str, &str)]) -> Result<Base, BaseError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        find_base(&scratch.repository(), None, &variable)
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
        assert_eq!(words[0], "git");
        scratch.git(&words[1..]);
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
        let base = find_base(&server.scratch.repository(), Some("v1"), &variable).unwrap();
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

    #[test]
    fn a_branch_begins_where_it_left_its_upstream() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        scratch.git(&["checkout", "--quiet", "-b", "own", "--track", "origin/main"]);
        scratch.git(&["reset", "--quiet", "--hard", &server.main[1]]);
        scratch.write("own", "1\n");
        scratch.commit();
        scratch.write("dirty", "1\n");
        let expected = Base {
            commit: server.main[1].clone(),
            source: BaseSource::Upstream,
            wanted: "origin/main".to_owned(),
        };
        assert_eq!(find(&scratch, None).unwrap(), expected);
    }

    #[test]
    fn without_own_commits_the_base_is_the_last_commit_or_the_one_before() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        let base = |commit: &str, source, wanted: &str| Base {
            commit: commit.to_owned(),
            source,
            wanted: wanted.to_owned(),
        };
        let parent = base(&server.main[1], BaseSource::Parent, "HEAD^");
        assert_eq!(find(&scratch, None).unwrap(), parent);
        scratch.write(".unflake/history", "1\n");
        assert_eq!(find(&scratch, None).unwrap(), parent);
        scratch.write("untracked", "1\n");
        let head = base(&server.main[2], BaseSource::Head, "HEAD");
        assert_eq!(find(&scratch, None).unwrap(), head);
    }

    #[test]
    fn an_upstream_that_is_gone_or_missing_is_none() {
        let server = Server::new();
        let scratch = server.clone(&[]);
        scratch.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
        assert_eq!(find(&scratch, None).unwrap().source, BaseSource::Parent);
        scratch.git(&["checkout", "--quiet", "--detach"]);
        assert_eq!(find(&scratch, None).unwrap().source, BaseSource::Parent);
    }

    #[test]
    fn a_shallow_clone_is_told_how_to_get_the_commit_before_the_last() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1"]);
        let expected = format!("git fetch --deepen=1 origin {}", server.main[2]);
        deepen(&scratch, find(&scratch, None).unwrap_err(), &expected);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
        let scratch = server.checkout_of_merge();
        let expected = format!("git fetch --deepen=1 origin {}", server.merge);
        deepen(&scratch, find(&scratch, None).unwrap_err(), &expected);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[2]);
    }

    #[test]
    fn a_shallow_branch_is_told_how_to_meet_its_upstream() {
        let server = Server::new();
        let scratch = server.clone(&["--depth=1", "--no-single-branch", "--branch=feature"]);
        scratch.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
        deepen(&scratch, find(&scratch, None).unwrap_err(), FETCH_MAIN);
        assert_eq!(find(&scratch, None).unwrap().commit, server.main[1]);
    }

    #[test]
    fn a_first_commit_has_none_before_it() {
        let scratch = Scratch::new();
        assert!(matches!(
            find(&scratch, None).unwrap_err(),
            BaseError::NoCommits
        ));
        assert!(matches!(
            find_in_ci(&scratch, &TO_MAIN).unwrap_err(),
            BaseError::NoCommits
        ));
        let first = scratch.commit();
        assert!(matches!(
            find(&scratch, None).unwrap_err(),
            BaseError::NoParent
        ));
        let shallow = Scratch::clone_of(&scratch, &["--depth=1"]);
        assert!(matches!(
            find(&shallow, None).unwrap_err(),
            BaseError::NoParent
        ));
        scratch.write("a", "1\n");
        assert_eq!(find(&scratch, None).unwrap().commit, first);
    }
}
