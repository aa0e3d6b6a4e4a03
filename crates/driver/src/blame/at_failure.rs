//! What a failing test of the suite had used when it failed, as far as the system saw it.

use unflake_core::intersect::Intersection;

use crate::lab::session::Session;
use crate::usage::lookout::Outlook;

impl Session {
    /// Opens the system's eye on the changes, while the first VM starts.
    pub(crate) fn look_out(&mut self) {
        let project = &self.wish.project;
        // A JVM runs what a build has made of the tree: nobody knows of what it was made.
        if let (Some(against), Some(_)) = (&self.wish.against, project.python()) {
            self.outlook = Outlook::begin(project.folder(), against);
        }
    }

    /// What was used of the changes when a suspect failed; `None` if nobody looked.
    pub(super) fn used_at_failure(&self, at: usize) -> Option<Intersection> {
        let lookout = self.outlook.there()?;
        let opened = self.suspects[at].opened.as_ref()?;
        let search_path = self.listed().search_path.as_ref()?;
        let difference = self.known_difference()?;
        Some(lookout.intersection(opened, &difference, search_path, &self.rules()))
    }
}
