//! Puts the paths of a run's facts into the terms of a repository.

use std::collections::BTreeSet;

use camino::Utf8Path;
use unflake_core::change::is_python;
use unflake_core::usage::{Asked, FileUse, Native, Usage};

use crate::git::generated::is_generated;
use crate::git::paths::{Places, Way};
use crate::usage::facts::Ground;

/// The parts of the language itself through which files are opened that the runner does not see.
const OPENERS: [&str; 5] = ["ctypes", "ssl", "_dbm", "_gdbm", "_sqlite3"];

/// Puts paths into the terms of a repository.
pub(super) struct Reader<'a> {
    ground: &'a Ground<'a>,
    pub(super) usage: Usage,
    places: Places<'a>,
    /// The sources that somebody opened whom we watch.
    sources: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(ground: &'a Ground<'a>) -> Self {
        Self {
            ground,
            usage: Usage::default(),
            places: Places::new(ground.root),
            sources: BTreeSet::new(),
        }
    }

    /// A file whose content was used. A folder has its entries for a content.
    pub(super) fn file(&mut self, path: &str, used: impl Fn(&mut FileUse)) {
        let way = self.places.file(path);
        self.links(&way);
        let Some(place) = way.place else {
            self.usage.elsewhere.insert(path.to_owned());
            return;
        };
        if way.end.is_dir() {
            self.usage.listed.insert(place);
            return;
        }
        if !self.ground.known.contains(&place) && !place.starts_with(".git/") {
            self.usage.elsewhere.insert(path.to_owned());
            if is_generated(self.ground, &place) {
                self.usage.generated.insert(place.clone());
            }
        }
        if self.ground.hidden.contains(&place) {
            self.usage.hidden.insert(place.clone());
        }
        used(self.usage.files.entry(place).or_default());
    }

    pub(super) fn source(&mut self, path: &str) {
        let way = self.places.file(path);
        self.links(&way);
        self.sources.extend(way.place);
    }

    pub(super) fn looked_at(&mut self, path: &str, asked: Asked) {
        let way = self.places.file(path);
        self.links(&way);
        let Some(place) = way.place else { return };
        let file = self.usage.files.entry(place.clone()).or_default();
        file.asked = file.asked.max(Some(asked));
        // The times of a folder are those of its entries.
        if asked == Asked::Status && way.end.is_dir() {
            self.usage.listed.insert(place);
        }
    }

    /// Files that the framework looks for in the folders above a test can change the test; elsewhere they cannot.
    pub(super) fn telling(&mut self, path: &str) {
        let folder = Utf8Path::new(path).parent().map_or("", Utf8Path::as_str);
        let folder = self.places.folder(folder).end;
        let test = self.ground.test.map(|test| self.places.file(test.as_str()));
        if test.is_none_or(|test| test.end.starts_with(folder)) {
            self.looked_at(path, Asked::Presence);
        }
    }

    pub(super) fn listed(&mut self, path: &str) {
        let way = self.places.folder(path);
        self.links(&way);
        self.usage.listed.extend(way.place);
    }

    pub(super) fn only_code(&mut self, roots: &BTreeSet<String>) {
        let places = roots
            .iter()
            .filter_map(|root| self.places.folder(root).place);
        let places: BTreeSet<String> = places.collect();
        self.usage.only_code = (!roots.is_empty()).then_some(places);
    }

    pub(super) fn scanned(&mut self, path: &str) {
        let way = self.places.folder(path);
        self.usage.scanned.extend(way.place);
    }

    /// A path that goes through a link reads the link.
    pub(super) fn links(&mut self, way: &Way) {
        for link in &way.links {
            let file = self.usage.files.entry(link.clone()).or_default();
            file.is_read = true;
            // Nobody knows where it led at the base.
            if !self.ground.known.contains(link) && is_generated(self.ground, link) {
                self.usage.generated.insert(link.clone());
            }
        }
    }

    /// Adds the paths that the system saw and we did not.
    pub(super) fn opened(&mut self) {
        let Some(opened) = self.ground.opened else {
            return;
        };
        self.usage.is_kernel_watched = true;
        for path in opened {
            // Who imports a source is seen by the runner, down to the function.
            if !is_python(path) || !self.sources.contains(path) {
                let file = self.usage.files.entry(path.clone()).or_default();
                file.is_read = true;
            }
        }
    }

    pub(super) fn loaded(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.split('.').next().unwrap_or(name);
        let is_standard = path.contains("/lib-dynload/") || !path.contains('/');
        if is_standard && !OPENERS.contains(&name) {
            return;
        }
        let is_inside = !is_standard && self.places.file(path).place.is_some();
        let top = path
            .rsplit_once("/site-packages/")
            .map(|(_, tail)| tail.split(['/', '.']).next().unwrap_or(tail));
        let is_source_here = top.is_some_and(|top| {
            let homes = ["", "src", "python", "lib"];
            let mut homes = homes
                .iter()
                .map(|home| self.ground.root.join(home).join(top));
            homes.any(|folder| folder.is_dir())
        });
        let path = path.to_owned();
        let is_own = is_inside || is_source_here;
        self.usage.natives.insert(Native { path, is_own });
    }

    pub(super) fn sought<'f>(&mut self, leaf: &str, folders: impl IntoIterator<Item = &'f String>) {
        for folder in folders {
            let way = self.places.folder(folder);
            self.links(&way);
            if let Some(folder) = way.place {
                self.usage.sought.insert((folder, leaf.to_owned()));
            }
        }
    }
}
