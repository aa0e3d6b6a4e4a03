//! Which failures are forgiven, by flags and by `unflake.toml`.

use camino::Utf8Path;
use unflake_core::policy::{FlakyResult, NotKnownResult, Policy, PreExistingResult};

use super::bad_value;
use crate::config::{ConfigError, RunConfig};
use crate::flags::args::{FlakyArg, ForgiveArg, ResultArgs};

/// The policy of a run. A flag beats the file.
pub(super) fn read(
    typed: &ResultArgs,
    written: &RunConfig,
    path: &Utf8Path,
) -> Result<Policy, ConfigError> {
    Ok(Policy {
        flaky: read_flaky(typed.flaky, written.flaky.as_deref(), path)?,
        max_flaky: typed.max_flaky.or(written.max_flaky),
        not_known: read_not_known(typed.not_known, written.not_known.as_deref(), path)?,
        pre_existing: read_forgive(typed.forgive, written.forgive.as_deref(), path)?,
    })
}

fn read_flaky(
    typed: Option<FlakyArg>,
    written: Option<&str>,
    path: &Utf8Path,
) -> Result<FlakyResult, ConfigError> {
    match (typed, written) {
        (Some(FlakyArg::Pass), _) | (None, Some("pass") | None) => Ok(FlakyResult::Pass),
        (Some(FlakyArg::Fail), _) | (None, Some("fail")) => Ok(FlakyResult::Fail),
        (None, Some(_)) => Err(bad_value(path, "run.flaky", "is \"pass\" or \"fail\"")),
    }
}

fn read_not_known(
    typed: Option<FlakyArg>,
    written: Option<&str>,
    path: &Utf8Path,
) -> Result<NotKnownResult, ConfigError> {
    match (typed, written) {
        (Some(FlakyArg::Pass), _) | (None, Some("pass")) => Ok(NotKnownResult::Pass),
        (Some(FlakyArg::Fail), _) | (None, Some("fail") | None) => Ok(NotKnownResult::Fail),
        (None, Some(_)) => Err(bad_value(path, "run.not-known", "is \"pass\" or \"fail\"")),
    }
}

fn read_forgive(
    typed: Option<ForgiveArg>,
    written: Option<&str>,
    path: &Utf8Path,
) -> Result<PreExistingResult, ConfigError> {
    match (typed, written) {
        (Some(ForgiveArg::PreExisting), _) | (None, Some("pre-existing")) => {
            Ok(PreExistingResult::Pass)
        }
        (None, None) => Ok(PreExistingResult::Fail),
        (None, Some(_)) => Err(bad_value(path, "run.forgive", "is \"pre-existing\"")),
    }
}
