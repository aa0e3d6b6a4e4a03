//! Copies of a repository's files: installed ones, and those in build folders.

/// Whether a file that a run used elsewhere can be a copy of a file of the repository: installed, or
/// put into a build folder.
pub fn is_copy(path: &str, copy: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/"];
    let mut tails = installed
        .iter()
        .filter_map(|folder| copy.rsplit_once(folder));
    if let Some((_, tail)) = tails.next() {
        return path == tail
            || path
                .strip_suffix(tail)
                .is_some_and(|head| head.ends_with('/'));
    }
    let path = path.strip_prefix("src/").unwrap_or(path);
    let ours = path.rsplit('/');
    let shared = ours
        .zip(copy.rsplit('/'))
        .take_while(|(one, other)| one == other);
    let count = shared.count();
    count >= 2 || count == path.split('/').count()
}
