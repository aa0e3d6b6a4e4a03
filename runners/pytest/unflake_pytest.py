"""unflake's guest inside a Python interpreter: the way in.

The driver starts the project's own interpreter with `-c`, puts the folder of this file on the search
path and calls `main`, so that a process which a test spawns finds no main file to import. It needs
the standard library and pytest only, on Python 3.8 or later.
"""

import os
import sys
from typing import Any

from unflake_channel import Channel, StackDump, clean

OLDEST_PYTEST = (6, 2)


def main() -> int:
    # Tests must not see these: what they start is no VM of unflake's.
    folder, vm = os.environ.pop("UNFLAKE_CHANNEL"), int(os.environ.pop("UNFLAKE_VM"))
    hide_hash_seed()
    channel = Channel(folder, vm)
    is_untouched = "random" not in sys.modules
    from unflake_chance import Chance

    chance = Chance(is_untouched)
    try:
        import pytest
    except ImportError as error:
        channel.say(say="unable", vm=vm, why="no-framework", detail=clean(str(error)))
        return 3
    if tuple(int(part) for part in pytest.__version__.split(".")[:2]) < OLDEST_PYTEST:
        channel.say(say="unable", vm=vm, why="old-framework", detail=pytest.__version__)
        return 3
    from unflake_forks import introduction
    from unflake_guest import Guest

    stacks = StackDump(folder)
    stacks.arm(vm)
    channel.say(say="hello", **introduction(vm, stacks))
    start = channel.hear()
    if start["watch"]:
        from unflake_usage import watch

        start["eye"] = watch(os.path.join(folder, f"{vm}.usage"))
    tracer: Any = None
    if start.get("trace"):
        from unflake_trace import Tracer

        tracer = Tracer(os.path.join(folder, f"{vm}.trace"), start["trace"])
        if start.get("delays"):
            from unflake_delays import Delays

            tracer = Delays(tracer, os.path.join(folder, f"{vm}.points"), start["delays"])
        tracer.start()
    set_path()
    sys.argv = [os.path.join(os.path.dirname(sys.executable), "pytest"), *start["args"]]
    return int(pytest.main(start["args"], plugins=[Guest(channel, stacks, chance, start, tracer)]))


def hide_hash_seed() -> None:
    """Gives tests, and what they start, the hash seed that the user has for them: often none."""
    of_user = os.environ.pop("UNFLAKE_HASH_SEED", None)
    if of_user is not None:
        os.environ.pop("PYTHONHASHSEED", None)
        if of_user:
            os.environ["PYTHONHASHSEED"] = of_user


def set_path() -> None:
    """Makes the search path that of the command `pytest`: its own folder stands first."""
    sys.path.remove(sys.argv[1])
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(sys.executable)
