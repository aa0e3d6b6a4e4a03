//! The content of files at a commit, as the commit holds it: line ends are not converted, and no
//! filter or textconv of the user's runs.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::process::Stdio;

use crate::git::repository::{GitError, Repository, Running};

/// The most paths that one git gets as arguments: far below the limit of any system.
const AT_ONCE: usize = 256;

/// The content of a file at a commit; `None` if there is no file of that path. The content of a
/// symbolic link is where it points.
pub fn text_at(
    repository: &Repository,
    commit: &str,
    path: &str,
) -> Result<Option<Vec<u8>>, GitError> {
    let mut texts = texts_at(repository, commit, &[path])?;
    Ok(texts.pop().flatten())
}

/// The contents of many files at a commit, in the order of `paths`, as [`text_at`] has them.
pub fn texts_at(
    repository: &Repository,
    commit: &str,
    paths: &[&str],
) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    // Names go to `ls-tree`, which takes any, and only hashes to `cat-file`, whose questions are
    // lines.
    let mut hashes = BTreeMap::new();
    for some in paths.chunks(AT_ONCE) {
        list(repository, commit, some, &mut hashes)?;
    }
    if hashes.is_empty() {
        return Ok(vec![None; paths.len()]);
    }
    let mut running = repository.start(&["cat-file", "--batch"], Stdio::piped())?;
    let hashes = paths.iter().map(|path| hashes.get(path.as_bytes()));
    let texts = hashes
        .map(|hash| hash.map(|hash| read_blob(&mut running, hash)).transpose())
        .collect();
    running.finish(texts)
}

/// Adds the hashes of those paths that are files.
fn list(
    repository: &Repository,
    commit: &str,
    paths: &[&str],
    hashes: &mut BTreeMap<Vec<u8>, String>,
) -> Result<(), GitError> {
    let mut arguments = vec!["ls-tree", "-z", "--full-tree", commit, "--"];
    arguments.extend(paths);
    let answer = repository.run(&arguments)?;
    for record in answer.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
        // `mode type hash<TAB>name`
        let tab = record.iter().position(|byte| *byte == b'\t');
        let (head, name) = record.split_at(tab.unwrap_or(record.len()));
        let head = String::from_utf8_lossy(head);
        let fields: Vec<&str> = head.split(' ').collect();
        match fields[..] {
            [_, "blob", hash] => {
                hashes.insert(name[1..].to_vec(), hash.to_owned());
            }
            [_, "tree" | "commit", _] => {}
            _ => {
                return Err(GitError::Answer {
                    command: "git ls-tree".to_owned(),
                    answer: head.into_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Asks for one object: the answer is `hash type size`, the content, and a line end.
fn read_blob(running: &mut Running, hash: &str) -> io::Result<Vec<u8>> {
    let stdin = running.stdin.as_mut();
    let stdin = stdin.expect("standard input is piped: `texts_at` asked for it");
    writeln!(stdin, "{hash}")?;
    let mut head = String::new();
    if running.stdout.read_line(&mut head)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = head.trim_end().rsplit_once(' ').map(|(_, size)| size);
    let Some(size) = size.and_then(|size| size.parse::<u64>().ok()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, head.trim_end()));
    };
    let mut content = Vec::new();
    running
        .stdout
        .by_ref()
        .take(size)
        .read_to_end(&mut content)?;
    running.stdout.skip_until(b'\n')?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::git::repository::scratch::Scratch;

    #[test]
    fn a_file_is_what_it_was_at_the_commit() {
        let scratch = Scratch::new();
        scratch.write("a b.py", "1\r\n\0\n2");
        scratch.write("empty", "");
        symlink("a b.py", scratch.root.join("link")).unwrap();
        let base = scratch.commit();
        scratch.write("a b.py", "later\n");
        let text = |path: &str| text_at(&scratch.repository(), &base, path).unwrap();
        assert_eq!(text("a b.py").unwrap(), b"1\r\n\0\n2");
        assert_eq!(text("empty").unwrap(), b"");
        assert_eq!(text("link").unwrap(), b"a b.py");
    }

    #[test]
    fn what_is_no_file_has_no_content() {
        let scratch = Scratch::new();
        scratch.write("folder/a", "1\n");
        let base = scratch.commit();
        scratch.write("new", "1\n");
        for path in ["new", "folder", "folder/a/b"] {
            let text = text_at(&scratch.repository(), &base, path).unwrap();
            assert_eq!(text, None, "{path}");
        }
    }

    #[test]
    fn many_files_come_in_the_order_asked_for() {
        let scratch = Scratch::new();
        let odd = ["new\nline", "q\"uote", "ü", "-dash", ":(top)", "*"];
        let plain = (0..600).map(|number| format!("folder/{number}"));
        let names: Vec<String> = plain.chain(odd.map(str::to_owned)).collect();
        for name in &names {
            scratch.write(name, format!("I am {name}").repeat(100));
        }
        let base = scratch.commit();
        let mut paths: Vec<&str> = names.iter().map(String::as_str).collect();
        paths.insert(3, "missing");
        let texts = texts_at(&scratch.repository(), &base, &paths).unwrap();
        assert_eq!(texts.len(), paths.len());
        for (path, text) in paths.iter().zip(texts) {
            let expected = format!("I am {path}").repeat(100).into_bytes();
            assert_eq!(text, (*path != "missing").then_some(expected));
        }
    }

    #[test]
    fn a_file_whose_content_is_lost_is_an_error() {
        let scratch = Scratch::new();
        scratch.write("a", "1\n");
        let base = scratch.commit();
        let hash = scratch.git(&["rev-parse", "HEAD:a"]);
        let (folder, file) = hash.split_at(2);
        let object = scratch.root.join(".git/objects").join(folder).join(file);
        std::fs::remove_file(object).unwrap();
        let error = text_at(&scratch.repository(), &base, "a").unwrap_err();
        let said = format!("{hash} missing");
        assert!(error.to_string().contains(&said), "{error}");
    }

    #[test]
    fn nothing_asked_is_nothing_answered() {
        let scratch = Scratch::new();
        let base = scratch.commit();
        assert!(
            texts_at(&scratch.repository(), &base, &[])
                .unwrap()
                .is_empty()
        );
    }
}
