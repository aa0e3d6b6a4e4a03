//! The classes that a JVM has loaded, by its own log. The runner reads it too, but only before it sends a message: a
//! test that ends its JVM, or never returns, sends none.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

/// The sources of the project's classes in a log, with the names of the classes, as far as they lie where their package
/// says.
pub(crate) fn sources_of_loaded(log: &str, roots: &BTreeSet<String>) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let of_folders = log.lines().filter_map(|line| {
        let (name, source) = line.split_once(" source: ")?;
        (source.starts_with("file:") && source.ends_with('/')).then_some(name.trim())
    });
    for name in of_folders {
        for root in roots {
            let file = source_below(Utf8Path::new(root), name);
            if file.is_file() {
                found.insert((file.into_string(), name.to_owned()));
            }
        }
    }
    found
}

fn source_below(root: &Utf8Path, class: &str) -> Utf8PathBuf {
    // A class that is made at run time has an address behind its name.
    let class = class.split(['/', '+']).next().unwrap_or(class);
    let outer = class.split('$').next().unwrap_or(class);
    root.join(format!("{}.java", outer.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn classes_of_folders_are_told_by_their_sources() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        fs::create_dir(folder.path().join("shop")).unwrap();
        fs::write(folder.path().join("shop/Cart.java"), "").unwrap();
        let log = "java.lang.Object source: shared objects file\n\
                   shop.Cart$Item source: file:/tree/target/classes/\n\
                   shop.Mug source: file:/tree/target/classes/\n\
                   shop.Cart source: file:/jars/cart.jar\n\
                   shop.Cart$$Lambda/0x00007f source: shop.Cart\n\
                   shop.Ca";
        let found = sources_of_loaded(log, &[root.clone()].into());
        let expected = (
            format!("{root}/shop/Cart.java"),
            "shop.Cart$Item".to_owned(),
        );
        assert_eq!(found, [expected].into());
    }
}
