//! How runs end, in the words of other tools.

use crate::run::Ended;

/// What a verdict means; `None` if it is not known.
pub(super) fn parse_verdict(text: &[u8]) -> Option<Ended> {
    // The commonest ones without a copy.
    match text {
        b"passed" | b"pass" | b"PASS" | b"PASSED" => return Some(Ended::PASSED),
        b"failed" | b"fail" | b"FAIL" | b"FAILED" => return Some(Ended::FAILED),
        _ => {}
    }
    let word = std::str::from_utf8(text).ok()?.trim().to_ascii_lowercase();
    let number = match word.as_str() {
        "passed" | "pass" | "ok" | "success" | "succeeded" | "successful" | "true" | "1" => 0,
        "failed" | "fail" | "failure" | "nok" | "not ok" | "ko" | "false" | "0" => 1,
        "error" | "errored" | "broken" => 2,
        "skipped" | "skip" | "ignored" | "disabled" | "pending" => 3,
        "xfailed" | "xfail" => 4,
        "xpassed" | "xpass" => 5,
        "not-run" | "notrun" | "not run" | "aborted" | "cancelled" | "canceled" => 6,
        "timeout" | "timed out" | "timedout" | "time-out" => 7,
        "crashed" | "crash" => 8,
        _ => return None,
    };
    Ended::from_number(number)
}
