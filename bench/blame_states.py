"""Kinds of state that planted changes leak from one test to another.

Each kind has the lines that pollute, an expression that is true while the state is polluted, and the line that
restores it. `@` stands for the module in which the state is declared, `$` for a noun that is drawn for each
plant, `#` for a number of its own. Most kinds are those that `unflake order` names in its users' guide.

The filters of `warnings` are not among them: pytest puts them back after each test.
"""

# ruff: noqa: E501 - the table of kinds has long lines

import random
import re
from typing import List, NamedTuple

WORDS = """
anchor basket beacon bridge bucket budget bundle button canvas carbon castle channel column corner courier
damper dealer depot drawer engine fabric feeder filter garden gasket gutter hammer harbor header hopper
kettle ladder lantern layout lever locker magnet margin market meadow mirror mortar nozzle office orchard
packet pallet parcel pebble pillar piston planet pocket powder pulley quarry radar ribbon rocket saddle
sample scale shelf signal socket spindle spring station stencil switch tablet ticket timber token tunnel
turbine valve vector vessel voucher wallet window
"""
NOUNS = WORDS.split()

# kind | imports | declaration | pollute | is polluted | restore
KINDS = r"""
global            |                  | _$ = None\n\n\ndef _keep_$(value):\n    global _$\n    _$ = value\n    return value | @_keep_$("#") | @_$ is not None | @_keep_$(None)
list              |                  | _$_seen = []                     | @_$_seen.append(#)               | @_$_seen                   | @_$_seen.clear()
dict              |                  | _$_registry = {}                 | @_$_registry["$"] = #            | "$" in @_$_registry        | @_$_registry.clear()
set               |                  | _$_names = set()                 | @_$_names.add("$#")              | @_$_names                  | @_$_names.clear()
class attribute   |                  | class _$Settings:\n    limit = 10\n    mode = "plain" | @_$Settings.limit = 0 | @_$Settings.limit == 0 | @_$Settings.limit = 10
class list        |                  | class _$Plugins:\n    known = [] | @_$Plugins.known.append("$")     | len(@_$Plugins.known) > 0  | @_$Plugins.known.clear()
object            |                  | class _$Desk:\n    def __init__(self):\n        self.open = False\n\n\n_$_desk = _$Desk() | @_$_desk.open = True | @_$_desk.open | @_$_desk.open = False
cache             | functools        | @functools.lru_cache(maxsize=None)\ndef _load_$():\n    return object() | @_load_$() | @_load_$.cache_info().currsize > 0 | @_load_$.cache_clear()
mutable default   |                  | def _collect_$(item=None, into=[]):\n    if item is not None:\n        into.append(item)\n    return into | @_collect_$(#) | @_collect_$() | @_collect_$().clear()
iterator          | operator         | _$_pool = iter([1, 2, 3])        | next(@_$_pool, None)             | operator.length_hint(@_$_pool) < 3 |
generator         | random           | _$_dice = random.Random(#)       | @_$_dice.random()                | @_$_dice.getstate() != random.Random(#).getstate() | @_$_dice.seed(#)
context variable  | contextvars      | _$_var = contextvars.ContextVar("$", default=0) | @_$_var.set(#)    | @_$_var.get() != 0         | @_$_var.set(0)
environment       | os               |                                  | os.environ["$_MODE_#"] = "on"    | "$_MODE_#" in os.environ   | os.environ.pop("$_MODE_#", None)
folder            | os tempfile      |                                  | os.chdir(tempfile.gettempdir())  | os.path.realpath(os.getcwd()) == os.path.realpath(tempfile.gettempdir()) |
search path       | sys              |                                  | sys.path.append("/opt/$-#")      | "/opt/$-#" in sys.path     | sys.path.remove("/opt/$-#")
modules           | sys types        |                                  | sys.modules["$_plugin_#"] = types.ModuleType("$_plugin_#") | "$_plugin_#" in sys.modules | sys.modules.pop("$_plugin_#", None)
replaced function | string           |                                  | string.capwords = lambda text, sep=None: text | string.capwords("a b") == "a b" |
replaced method   | colorsys         |                                  | colorsys.rgb_to_hsv = lambda *args: (0, 0, 0) | colorsys.rgb_to_hsv(1, 0, 0)[2] == 0 |
logging level     | logging          |                                  | logging.getLogger("$").setLevel(logging.CRITICAL) | not logging.getLogger("$").isEnabledFor(logging.ERROR) | logging.getLogger("$").setLevel(logging.NOTSET)
logging handler   | logging          |                                  | logging.getLogger("$").addHandler(logging.NullHandler()) | logging.getLogger("$").handlers | logging.getLogger("$").handlers.clear()
random seed       | random           |                                  | random.seed(#)                   | random.getstate() == random.Random(#).getstate() | random.seed()
file in the tree  | os               | _$_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "$.cache") | open(@_$_PATH, "w").close() | os.path.exists(@_$_PATH) | os.path.exists(@_$_PATH) and os.remove(@_$_PATH)
file in tmp       | os tempfile      |                                  | open(os.path.join(tempfile.gettempdir(), "$-#.lock"), "w").close() | os.path.exists(os.path.join(tempfile.gettempdir(), "$-#.lock")) | os.path.exists(os.path.join(tempfile.gettempdir(), "$-#.lock")) and os.remove(os.path.join(tempfile.gettempdir(), "$-#.lock"))
descriptor        | os               | _$_open = []                     | @_$_open.append(os.open(os.devnull, os.O_RDONLY)) | @_$_open and os.path.exists(f"/proc/self/fd/{@_$_open[-1]}") | @_$_open and os.close(@_$_open.pop())
port              | socket           | _$_servers = []\n\n\ndef _serve_$():\n    server = socket.socket()\n    server.bind(("127.0.0.1", 0))\n    server.listen()\n    _$_servers.append(server)\n\n\ndef _is_served_$():\n    for server in _$_servers:\n        with socket.socket() as probe:\n            return probe.connect_ex(server.getsockname()) == 0\n    return False | @_serve_$() | @_is_served_$() | [server.close() for server in @_$_servers] and @_$_servers.clear()
thread            | threading        |                                  | threading.Thread(target=threading.Event().wait, name="$-#", daemon=True).start() | "$-#" in [thread.name for thread in threading.enumerate()] |
child process     | subprocess sys   | _$_workers = []                  | @_$_workers.append(subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)) | any(worker.poll() is None for worker in @_$_workers) | [worker.communicate() for worker in @_$_workers]
locale            | locale           |                                  | locale.setlocale(locale.LC_NUMERIC, "C.UTF-8") | locale.setlocale(locale.LC_NUMERIC) == "C.UTF-8" | locale.setlocale(locale.LC_NUMERIC, "C")
time zone         | os time          |                                  | os.environ["TZ"] = "XYZ-5"; time.tzset() | time.tzname[0] == "XYZ" | os.environ.pop("TZ", None); time.tzset()
signal handler    | signal           |                                  | signal.signal(signal.SIGUSR2, lambda number, frame: None) | signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL | signal.signal(signal.SIGUSR2, signal.SIG_DFL)
decimal context   | decimal          |                                  | decimal.getcontext().prec = 5    | decimal.getcontext().prec == 5 | decimal.getcontext().prec = 28
socket timeout    | socket           |                                  | socket.setdefaulttimeout(#)      | socket.getdefaulttimeout() == # | socket.setdefaulttimeout(None)
garbage collector | gc               |                                  | gc.set_threshold(#, 10, 10)      | gc.get_threshold()[0] == # | gc.set_threshold(700, 10, 10)
mime types        | mimetypes        |                                  | mimetypes.add_type("application/x-$", ".$#") | mimetypes.guess_type("a.$#")[0] is not None |
dialects          | csv              |                                  | csv.register_dialect("$", delimiter=";") | "$" in csv.list_dialects() | csv.unregister_dialect("$")
"""


class State(NamedTuple):
    """One piece of state, with its names filled in; `@` is left for the place where it is used."""

    kind: str
    imports: List[str]
    declare: str
    pollute: str
    is_polluted: str
    restore: str


def read_kinds() -> List[State]:
    rows = []
    for line in KINDS.strip().splitlines():
        kind, imports, *rest = [cell.strip() for cell in re.split(r" \|(?= |$)", line)]
        rows.append(State(kind, imports.split(), *rest))
    return rows


def draw_state(chance: random.Random, kinds: List[State]) -> State:
    """A kind of state with a noun and a number of its own."""
    state, noun, number = chance.choice(kinds), chance.choice(NOUNS), str(chance.randrange(1000, 9999))

    def fill(text: str) -> str:
        text = re.sub(r"\$(?=[A-Z]\w)", noun.capitalize(), text)
        text = re.sub(r"\$(?=_[A-Z])", noun.upper(), text)
        return text.replace("$", noun).replace("#", number).replace("\\n", "\n")

    return State(state.kind, state.imports, *(fill(text) for text in state[2:]))
