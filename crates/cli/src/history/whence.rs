//! Where our own runs come from: the revision and branch of the work tree, and the job around us.

use std::env;

use camino::Utf8Path;
use unflake_driver::git::changes::Dirt;
use unflake_driver::git::clutter::Clutter;
use unflake_driver::git::repository::Repository;
use unflake_history::run::Provenance;
use unflake_history::store::digest_of;

use super::own_files::OwnFiles;

/// Variables in which CI systems name the branch: of GitHub, GitLab, Buildkite, Circle and Jenkins.
const BRANCHES: [&str; 6] = [
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "BUILDKITE_BRANCH",
    "CIRCLE_BRANCH",
    "BRANCH_NAME",
];

/// Variables in which they name the job.
const JOBS: [&str; 5] = [
    "GITHUB_RUN_ID",
    "CI_JOB_ID",
    "BUILDKITE_JOB_ID",
    "CIRCLE_BUILD_NUM",
    "BUILD_TAG",
];

/// What is known of the code in a folder, and what may make it another than the revision's.
#[derive(Default)]
pub(crate) struct Code {
    provenance: Provenance,
    changes: Option<(Repository, Clutter, Dirt)>,
}

impl Code {
    /// What git says before the tests write anything. What it does not say stays empty: history is no reason to fail.
    pub(crate) fn look(own: &OwnFiles) -> Self {
        let mut provenance = Provenance {
            job: first(&JOBS).unwrap_or_default(),
            ..Provenance::default()
        };
        let Ok(Some(repository)) = Repository::find(&own.folder) else {
            own.at_start();
            return Self {
                provenance,
                changes: None,
            };
        };
        let ask = |arguments: &[&str]| {
            let answer = repository.run(arguments).ok()?;
            Some(String::from_utf8(answer).ok()?.trim().to_owned())
        };
        provenance.revision = ask(&["rev-parse", "HEAD"]).unwrap_or_default();
        let here = ask(&["rev-parse", "--abbrev-ref", "HEAD"]);
        let here = here.filter(|name| name != "HEAD").unwrap_or_default();
        provenance.branch = first(&BRANCHES).unwrap_or(here);
        if provenance.revision.is_empty() {
            return Self {
                provenance,
                changes: None,
            };
        }
        let clutter = own.clutter(repository.root());
        let Ok(dirt) = Dirt::find(&repository, &clutter) else {
            return Self {
                provenance: dirty(provenance),
                changes: None,
            };
        };
        Self {
            provenance,
            changes: Some((repository, clutter, dirt)),
        }
    }

    /// Where the runs come from, now that tests have run: a leftover that they wrote anew is theirs.
    pub(crate) fn into_provenance(self) -> Provenance {
        let is_dirty = self
            .changes
            .is_some_and(|(repository, clutter, dirt)| dirt.is_any(&repository, &clutter));
        if is_dirty {
            dirty(self.provenance)
        } else {
            self.provenance
        }
    }
}

/// Nobody can say what these runs ran: they prove nothing about the revision or the branch.
fn dirty(provenance: Provenance) -> Provenance {
    Provenance {
        revision: format!("{}+", provenance.revision),
        branch: format!("{}+", provenance.branch),
        ..provenance
    }
}

/// What the runs of a folder are called in the history. A test of the same name in another folder of the same
/// repository is another test.
pub(crate) fn source(folder: &Utf8Path) -> String {
    let is_root = |folder: &&Utf8Path| folder.join(".git").exists();
    let root = folder.ancestors().find(is_root);
    match root.and_then(|root| folder.strip_prefix(root).ok()) {
        Some(inside) if inside != "" => format!("unflake in {inside}"),
        Some(_) | None => "unflake".to_owned(),
    }
}

/// What the repository around a folder is called: as its origin is, or as the folder of its first work tree.
pub(crate) fn project(folder: &Utf8Path) -> String {
    let ask = |arguments: &[&str]| {
        let repository = Repository::find(folder).ok()??;
        let answer = repository.run(arguments).ok()?;
        Some(String::from_utf8(answer).ok()?.trim().to_owned())
    };
    let origin = ask(&["config", "--get", "remote.origin.url"]);
    let origin = origin
        .as_deref()
        .map(name_of)
        .filter(|name| !name.is_empty());
    if let Some(name) = origin {
        return name.to_owned();
    }
    let common = ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let common = common.as_deref().map(|path| path.trim_end_matches("/.git"));
    let name = name_of(common.unwrap_or(folder.as_str()));
    name.to_owned()
}

/// The last part of a path or URL.
fn name_of(place: &str) -> &str {
    let place = place.trim_end_matches('/');
    let name = place.rsplit(['/', ':', '\\']).next().unwrap_or(place);
    name.strip_suffix(".git").unwrap_or(name)
}

/// The seed of Python's hashes, if the user has fixed it: else each interpreter takes another.
pub(crate) fn hash_seed() -> Option<String> {
    first(&["PYTHONHASHSEED"]).filter(|seed| seed != "random")
}

/// What tells one set of installed packages from all others.
pub(crate) fn installed(packages: &[String]) -> [u8; 32] {
    digest_of(packages.join("\n").as_bytes())
}

fn first(names: &[&str]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| env::var(name).ok());
    values.find(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_called_as_its_origin_is() {
        for (origin, name) in [
            ("https://example.org/team/shop.git", "shop"),
            ("git@example.org:shop.git", "shop"),
            ("/srv/git/shop/", "shop"),
            ("", ""),
        ] {
            assert_eq!(name_of(origin), name);
        }
    }
}
