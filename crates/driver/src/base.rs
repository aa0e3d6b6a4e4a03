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
        let revision = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", &revision];
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
