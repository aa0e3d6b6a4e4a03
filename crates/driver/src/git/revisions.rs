//! Commits, branches and remotes as a clone knows them. Nothing is fetched.

use crate::git::repository::{GitError, Repository, text};

/// The revisions of a repository.
pub(crate) struct Revisions<'a> {
    pub(crate) repository: &'a Repository,
}

/// A branch that the clone holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its name where it lives, like `main`.
    pub(crate) name: String,
    /// Its name here, like `origin/main`.
    pub(crate) shown: String,
    /// Its last commit.
    pub(crate) tip: String,
}

impl Revisions<'_> {
    /// The full hash of a commit. A revision never begins like an option, and never names two.
    pub(crate) fn resolve(&self, revision: &str) -> Result<Option<String>, GitError> {
        if revision.starts_with(['-', '^']) {
            return Ok(None);
        }
        // Two questions are needed: `:/text` takes all that follows it for text.
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

    /// A branch of `origin`, of another remote, or of our own.
    pub(crate) fn branch(&self, name: &str) -> Result<Option<Branch>, GitError> {
        for remote in self.remotes_by_refs()? {
            if let Some(branch) = self.remote_branch(&remote, name)? {
                return Ok(Some(branch));
            }
        }
        self.own_branch(name)
    }

    /// A branch of a remote.
    pub(crate) fn remote_branch(
        &self,
        remote: &str,
        name: &str,
    ) -> Result<Option<Branch>, GitError> {
        let shown = format!("{remote}/{name}");
        let tip = self.resolve(&format!("refs/remotes/{shown}"))?;
        Ok(tip.map(|tip| Branch {
            name: name.to_owned(),
            shown,
            tip,
        }))
    }

    /// A branch of our own.
    pub(crate) fn own_branch(&self, name: &str) -> Result<Option<Branch>, GitError> {
        let tip = self.resolve(&format!("refs/heads/{name}"))?;
        Ok(tip.map(|tip| Branch {
            name: name.to_owned(),
            shown: name.to_owned(),
            tip,
        }))
    }

    /// The branch that HEAD is on; `None` if it is detached.
    pub(crate) fn current_branch(&self) -> Result<Option<String>, GitError> {
        // By its full name: the short one is another if a tag has the same.
        let name = self.repository.ask(&["symbolic-ref", "--quiet", "HEAD"])?;
        let name = name
            .as_deref()
            .and_then(|it| it.strip_prefix("refs/heads/"));
        Ok(name.map(str::to_owned))
    }

    /// The branch that a branch of our own, on which HEAD is, tracks; `None` if there is none, or none any
    /// more.
    pub(crate) fn upstream(&self, branch: &str) -> Result<Option<Branch>, GitError> {
        let merge = format!("branch.{branch}.merge");
        let merge = self.repository.ask(&["config", "--get", &merge])?;
        let merge = merge.unwrap_or_default();
        // A name there that is no branch is a pull request that was checked out.
        let Some(name) = merge.strip_prefix("refs/heads/") else {
            return Ok(None);
        };
        let Some(tip) = self.resolve("@{upstream}")? else {
            return Ok(None);
        };
        let shown = ["rev-parse", "--abbrev-ref", "@{upstream}"];
        Ok(Some(Branch {
            name: name.to_owned(),
            shown: self.repository.ask(&shown)?.unwrap_or_default(),
            tip,
        }))
    }

    /// The default branch by what the clone knows: what a remote's HEAD points to, `main` or `master`, there
    /// or here.
    pub(crate) fn usual_default(&self) -> Result<Option<Branch>, GitError> {
        for remote in self.remotes_by_refs()? {
            let head = format!("refs/remotes/{remote}/HEAD");
            let head = self.repository.ask(&["symbolic-ref", "--quiet", &head])?;
            let prefix = format!("refs/remotes/{remote}/");
            let head = head.as_deref().and_then(|head| head.strip_prefix(&prefix));
            for name in head.into_iter().chain(["main", "master"]) {
                if let Some(branch) = self.remote_branch(&remote, name)? {
                    return Ok(Some(branch));
                }
            }
        }
        for name in ["main", "master"] {
            if let Some(branch) = self.own_branch(name)? {
                return Ok(Some(branch));
            }
        }
        Ok(None)
    }

    /// One branch of each name that the clone holds, except for `name`.
    pub(crate) fn branches_but(&self, name: Option<&str>) -> Result<Vec<Branch>, GitError> {
        let remotes = self.remotes_by_refs()?;
        let mut branches: Vec<Branch> = Vec::new();
        for one in self.refs(&["refs/heads", "refs/remotes"])? {
            let branch = match one.strip_prefix("refs/heads/") {
                Some(own) => self.own_branch(own)?,
                None => match split_tracking(&one, &remotes) {
                    // It only points to one of the others.
                    Some((_, "HEAD")) | None => None,
                    Some((remote, branch)) => self.remote_branch(remote, branch)?,
                },
            };
            let is_known = |branch: &Branch| branches.iter().any(|known| known.name == branch.name);
            let branch = branch.filter(|it| Some(&*it.name) != name && !is_known(it));
            branches.extend(branch);
        }
        Ok(branches)
    }

    fn refs(&self, below: &[&str]) -> Result<Vec<String>, GitError> {
        let arguments = [&["for-each-ref", "--format=%(refname)"], below].concat();
        let names = text(self.repository.run(&arguments)?)?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// The commit where two histories part.
    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        self.repository.ask(&["merge-base", one, other])
    }

    /// Whether one commit is the other or comes before it.
    pub(crate) fn is_ancestor(&self, one: &str, other: &str) -> Result<bool, GitError> {
        Ok(self.merge_base(one, other)?.as_deref() == Some(one))
    }

    /// At most `count` commits before a commit, along first parents, the nearest first.
    pub(crate) fn before(&self, commit: &str, count: u32) -> Result<Vec<String>, GitError> {
        let count = format!("--max-count={count}");
        let arguments = ["rev-list", "--first-parent", "--skip=1", &count, commit];
        let hashes = text(self.repository.run(&arguments)?)?;
        Ok(hashes.lines().map(str::to_owned).collect())
    }

    /// All remotes, `origin` first.
    pub(crate) fn remotes(&self) -> Result<Vec<String>, GitError> {
        let names = text(self.repository.run(&["remote"])?)?;
        let mut remotes: Vec<String> = names.lines().map(str::to_owned).collect();
        remotes.sort_by_key(|name| name != "origin");
        Ok(remotes)
    }

    /// All remotes, and after them those that no configuration knows and whose branches are here: many a CI
    /// fetches by the address. `origin` goes first among both.
    fn remotes_by_refs(&self) -> Result<Vec<String>, GitError> {
        let mut remotes = self.remotes()?;
        let mut more = Vec::new();
        for one in self.refs(&["refs/remotes"])? {
            if split_tracking(&one, &remotes).is_none()
                && let Some((remote, _)) = tracking(&one).and_then(|name| name.split_once('/'))
                && !more.iter().any(|known| known == remote)
            {
                more.push(remote.to_owned());
            }
        }
        more.sort_by_key(|name| name != "origin");
        remotes.extend(more);
        Ok(remotes)
    }

    /// `origin`, or all remotes where there is none of that name.
    pub(crate) fn main_remotes(&self) -> Result<Vec<String>, GitError> {
        let mut remotes = self.remotes_by_refs()?;
        if remotes.first().is_some_and(|name| name == "origin") {
            remotes.truncate(1);
        }
        Ok(remotes)
    }

    /// The remote that something is fetched from.
    pub(crate) fn remote(&self) -> Result<Option<String>, GitError> {
        Ok(self.remotes()?.into_iter().next())
    }

    /// Whether the history of the clone was cut off.
    pub(crate) fn is_shallow(&self) -> Result<bool, GitError> {
        let answer = self
            .repository
            .ask(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer.as_deref() == Some("true"))
    }
}

fn tracking(full: &str) -> Option<&str> {
    full.strip_prefix("refs/remotes/")
}

/// The remote of a branch that tracks one of it, and its name there. The name of a remote may have slashes.
fn split_tracking<'a>(full: &'a str, remotes: &'a [String]) -> Option<(&'a str, &'a str)> {
    let name = tracking(full)?;
    let found = remotes.iter().filter_map(|remote| {
        let branch = name.strip_prefix(remote.as_str())?.strip_prefix('/')?;
        Some((remote.as_str(), branch))
    });
    found.max_by_key(|(remote, _)| remote.len())
}
