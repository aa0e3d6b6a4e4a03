"""Follows a Python process that a watched test started, then makes way for the real sitecustomize."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if "UNFLAKE_USAGE" in os.environ:
    sys.path.insert(0, os.path.dirname(_here))
    import unflake_usage

    sys.path.remove(os.path.dirname(_here))
    unflake_usage.Usage(os.environ["UNFLAKE_USAGE"]).start()
if "UNFLAKE_TRACE" in os.environ and sys.version_info >= (3, 8):
    sys.path.insert(0, os.path.dirname(_here))
    import unflake_trace

    sys.path.remove(os.path.dirname(_here))
    unflake_trace.follow(os.environ["UNFLAKE_TRACE"])
if _here in sys.path:
    sys.path.remove(_here)
del sys.modules["sitecustomize"]
import sitecustomize  # noqa: E402, F401  If there is none, Python passes over that as it would without us.
