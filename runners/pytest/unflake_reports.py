"""Turns pytest's reports of one test into the protocol's outcome. It decides nothing else."""

import re
from typing import Any, List

from unflake_channel import Message, clean
from unflake_failures import Failures

MESSAGE_LIMIT = 2000
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def split_attempts(reports: List[Any]) -> List[List[Any]]:
    """One list of reports per attempt: a plugin that reruns marks each but the last as `rerun`."""
    attempts: List[List[Any]] = [[]]
    for report in reports:
        attempts[-1].append(report)
        if report.outcome == "rerun":
            attempts.append([])
    return [attempt for attempt in attempts if attempt]


def is_plain_pass(reports: List[Any]) -> bool:
    """Whether a test ran, and nothing was out of the ordinary."""
    for report in reports:
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            return False
    return bool(reports)


def judge(reports: List[Any], failures: Failures) -> Message:
    """The outcome of one attempt in the protocol's words."""
    # pytest's subtests report under the name of their test; only their failures count for it.
    bad = [report for report in reports if report.outcome in ("failed", "rerun")]
    plain = [report for report in reports if not hasattr(report, "context")]
    expected = [report for report in plain if hasattr(report, "wasxfail")]
    skipped = [report for report in plain if report.outcome == "skipped"]
    if bad:
        around = all(report.when in ("setup", "teardown") for report in bad)
        outcome, telling = ("errored" if around else "failed"), bad
    elif expected:
        is_failure = any(report.outcome == "skipped" for report in expected)
        outcome = "xfailed" if is_failure else "xpassed"
        telling = []
    elif skipped:
        outcome, telling = "skipped", skipped
    else:
        outcome, telling = "passed", []
    message = next((short(report) for report in telling), "")
    text = clean("\n".join(report.longreprtext for report in bad))
    told = attempt(outcome, plain, message, text, written(bad[-1]) if bad else "")
    if bad:
        told["kind"], told["frames"] = failures.of(bad[0])
        told["parts"] = parts_of(bad)
    return told


def parts_of(reports: List[Any]) -> List[List[str]]:
    """Number and name of the subtests among reports; the number tells those of the same name apart."""
    names = [subtest_name(report.context) for report in reports if hasattr(report, "context")]
    return [[str(1 + names[:place].count(name)), name] for place, name in enumerate(names)]


def subtest_name(context: Any) -> str:
    """A subtest by its message and its values, as far as they are told apart without their addresses."""
    values = ", ".join(f"{key}={value!r}" for key, value in sorted(getattr(context, "kwargs", {}).items()))
    return clean(ADDRESS.sub("0x", f"{getattr(context, 'msg', None) or ''} ({values})"))


def attempt(outcome: str, reports: List[Any], message: str = "", text: str = "", output: str = "") -> Message:
    seconds = sum(getattr(report, "duration", 0.0) for report in reports)
    if not 0 <= seconds < 1e9:  # A patched clock can say anything, also NaN.
        seconds = 0.0
    return {"outcome": outcome, "seconds": seconds, "message": message, "text": text, "output": output}


def errored(message: str) -> Message:
    """An attempt that could not be made."""
    return attempt("errored", [], message, message)


def written(report: Any) -> str:
    """The output of the test, each stream cut by itself: one of them may be a gigabyte."""
    return "\n".join(f"--- {title} ---\n{clean(text)}" for title, text in report.sections)


def short(report: Any) -> str:
    """The error, or the reason for the skip, in a line."""
    if isinstance(report.longrepr, tuple):
        text = str(report.longrepr[2])
    else:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = str(crash.message) if crash is not None else report.longreprtext
    return clean(text.strip().split("\n", 1)[0][:MESSAGE_LIMIT])
