//! The frames of a failure as evidence of their own: what stands on its stack has run, whatever else was seen.

use super::{How, Touch, lines_in};
use crate::change::{Change, ChangeKind};
use crate::rules::Rules;
use crate::trial::Frame;

/// The changes that a failure went through by its own account. Where the functions of a changed file are known, only a
/// frame of one that changed counts.
pub fn on_stack(changes: &[Change], frames: &[Frame], rules: &Rules) -> Vec<Touch> {
    let is_there = |change: &&Change| match change.file.kind {
        ChangeKind::Added | ChangeKind::Modified => !rules.is_never(&change.file.path),
        ChangeKind::Deleted | ChangeKind::Submodule => false,
    };
    let mut found: Vec<Touch> = Vec::new();
    for change in changes.iter().filter(is_there) {
        let frames = frames
            .iter()
            .filter(|frame| is_in(frame, &change.file.path));
        for touch in frames.filter_map(|frame| touch(change, frame)) {
            if !found.contains(&touch) {
                found.push(touch);
            }
        }
    }
    found
}

fn touch(change: &Change, frame: &Frame) -> Option<Touch> {
    let Some(source) = &change.source else {
        return Some(Touch::whole(change, How::Ran));
    };
    let name = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let mut functions = source.functions.iter().filter(|one| one.is_changed);
    let function = functions.find(|one| name(&one.name) == name(&frame.function))?;
    Some(Touch {
        function: Some(function.name.clone()),
        lines: lines_in(change, function),
        ..Touch::whole(change, How::Ran)
    })
}

/// Whether a frame is in a file: Java names the source, and the package before the class.
fn is_in(frame: &Frame, path: &str) -> bool {
    let is_end = |tail: &str| {
        let head = path.strip_suffix(tail);
        head.is_some_and(|head| head.is_empty() || head.ends_with('/'))
    };
    if frame.file.is_empty() {
        return false;
    }
    if frame.file.contains('/') || !is_java(&frame.file) {
        return is_end(&frame.file) || frame.file.ends_with(&format!("/{path}"));
    }
    let mut parts = frame.function.rsplitn(3, '.').skip(2);
    let package = parts.next().unwrap_or_default().replace('.', "/");
    let slash = if package.is_empty() { "" } else { "/" };
    is_end(&format!("{package}{slash}{}", frame.file))
}

fn is_java(file: &str) -> bool {
    matches!(
        file.rsplit_once('.'),
        Some((_, "java" | "kt" | "groovy" | "scala"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ChangedFile, Function, Lines, Source};

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change {
            file: ChangedFile {
                path: path.to_owned(),
                kind,
                lines: vec![Lines { first: 2, last: 2 }],
            },
            source: None,
            folders: Vec::new(),
        }
    }

    fn frame(file: &str, function: &str) -> Frame {
        Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            text: String::new(),
        }
    }

    fn is_touched(change: &Change, frame: &Frame) -> bool {
        let changes = std::slice::from_ref(change);
        !on_stack(changes, std::slice::from_ref(frame), &Rules::default()).is_empty()
    }

    #[test]
    fn a_frame_is_told_by_its_package_or_by_its_path() {
        let java = change("a/src/main/java/shop/Cart.java", ChangeKind::Modified);
        assert!(is_touched(&java, &frame("Cart.java", "shop.Cart.total")));
        assert!(is_touched(
            &java,
            &frame("Cart.java", "shop.Cart$Item.total")
        ));
        assert!(!is_touched(&java, &frame("Cart.java", "other.Cart.total")));
        assert!(!is_touched(&java, &frame("Mug.java", "shop.Mug.total")));
        let python = change("src/shop/cart.py", ChangeKind::Added);
        assert!(is_touched(&python, &frame("shop/cart.py", "total")));
        assert!(is_touched(
            &python,
            &frame("/tree/src/shop/cart.py", "total")
        ));
        assert!(!is_touched(&python, &frame("op/cart.py", "total")));
        assert!(!is_touched(
            &change("cart.py", ChangeKind::Deleted),
            &frame("cart.py", "total")
        ));
    }

    #[test]
    fn of_functions_that_are_known_only_a_changed_one_counts() {
        let function = |name: &str, first: u32, is_changed: bool| Function {
            name: name.to_owned(),
            starts: vec![first],
            lines: Lines {
                first,
                last: first + 1,
            },
            is_changed,
        };
        let change = Change {
            source: Some(Source {
                is_changed: false,
                functions: vec![
                    function("Cart.total", 1, true),
                    function("Cart.name", 4, false),
                ],
            }),
            ..change("shop/cart.py", ChangeKind::Modified)
        };
        let changes = std::slice::from_ref(&change);
        let frames = [
            frame("shop/cart.py", "total"),
            frame("shop/cart.py", "name"),
        ];
        let found = on_stack(changes, &frames, &Rules::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].function.as_deref(), Some("Cart.total"));
        assert_eq!(found[0].lines, [Lines { first: 2, last: 2 }]);
    }
}
