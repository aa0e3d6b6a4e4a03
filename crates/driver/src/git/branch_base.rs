//! The base of a branch, outside a pull request: where it left another one, or a commit before the last.

use crate::git::base::{Base, BaseError, BaseSource, Search};
use crate::git::changes::has_tracked_changes;
use crate::git::ci_push;
use crate::git::revisions::Branch;
use crate::git::unfetched::{apart, missing, missing_branch, missing_default};

/// The number of commits before HEAD that are looked up in the history.
const LOOKED_UP: u32 = 50;

impl Search<'_> {
    /// The commit where HEAD left the branch that it is stacked on, or the default branch; `None` on the default
    /// branch, and on the only branch there is.
    pub(super) fn left(&self, head: &str, branch: Option<&str>) -> Result<Option<Base>, BaseError> {
        let default = self.default_branch()?;
        let is_default = default.as_ref().is_some_and(|it| Some(&*it.name) == branch);
        if let Some(name) = branch.filter(|_| !is_default)
            && let Some(base) = self.stacked(head, name)?
        {
            return Ok(Some(base));
        }
        let Some(default) = default else {
            return match self.revisions.remote()? {
                Some(remote) => Err(missing_default(&self.revisions, &remote)?),
                None => self.left_other(head, branch),
            };
        };
        if is_default {
            return Ok(None);
        }
        match self.revisions.merge_base(head, &default.tip)? {
            Some(commit) if branch.is_none() && commit == head => Ok(None),
            Some(commit) => Ok(Some(left(commit, branch, default))),
            None => Err(apart(&self.revisions, default.shown)?),
        }
    }

    /// The commit where HEAD left the only other branch; `None` on the only branch there is.
    fn left_other(&self, head: &str, branch: Option<&str>) -> Result<Option<Base>, BaseError> {
        let mut others = self.revisions.branches_but(branch)?;
        let only = if others.len() == 1 {
            others.pop()
        } else {
            None
        };
        if let Some(other) = only {
            match self.revisions.merge_base(head, &other.tip)? {
                Some(commit) if commit != head => return Ok(Some(left(commit, branch, other))),
                Some(_) if branch.is_none() => return Ok(None),
                // It is not known which of the two began at the other.
                Some(_) | None => others.push(other),
            }
        }
        if others.is_empty() {
            return Ok(None);
        }
        let names = others.into_iter().map(|other| other.shown);
        let branches = branch.map(str::to_owned).into_iter().chain(names).collect();
        Err(BaseError::NoDefault { branches })
    }

    /// The default branch; `None` if nobody names it.
    fn default_branch(&self) -> Result<Option<Branch>, BaseError> {
        if let Some(name) = ci_push::default_branch(self.hints.variable) {
            if let Some(branch) = self.revisions.branch(&name)? {
                return Ok(Some(branch));
            }
            if let Some(remote) = self.revisions.remote()? {
                return Err(missing_branch(&self.revisions, &remote, &name)?);
            }
            let usual = self.revisions.usual_default()?;
            return usual.map(Some).ok_or(BaseError::Unknown { wanted: name });
        }
        Ok(self.revisions.usual_default()?)
    }

    /// The commit where a branch left the one that it tracks; `None` if that is a copy of it.
    fn stacked(&self, head: &str, branch: &str) -> Result<Option<Base>, BaseError> {
        let Some(upstream) = self.revisions.upstream(branch)? else {
            return Ok(None);
        };
        if is_copy(&upstream.name, branch) {
            return Ok(None);
        }
        match self.revisions.merge_base(head, &upstream.tip)? {
            // Without commits of its own it is a copy of another name, or is not stacked on it yet.
            Some(commit) if commit == head => Ok(None),
            Some(commit) => Ok(Some(left(commit, Some(branch), upstream))),
            None if self.revisions.is_shallow()? => Err(missing(&self.revisions, &upstream.shown)?),
            // An upstream without common history says nothing about what changed.
            None => Ok(None),
        }
    }

    /// The base on the default branch, or on the only one there is.
    pub(super) fn on_default(&self, head: &str, branch: Option<&str>) -> Result<Base, BaseError> {
        if let Some(branch) = branch
            && let Some(base) = self.unpushed(head, branch)?
        {
            return Ok(base);
        }
        let base = |commit, source, wanted: &str| Base {
            commit,
            source,
            wanted: wanted.to_owned(),
        };
        // An uncommitted change to a commit that nobody has run excuses nothing that is in the commit.
        if (self.hints.tested)(head)
            && has_tracked_changes(self.revisions.repository, head, self.hints.clutter)?
        {
            return Ok(base(head.to_owned(), BaseSource::Head, "HEAD"));
        }
        for before in ci_push::before(self.hints.variable) {
            let Some(commit) = self.revisions.resolve(&before.commit)? else {
                continue;
            };
            if commit != head && self.revisions.is_ancestor(&commit, head)? {
                let source = BaseSource::Before {
                    variable: before.variable,
                    standing: before.standing,
                };
                return Ok(base(commit, source, &before.commit));
            }
        }
        let mut earlier = self.revisions.before(head, LOOKED_UP)?.into_iter();
        if let Some(commit) = earlier.find(|commit| (self.hints.tested)(commit)) {
            let wanted = commit.clone();
            return Ok(base(commit, BaseSource::Tested, &wanted));
        }
        self.parent(head)
    }

    /// The commit where the default branch left its copy on the remote; `None` if all commits are there.
    fn unpushed(&self, head: &str, branch: &str) -> Result<Option<Base>, BaseError> {
        let upstream = self.revisions.upstream(branch)?;
        let mut copy = upstream.filter(|upstream| upstream.name == branch);
        for remote in self.revisions.main_remotes()? {
            if copy.is_none() {
                copy = self.revisions.remote_branch(&remote, branch)?;
            }
        }
        let Some(copy) = copy else {
            return Ok(None);
        };
        match self.revisions.merge_base(head, &copy.tip)? {
            Some(commit) if commit == head => Ok(None),
            Some(commit) => Ok(Some(Base {
                commit,
                source: BaseSource::Unpushed {
                    branch: branch.to_owned(),
                },
                wanted: copy.shown,
            })),
            None if self.revisions.is_shallow()? => Err(missing(&self.revisions, &copy.shown)?),
            None => Ok(None),
        }
    }

    fn parent(&self, head: &str) -> Result<Base, BaseError> {
        let wanted = "HEAD^".to_owned();
        if let Some(commit) = self.revisions.resolve(&wanted)? {
            return Ok(Base {
                commit,
                source: BaseSource::Parent,
                wanted,
            });
        }
        // Where the history was cut off the commit still names its parent.
        let repository = self.revisions.repository;
        let commit = repository.run(&["cat-file", "commit", head])?;
        let lines = commit.split(|byte| *byte == b'\n');
        let has_parent = lines
            .take_while(|line| !line.is_empty())
            .any(|line| line.starts_with(b"parent "));
        match self.revisions.remote()? {
            Some(remote) if has_parent => {
                // By its hash: HEAD may be on no branch of the remote.
                let fetch = ["git", "fetch", "--deepen=1", &remote, head];
                Err(BaseError::Shallow {
                    wanted,
                    fetch: fetch.map(str::to_owned).into(),
                })
            }
            Some(_) | None if has_parent => Err(BaseError::NoParent),
            Some(_) | None => Ok(Base {
                commit: head.to_owned(),
                source: BaseSource::First,
                wanted: "HEAD".to_owned(),
            }),
        }
    }
}

fn left(commit: String, branch: Option<&str>, from: Branch) -> Base {
    Base {
        commit,
        source: BaseSource::Left {
            branch: branch.map(str::to_owned),
        },
        wanted: from.shown,
    }
}

/// Whether an upstream has the branch's own name, perhaps after that of its author.
fn is_copy(upstream: &str, branch: &str) -> bool {
    let ends = |long: &str, short: &str| {
        let rest = long.strip_suffix(short);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(upstream, branch) || ends(branch, upstream)
}
