"""Follows a Python process that a watched test started, then makes way for the real sitecustomize."""

import contextlib
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if "UNFLAKE_USAGE" in os.environ:
    sys.path.insert(0, os.path.dirname(_here))
    import unflake_usage

    sys.path.remove(os.path.dirname(_here))
    unflake_usage.Usage(os.environ["UNFLAKE_USAGE"]).start()
if _here in sys.path:
    sys.path.remove(_here)
del sys.modules["sitecustomize"]
with contextlib.suppress(ImportError):
    import sitecustomize  # noqa: F401
