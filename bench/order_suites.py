"""Suites of tests with a planted truth about order, made from a seed.

Each suite has fillers, tests that look order-dependent and are not, and a few plants. A plant is one piece
of state and the tests that change, mend and read it, spread over the files of the suite.
"""

# ruff: noqa: E501 - the table of kinds has long lines

import random
import re
from pathlib import Path
from typing import Dict, FrozenSet, List, NamedTuple, Tuple

HEAD = """\
import contextlib, importlib, locale, logging, os, pathlib, signal, socket, subprocess, sys, tempfile, textwrap, threading, time, warnings
from unittest import mock
import pytest
from shop import *
ROOT = pathlib.Path(__file__).parent
"""

# kind | module | pollute | is it clean? | clean | state. `$` is a number of its own; a kind in capitals comes once in a suite.
KINDS = r"""
global           | VALUE = 1\ndef change():\n    global VALUE\n    VALUE = 2 | state_$.change()             | state_$.VALUE == 1             | state_$.VALUE = 1            | shop.state_$.VALUE
class item       | class Cart:\n    limits = {'tea': 1}                      | state_$.Cart.limits['tea'] = 2 | state_$.Cart.limits['tea'] == 1 | state_$.Cart.limits['tea'] = 1 | shop.state_$.Cart.limits['tea']
class attribute  | class Shop:\n    name = 'a'                               | state_$.Shop.name = 'b'      | state_$.Shop.name == 'a'       | state_$.Shop.name = 'a'      | shop.state_$.Shop.name
object           | class Desk:\n    open = False\nDESK = Desk()\nDESK.open = False | state_$.DESK.open = True | not state_$.DESK.open          | state_$.DESK.open = False    | shop.state_$.DESK.open
list             | ITEMS = []                                                | state_$.ITEMS.append(1)      | state_$.ITEMS == []            | state_$.ITEMS.clear()        | shop.state_$.ITEMS
replaced         | def rate():\n    return 1                                 | mock.patch.object(state_$, 'rate', return_value=2).start() | state_$.rate() == 1 | | shop.state_$.rate
OTHER MODULE     |                                                           | mock.patch('textwrap.dedent', return_value='x').start() | textwrap.dedent(' a') == 'a' | | textwrap.dedent
context variable | import contextvars\nVAR = contextvars.ContextVar('var_$', default=1) | state_$.VAR.set(2)  | state_$.VAR.get() == 1         | state_$.VAR.set(1)           | var_$
environment      |                                                           | os.environ['SHOP_$'] = '1'   | 'SHOP_$' not in os.environ     | os.environ.pop('SHOP_$', None) | os.environ['SHOP_$']
FOLDER           |                                                           | os.chdir(ROOT / 'data')      | os.path.exists('pytest.ini')   | os.chdir(ROOT)               | cwd
SEARCH PATH      |                                                           | sys.path.append('/nowhere/$') | '/nowhere/$' not in sys.path  | sys.path[:] = [entry for entry in sys.path if entry != '/nowhere/$'] | sys.path
module           |                                                           | importlib.import_module('late_$') | 'late_$' not in sys.modules | sys.modules.pop('late_$', None) | sys.modules['late_$']
file created     |                                                           | (ROOT / 'made_$.txt').write_text('x') | not (ROOT / 'made_$.txt').exists() | (ROOT / 'made_$.txt').unlink(missing_ok=True) | made_$.txt
file changed     |                                                           | (ROOT / 'data/kept_$.txt').write_text('two') | (ROOT / 'data/kept_$.txt').read_text() == 'one' | (ROOT / 'data/kept_$.txt').write_text('one') | data/kept_$.txt
file deleted     |                                                           | (ROOT / 'data/gone_$.txt').unlink(missing_ok=True) | (ROOT / 'data/gone_$.txt').exists() | (ROOT / 'data/gone_$.txt').write_text('one') | data/gone_$.txt
temporary file   |                                                           | pathlib.Path(tempfile.gettempdir(), 'shop-$').touch() | not pathlib.Path(tempfile.gettempdir(), 'shop-$').exists() | pathlib.Path(tempfile.gettempdir(), 'shop-$').unlink(missing_ok=True) | shop-$
REPOSITORY       |                                                           | subprocess.run(['git', 'config', 'shop.key$', '1'], cwd=ROOT, check=True) | subprocess.run(['git', 'config', 'shop.key$'], cwd=ROOT).returncode | | .git/config
descriptor       | import os\ndef is_open():\n    return os.path.exists('/proc/self/fd/1$')\ndef leak():\n    with open(os.devnull) as null:\n        os.dup2(null.fileno(), 1$) | state_$.leak() | not state_$.is_open() | os.closerange(1$, 1$ + 1) | descriptor 1$
PORT             | import socket\nwith socket.socket() as probe:\n    probe.bind(('127.0.0.1', 0))\n    PORT = probe.getsockname()[1]\ndef bind():\n    server = socket.socket()\n    try:\n        server.bind(('127.0.0.1', PORT))\n    except OSError:\n        return None\n    return server | server = state_$.bind(); server and (server.listen(), server.detach()) | state_$.bind() | | 127.0.0.1:
thread           |                                                           | threading.Thread(target=threading.Event().wait, name='worker-$', daemon=True).start() | 'worker-$' not in [thread.name for thread in threading.enumerate()] | | worker-$
PROCESS          | import os, subprocess, sys\nPIPE, HELD = os.pipe()\ndef has_child():\n    try:\n        os.waitpid(-1, os.WNOHANG)\n    except ChildProcessError:\n        return False\n    return True | subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=state_$.PIPE) | not state_$.has_child() | | sys.stdin.read()
RANDOM           | import random\nrandom.seed(7)\ndef throw():\n    return random.randrange(1000) | state_$.throw()            | state_$.throw() == 331         |                              | random
generator        | import random\nDICE = random.Random(7)                    | state_$.DICE.random()        | state_$.DICE.randrange(1000) == 331 |                         | shop.state_$.DICE
LOCALE           |                                                           | locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8') | locale.setlocale(locale.LC_NUMERIC) == 'C' | locale.setlocale(locale.LC_NUMERIC, 'C') | locale
TIME ZONE        |                                                           | os.environ['TZ'] = 'SHOP-5'; time.tzset(); del os.environ['TZ'] | time.tzname[0] != 'SHOP' | time.tzset() | time zone
logging handler  |                                                           | logging.getLogger('shop$').addHandler(logging.NullHandler()) | not logging.getLogger('shop$').handlers | logging.getLogger('shop$').handlers.clear() | logging.getLogger('shop$').handlers
logging level    |                                                           | logging.getLogger('mail$').setLevel(50) | logging.getLogger('mail$').isEnabledFor(30) | logging.getLogger('mail$').setLevel(0) | logging.getLogger('mail$').level
WARNINGS         |                                                           | warnings.filterwarnings('ignore', message='shop$') | not any('shop$' in str(entry) for entry in warnings.filters) | warnings.filters[:] = [entry for entry in warnings.filters if 'shop$' not in str(entry)] | warnings.filters
SIGNAL           |                                                           | signal.signal(signal.SIGUSR1, lambda number, frame: None) | signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL | signal.signal(signal.SIGUSR1, signal.SIG_DFL) | SIGUSR1
cache            | import functools\n@functools.lru_cache(maxsize=None)\ndef load():\n    return 1 | state_$.load()         | state_$.load.cache_info().currsize == 0 | state_$.load.cache_clear() | shop.state_$.load
iterator         | NUMBERS = iter([1, 2, 3])                                 | next(state_$.NUMBERS)        | next(state_$.NUMBERS, None) == 1 |                            | shop.state_$.NUMBERS
session fixture  |                                                           | stock_$.append(1)            | stock_$ == []                  | stock_$.clear()              | stock_$
"""

# The work of two tests, the moment at which the state is spoilt, and the pieces one of which must be named.
PAIRS = [
    ("PARTS = set()", "state_$.PARTS.add('a')", "state_$.PARTS.add('b')", "state_$.PARTS == {'a', 'b'}", ["state_$.PARTS"]),
    ("", "os.environ['A_$'] = '1'", "os.environ['B_$'] = '1'", "'A_$' in os.environ and 'B_$' in os.environ", ["os.environ['A_$']", "os.environ['B_$']"]),
    ("", "(ROOT / 'a_$.txt').touch()", "(ROOT / 'b_$.txt').touch()", "(ROOT / 'a_$.txt').exists() and (ROOT / 'b_$.txt').exists()", ["a_$.txt", "b_$.txt"]),
]
STEPS = ("STEPS = []", "state_$.STEPS.append('a')", "state_$.STEPS.append('b')", "state_$.STEPS == ['a', 'b']", ["state_$.STEPS"])
SHAPES = {"victim": 40, "brittle": 18, "alternatives": 10, "cleaner": 10, "pair": 7, "ordered": 6, "brittle alternatives": 5, "brittle pair": 4}

BROKEN = "def test_broken_$():\n    assert 1 + 1 == 3\n"
CHANCE = """\
def test_chance_$():
    import hashlib
    path = pathlib.Path(os.environ["UNFLAKE_TEST_FOLDER"], "chance-$")
    number = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(number))
    assert hashlib.sha256(b"%d" % number).digest()[0] < 128
"""
SKIPPED = "@pytest.mark.skip\ndef test_skipped_$():\n    raise AssertionError\n"
LATENT = "def test_latent_$():\n    os.environ['NOBODY_READS_$'] = '1'\n    LATENT.append(1)\nLATENT = []\n"
SLOW = "def test_slow_$():\n    assert sum(number * number for number in range(500_000))\n"


class Truth(NamedTuple):
    """The planted truth about one test."""

    kind: str
    shape: str
    role: str
    culprits: FrozenSet[FrozenSet[str]]
    is_ordered: bool
    cleaners: FrozenSet[str]
    state: List[str]


class Suite(NamedTuple):
    """The files of a suite, by path, and the truth, by test."""

    name: str
    tests: int
    files: Dict[str, str]
    truth: Dict[str, Truth]


class Maker:
    """Collects the tests of one suite, and then spreads them over files."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(f"order {number}")
        self.tests: List[Tuple[str, str]] = []
        self.files = {"pytest.ini": "[pytest]\naddopts = -p no:warnings\n", "shop/__init__.py": "", "data/keep.txt": ""}
        self.modules: List[str] = []
        self.fixtures: List[str] = []
        self.plants: List[Tuple[str, str, str, List[List[str]], List[str], List[str]]] = []

    def add(self, name: str, body: str, argument: str = "") -> str:
        self.tests.append((name, f"def {name}({argument}):\n    {body}\n"))
        return name

    def module(self, number: int, text: str) -> None:
        if text:
            self.files[f"shop/state_{number}.py"] = text.replace("\\n", "\n") + "\n"
            self.modules.append(f"state_{number}")

    def plant(self, number: int, kind: List[str], shape: str) -> None:
        if shape in ("pair", "ordered", "brittle pair"):
            self.plant_two(number, shape)
            return
        kind = [cell.replace("$", str(number)) if place else cell for place, cell in enumerate(kind)]
        name, module, pollute, is_clean, clean, state = kind
        self.module(number, module)
        argument = f"stock_{number}" if name == "session fixture" else ""
        if argument:
            self.fixtures.append(f'@pytest.fixture(scope="session")\ndef {argument}():\n    return []\n')
        if name == "module":
            self.files[f"late_{number}.py"] = "PRICE = 3\n"
        self.files[f"data/{'kept' if name == 'file changed' else 'gone'}_{number}.txt"] = "one"
        by = [self.add(f"test_change_{number}", pollute, argument)]
        if "alternatives" in shape:
            by.append(self.add(f"test_also_changes_{number}", pollute, argument))
        cleaners = []
        if shape == "cleaner" and clean:
            cleaners.append(self.add(f"test_mend_{number}", clean, argument))
        sign = "not " if "brittle" in shape else ""
        reader = self.add(f"test_read_{number}", f"assert {sign}({is_clean})", argument)
        self.plants.append((reader, name.lower(), shape, [[test] for test in by], cleaners, [state]))

    def plant_two(self, number: int, shape: str) -> None:
        module, one, other, is_spoilt, state = STEPS if shape == "ordered" else self.random.choice(PAIRS)
        module, one, other, is_spoilt = (text.replace("$", str(number)) for text in (module, one, other, is_spoilt))
        self.module(number, module)
        by = [self.add(f"test_first_{number}", one), self.add(f"test_second_{number}", other)]
        sign = "" if "brittle" in shape else "not "
        reader = self.add(f"test_read_{number}", f"assert {sign}({is_spoilt})")
        pieces = [piece.replace("$", str(number)) for piece in state]
        self.plants.append((reader, "two tests", shape, [by], [], pieces))

    def finish(self, name: str, size: int) -> Suite:
        for number, text in enumerate([BROKEN, CHANCE, SKIPPED, LATENT, SLOW]):
            if self.random.random() < 0.4:
                test = text[text.index("test_") :].split("(")[0].replace("$", str(number))
                self.tests.append((test, text.replace("$", str(number))))
        while len(self.tests) < size:
            number = len(self.tests)
            self.add(f"test_filler_{number}", f"assert {number} + 1 == {number + 1}")
        self.random.shuffle(self.tests)
        count = max(1, min(30, size // self.random.randint(5, 20)))
        homes = [self.random.randrange(count) for _ in self.tests]
        ids = {}
        head = HEAD.replace("from shop import *\n", f"from shop import {', '.join(self.modules)}\n" if self.modules else "")
        for file in range(count):
            path = f"test_{file:02}.py"
            own = [test for test, home in zip(self.tests, homes) if home == file]
            self.files[path] = head + "".join(f"\n\n{text}" for _, text in own)
            ids.update({test: f"{path}::{test}" for test, _ in own})
        self.files["conftest.py"] = "import pytest\n" + "".join(f"\n\n{fixture}" for fixture in self.fixtures)
        truth = {}
        for reader, kind, shape, by, cleaners, state in self.plants:
            sets = frozenset(frozenset(ids[test] for test in group) for group in by)
            role = "brittle" if "brittle" in shape else "victim"
            menders = frozenset(ids[test] for test in cleaners)
            truth[ids[reader]] = Truth(kind, shape, role, sets, shape == "ordered", menders, state)
        return Suite(name, len(self.tests), self.files, truth)


def read_kinds() -> List[List[str]]:
    return [[cell.strip() for cell in re.split(r" \|(?= |$)", line)] for line in KINDS.strip().splitlines()]


def make_suites(count: int) -> List[Suite]:
    """This number of suites, always the same ones; every kind of state comes in turn."""
    chance, kinds, turn = random.Random("order suites"), read_kinds(), 0
    chance.shuffle(kinds)
    suites = []
    for number in range(count):
        size = round(10 * 30 ** chance.random())
        maker, plants = Maker(number), 1 + min(chance.randrange(6), size // 8)
        for _ in range(plants):
            shape = chance.choices(list(SHAPES), list(SHAPES.values()))[0]
            maker.plant(10 + turn % 890, kinds[turn % len(kinds)], shape)
            turn += 1
        suites.append(maker.finish(f"generated-{number:03}", size))
    return suites


def write_suite(suite: Suite, folder: Path) -> None:
    for path, text in suite.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
