//! Files of the work tree that git does not track: which of them may have been made from what changed.

use std::fs;

use camino::Utf8Path;

use crate::usage::facts::Ground;

/// Whether a file that git does not track may have been made from what changed.
///
/// Neither its name nor its times tell: it counts if it was there before the run and the base has another, or
/// none.
pub(crate) fn is_generated(ground: &Ground<'_>, place: &str) -> bool {
    let is_cache = |part: &str| {
        let caches = ["__pycache__", ".pytest_cache", ".hypothesis"];
        caches.contains(&part)
    };
    if place.split('/').any(is_cache) || is_installed(ground, place) {
        return false;
    }
    let own = ground.root.join(place);
    let Ok(data) = fs::symlink_metadata(&own) else {
        // A file that is not there was the run's own, in a copy.
        return false;
    };
    let came = data.created().or_else(|_| data.modified());
    if came.is_ok_and(|came| came > ground.run_began) {
        return false;
    }
    let at_base = ground.base_tree.map(|tree| tree.join(place));
    at_base.is_none_or(|other| !has_same_bytes(&own, &other))
}

/// Whether a file belongs to an environment inside the tree, and not to the project.
fn is_installed(ground: &Ground<'_>, place: &str) -> bool {
    let folders = Utf8Path::new(place).ancestors().skip(1);
    let mut folders = folders.filter(|folder| !folder.as_str().is_empty());
    folders.any(|folder| ground.root.join(folder).join("pyvenv.cfg").exists())
}

fn has_same_bytes(one: &Utf8Path, other: &Utf8Path) -> bool {
    match (fs::read(one), fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), _) | (_, Err(_)) => false,
    }
}
