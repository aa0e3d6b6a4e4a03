"""The name of a function, and its kind: whether and how the outside world can change its result.

The numbers of the kinds are those of `docs/trace-format.md`.
"""

import functools
import types
from typing import Any, Tuple

from unflake_state_values import (
    ABSENT,
    class_dict,
    class_mro,
    class_name,
    instance_dict,
    is_code,
    module_dict,
    module_of,
    name_of,
)

PLAIN, TIME, RANDOMNESS, NETWORK, IO, UNORDERED, START, WAIT, LOCK, LEFTOVER = range(10)

# By their full names; a dot at the end stands for all that is in it. The longest that fits is right.
KINDS = {
    **dict.fromkeys(("time.", "datetime.datetime.now", "datetime.datetime.utcnow"), TIME),
    **dict.fromkeys(("datetime.datetime.today", "datetime.date.today"), TIME),
    "time.sleep": WAIT,
    **dict.fromkeys(("random.", "secrets.", "numpy.random.", "_random."), RANDOMNESS),
    **dict.fromkeys(("os.urandom", "posix.urandom", "uuid.uuid1", "uuid.uuid4"), RANDOMNESS),
    # They set the generator, and draw nothing.
    **dict.fromkeys(("random.Random.seed", "random.Random.setstate"), PLAIN),
    **dict.fromkeys(("socket.", "_socket.", "ssl.", "http.client.", "urllib.request."), NETWORK),
    **dict.fromkeys(("requests.", "httpx.", "aiohttp.", "urllib3.", "socketserver."), NETWORK),
    **dict.fromkeys(("smtplib.", "ftplib.", "imaplib.", "poplib.", "xmlrpc.client."), NETWORK),
    "asyncio.streams.": NETWORK,
    # Libraries whose calls of clocks and generators are not seen: only what they return is.
    **dict.fromkeys(("faker.", "mimesis.", "shortuuid.", "nanoid.", "factory.fuzzy."), RANDOMNESS),
    "email.utils.make_msgid": RANDOMNESS,
    **dict.fromkeys(("arrow.api.now", "arrow.api.utcnow", "arrow.arrow.Arrow.now"), TIME),
    **dict.fromkeys(("arrow.arrow.Arrow.utcnow", "pendulum.now", "pendulum.today"), TIME),
    **dict.fromkeys(("django.utils.timezone.now", "django.utils.timezone.localtime"), TIME),
    **dict.fromkeys(("email.utils.formatdate", "email.utils.localtime"), TIME),
    "asyncio.base_events.BaseEventLoop.time": TIME,
    **dict.fromkeys(("redis.", "pymongo.", "psycopg2.", "psycopg.", "asyncpg.", "pymysql."), NETWORK),
    "botocore.": NETWORK,
    **dict.fromkeys(("grpc.", "websockets.", "websocket.", "paramiko.", "kafka.", "pika."), NETWORK),
    **dict.fromkeys(("io.", "_io.", "glob.", "shutil.", "tempfile.", "pathlib.", "os.path.get"), IO),
    **dict.fromkeys(("genericpath.", "sqlite3.", "_sqlite3."), IO),
    # A path's parts are in its name; the disk is not asked.
    **dict.fromkeys(("pathlib.PurePath", "pathlib.Path.with_", "pathlib.Path.join"), PLAIN),
    **{
        f"{module}.{name}": IO
        for module in ("os", "posix")
        for name in ("listdir", "scandir", "walk", "stat", "lstat", "open", "read", "write", "remove")
    },
    **{f"{module}.{name}": IO for module in ("os", "posix") for name in ("unlink", "rename", "mkdir")},
    **dict.fromkeys(("builtins.set.pop", "builtins.set.__iter__", "builtins.frozenset.__iter__"), UNORDERED),
    # Hashes of texts follow the hash seed, and those of plain objects their addresses.
    **dict.fromkeys(("builtins.hash", "builtins.id", "builtins.object.__hash__"), UNORDERED),
    **dict.fromkeys(("threading.Thread.start", "_thread.start_new_thread"), START),
    **dict.fromkeys(("asyncio.tasks.create_task", "asyncio.tasks.ensure_future"), START),
    **dict.fromkeys(("concurrent.futures.thread.ThreadPoolExecutor.submit", "subprocess.Popen"), START),
    **dict.fromkeys(("multiprocessing.process.BaseProcess.start", "subprocess.run"), START),
    **dict.fromkeys(("threading.Thread.join", "threading.Event.wait", "threading.Condition.wait"), WAIT),
    **dict.fromkeys(("queue.Queue.get", "_queue.SimpleQueue.get", "asyncio.tasks.sleep"), WAIT),
    **dict.fromkeys(("selectors.", "asyncio.locks.Event.wait", "asyncio.queues.Queue.get"), WAIT),
    **dict.fromkeys(("concurrent.futures._base.Future.result", "asyncio.tasks.wait", "select."), WAIT),
    **dict.fromkeys(("subprocess.Popen.wait", "subprocess.Popen.communicate"), WAIT),
    **dict.fromkeys(("_thread.lock.", "_thread.RLock.", "threading.Condition.", "queue."), LOCK),
    **dict.fromkeys(("threading.Semaphore.", "threading.Barrier.", "threading.Event."), LOCK),
    **dict.fromkeys(("asyncio.locks.", "asyncio.queues.", "multiprocessing.synchronize."), LOCK),
}  # fmt: skip


def identify(function: Any) -> Tuple[str, str, Any]:
    """Module and name of what is called, and the object on which; nothing of the project's runs."""
    kind = type(function)
    if kind is types.FunctionType:
        return text(function.__module__), text(function.__qualname__), None
    if kind is types.MethodType:
        module, name, _ = identify(function.__func__)
        return module, name, function.__self__
    if kind is types.BuiltinFunctionType:
        owner, name = function.__self__, function.__name__
        if owner is None or type(owner) is types.ModuleType:
            return text(name_of(owner) if owner is not None else function.__module__), name, None
        if issubclass(type(owner), type):
            return module_of(owner), f"{class_name(owner)}.{name}", None
        return module_of(type(owner)), f"{class_name(type(owner))}.{name}", owner
    if issubclass(kind, type):
        return module_of(function), class_name(function), None
    if kind is types.MethodWrapperType:
        owner = function.__objclass__
        return module_of(owner), f"{class_name(owner)}.{function.__name__}", function.__self__
    return module_of(kind), f"{class_name(kind)}.__call__", function


def find_attribute(receiver: Any, name: str) -> Tuple[str, str]:
    """Module and name of what `receiver.name` is, without asking for it: that could run anything."""
    kind = type(receiver)
    if kind is types.ModuleType:
        found = module_dict(receiver).get(name, ABSENT)
        if found is ABSENT:
            return text(name_of(receiver)), name
        return identify(found)[:2]
    is_class = issubclass(kind, type)
    for one in (*(class_mro(receiver) if is_class else ()), *class_mro(kind)):
        found = class_dict(one).get(name, ABSENT)
        if found is not ABSENT:
            return name_member(receiver if is_class else kind, name, found)
    found = ABSENT if is_class else instance_dict(receiver).get(name, ABSENT)
    if found is not ABSENT and is_code(found):
        return identify(found)[:2]
    owner = receiver if is_class else kind
    return module_of(owner), f"{class_name(owner)}.{name}"


def name_member(owner: type, name: str, member: Any) -> Tuple[str, str]:
    """Module and name of something that a class has; what is written in C goes by that class."""
    if type(member) is staticmethod or type(member) is classmethod:
        member = member.__func__
    if type(member) is types.FunctionType:
        return text(member.__module__), text(member.__qualname__)
    if issubclass(type(member), type):
        return module_of(member), class_name(member)
    return module_of(owner), f"{class_name(owner)}.{name}"


def text(name: Any) -> str:
    return name if type(name) is str else "?"


@functools.lru_cache(maxsize=20_000)
def kind_of(name: str) -> int:
    """The kind of what has this full name."""
    known = KINDS.get(name)
    if known is not None:
        return known
    for end in range(len(name) - 1, 0, -1):
        known = KINDS.get(name[:end])
        # Only whole parts, unless a beginning is meant.
        if known is not None and (name[end - 1] == "." or name[:end] in BEGINNINGS):
            return known
    return PLAIN


BEGINNINGS = frozenset(
    ("pathlib.PurePath", "pathlib.Path.with_", "pathlib.Path.join", "os.path.get")
)  # fmt: skip
