//! What goes to standard output. Its reader may have seen enough, as in `unflake list | head -1`: that is no error.

use std::io::{self, Write};

use anyhow::Context;

/// Writes a result and the end of its line.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", text.trim_end()).and_then(|()| stdout.flush());
    unless_left(written.context("cannot write the result"))
}

/// The outcome of writing to standard output, where a reader that has left is no error.
pub(crate) fn unless_left(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| {
        let mut causes = error.chain();
        let has_left = causes.any(|cause| {
            let cause = cause.downcast_ref::<io::Error>();
            cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
        });
        if has_left { Ok(()) } else { Err(error) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_has_left_is_no_error() {
        let failed = |kind| Err(anyhow::Error::from(io::Error::from(kind)).context("cannot write"));
        assert!(unless_left(failed(io::ErrorKind::BrokenPipe)).is_ok());
        assert!(unless_left(failed(io::ErrorKind::StorageFull)).is_err());
        assert!(unless_left(Err(anyhow::anyhow!("Broken pipe"))).is_err());
    }
}
