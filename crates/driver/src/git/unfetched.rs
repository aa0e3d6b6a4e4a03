//! Errors about things that a clone does not hold; each names the command that fetches them.

use crate::git::base::BaseError;
use crate::git::repository::GitError;
use crate::git::revisions::Revisions;

/// The error for a revision that does not resolve.
pub(crate) fn missing(revisions: &Revisions<'_>, wanted: &str) -> Result<BaseError, GitError> {
    let remotes = revisions.remotes()?;
    let Some(remote) = remotes.first() else {
        let wanted = wanted.to_owned();
        return Ok(BaseError::Unknown { wanted });
    };
    let branch = remotes.iter().find_map(|remote| {
        let name = wanted.strip_prefix(remote)?.strip_prefix('/')?;
        Some((remote, name)).filter(|(_, name)| is_plain(name))
    });
    if let Some((remote, name)) = branch {
        return missing_branch(revisions, remote, name);
    }
    let is_hash = wanted.len() >= 40 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_shallow = revisions.is_shallow()?;
    if !is_shallow && !is_hash {
        let wanted = wanted.to_owned();
        return Ok(BaseError::Unknown { wanted });
    }
    let command = if is_hash {
        vec![remote.clone(), wanted.to_owned()]
    } else {
        // All that the remote has: whether it is a branch, a tag or a way back from HEAD.
        vec!["--tags".to_owned(), remote.clone(), all_branches(remote)]
    };
    Ok(error(wanted, is_shallow, &command))
}

/// The error for a branch of a remote that is not in the clone.
pub(crate) fn missing_branch(
    revisions: &Revisions<'_>,
    remote: &str,
    name: &str,
) -> Result<BaseError, GitError> {
    // With both sides named it works in a clone of a single branch as well.
    let branch = format!("+refs/heads/{name}:refs/remotes/{remote}/{name}");
    let wanted = format!("{remote}/{name}");
    let command = [remote.to_owned(), branch];
    Ok(error(&wanted, revisions.is_shallow()?, &command))
}

/// The error for a clone that does not even know the name of the default branch.
pub(crate) fn missing_default(
    revisions: &Revisions<'_>,
    remote: &str,
) -> Result<BaseError, GitError> {
    let wanted = format!("{remote}/HEAD");
    let mut command = vec![remote.to_owned(), all_branches(remote)];
    let set_head = ["&&", "git", "remote", "set-head", remote, "--auto"];
    command.extend(set_head.map(str::to_owned));
    Ok(error(&wanted, revisions.is_shallow()?, &command))
}

/// The error for a target whose common history with HEAD is not in the clone.
pub(crate) fn apart(revisions: &Revisions<'_>, wanted: String) -> Result<BaseError, GitError> {
    if revisions.is_shallow()? {
        missing(revisions, &wanted)
    } else {
        Ok(BaseError::Unrelated { wanted })
    }
}

fn error(wanted: &str, is_shallow: bool, command: &[String]) -> BaseError {
    let wanted = wanted.to_owned();
    let words = |begin: &[&str]| {
        let begin = begin.iter().map(|word| (*word).to_owned());
        begin.chain(command.iter().cloned()).collect()
    };
    if is_shallow {
        BaseError::Shallow {
            wanted,
            fetch: words(&["git", "fetch", "--unshallow"]),
        }
    } else {
        BaseError::Absent {
            wanted,
            fetch: words(&["git", "fetch"]),
        }
    }
}

fn all_branches(remote: &str) -> String {
    format!("+refs/heads/*:refs/remotes/{remote}/*")
}

/// Whether it is a name and nothing else: no `~1`, `^`, `@{…}`.
fn is_plain(name: &str) -> bool {
    !name.contains(['~', '^', ':', '*', '?', '[', ' ', '\\']) && !name.contains("@{")
}
