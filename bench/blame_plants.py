"""Changes with a known culprit, planted into the suites of real projects.

A plan is what the base gets and what the change gets, as edits, with the truth about it. A *guilty* plan makes
tests fail with the change that do not fail without it, always or by chance, and lets them pass in some other
run. An *old flake* has all of that in the base, and a harmless change on top.

Every plan is drawn from a seed. Whether the failure shows is for the run to say: some plants do nothing.
"""

# ruff: noqa: E501 - templates of code have long lines

import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import blame_edits as edits
from blame_projects import Project, Site, Survey, Test
from blame_states import NOUNS, State, draw_state, read_kinds
from blame_templates import ASK, COUNT, GUARDED, SHAPES, TRACKED, UNGUARDED

FEW, MANY, ODD = 8, 40, 10  # tests that a plant may fail; one plant of so many may fail more
RATES = [0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9]
ERRORS = ["ValueError", "RuntimeError", "LookupError", "TypeError", "ArithmeticError", "OSError"]


class Plan(NamedTuple):
    """What is planted, and the truth about it; `files` are those that show it, empty for the whole suite."""

    family: str
    kind: str
    base: List[edits.Edit]
    change: List[edits.Edit]
    victims: List[str]
    polluters: List[str]
    rate: float
    files: List[str]
    note: str


class Planter:
    """Draws plants for one project from one source of chance."""

    def __init__(self, project: Project, survey: Survey, chance: random.Random) -> None:
        self.project, self.survey, self.chance = project, survey, chance
        self.base: List[edits.Edit] = []
        self.change: List[edits.Edit] = []
        self.noun = chance.choice(NOUNS)

    # Places ---------------------------------------------------------------------------------------------

    def need(self, choices: List[Any]) -> Any:
        if not choices:
            raise edits.Unplantable(f"{self.project.name} has no place for it")
        return self.chance.choice(choices)

    def reader(self, most: int = 0) -> Site:
        """A function of the product that few tests call."""
        most = most or (MANY if self.chance.randrange(ODD) == 0 else FEW)
        return self.need([site for site in self.survey.sites if len(site.calls) <= most])

    def pair(self) -> Tuple[Site, Site]:
        """A function, and another that other tests call later."""
        reader = self.reader()
        last, own = max(reader.calls), set(reader.calls)
        writers = [one for one in self.survey.sites if min(one.calls) < last and not own & set(one.calls)]
        return self.need(writers), reader

    def test_before(self, reader: Site) -> int:
        """A test, with a function of its own, that runs before some test that calls the reader and does not call it."""
        last = max(reader.calls)
        tests = [place for place, test in enumerate(self.survey.tests[:last]) if test.name and place not in reader.calls]
        return self.need(tests)

    def ids(self, places: List[int]) -> List[str]:
        return [self.survey.tests[place].id for place in places]

    def files(self, places: List[int]) -> List[str]:
        """Files of these tests in the suite's order, with all that run before them if they are quick."""
        order = list(dict.fromkeys(test.file for test in self.survey.tests))
        wanted = {self.survey.tests[place].file for place in places}
        prefix = order[: max(order.index(file) for file in wanted) + 1]
        seconds = sum(test.seconds for test in self.survey.tests if test.file in prefix)
        return prefix if seconds < 1.5 and self.chance.random() < 0.5 else [file for file in order if file in wanted]

    def family_of(self, place: int) -> List[int]:
        """All tests of the same function: a parametrised one has several."""
        test = self.survey.tests[place]
        return [at for at, one in enumerate(self.survey.tests) if (one.file, one.name) == (test.file, test.name)]

    # Pieces ---------------------------------------------------------------------------------------------

    def imports(self, file: str, modules: List[str], stage: List[edits.Edit]) -> List[str]:
        """Import lines for a function; now and then the imports stand at the top of the file instead."""
        lines = [f"import {module}" for module in modules]
        if lines and self.chance.random() < 0.3 and "test" not in Path(file).name:
            stage.append(edits.declare(file, "\n".join(f"import {module} as _{module}" for module in modules)))
            return [f"{module} = _{module}" for module in modules]
        return lines

    def home(self, state: State, home: str, file: str) -> Tuple[List[str], str]:
        """How a file reaches the state's module: lines to put first, and what `@` is."""
        if not state.declare or home == file:
            return [], ""
        return [f"import {self.project.module(home)} as _home"], "_home."

    def use(self, state: State, home: str, file: str, text: str, stage: List[edits.Edit]) -> Tuple[List[str], str]:
        lines, prefix = self.home(state, home, file)
        return [*self.imports(file, state.imports, stage), *lines], text.replace("@", prefix)

    def fail(self, site: Site, condition: str, before: List[str], is_by_chance: bool = False) -> edits.Edit:
        """The function goes wrong where the condition holds."""
        style = self.chance.choice(["raise", "raise", "return", "mutate"])
        # Of several calls a test may bear some wrong results, and then it fails less often than is written down.
        style = "raise" if is_by_chance and max(site.calls.values()) > 1 else style
        if style == "mutate":
            mutation, entry = edits.mutate(site.file, site.name, condition, self.chance), edits.enter(site.file, site.name, before)

            def both(tree: Path) -> None:
                mutation(tree)
                if before:
                    entry(tree)

            return both
        error = f'raise {self.chance.choice(ERRORS)}("{self.noun} is not ready")'
        return edits.enter(site.file, site.name, [*before, f"if {condition}:", "    " + (error if style == "raise" else "return None")])

    def restorable(self) -> State:
        return draw_state(self.chance, [kind for kind in read_kinds() if kind.restore])

    def declare_state(self, state: State, home: str, stage: List[edits.Edit]) -> None:
        if state.declare:
            imports = "".join(f"import {module}\n" for module in state.imports)
            stage.append(edits.declare(home, f"{imports}\n\n{state.declare}\n"))

    def pollute(self, state: State, home: str, file: str, name: str, stage: List[edits.Edit]) -> None:
        lines, code = self.use(state, home, file, state.pollute, stage)
        stage.append(edits.enter(file, name, [*lines, code]))

    def read(self, state: State, home: str, site: Site, stage: List[edits.Edit]) -> None:
        lines, condition = self.use(state, home, site.file, state.is_polluted, stage)
        stage.append(self.fail(site, condition, lines))

    def new_test(self, name: str, state: State, home: str, code: str) -> str:
        """A test function that does something to the state."""
        lines = [f"import {module}" for module in state.imports]
        if state.declare:
            lines.append(f"import {self.project.module(home)} as _home")
        body = "".join(f"    {line}\n" for line in [*lines, code.replace("@", "_home.")])
        return f"def {name}():\n{body}"

    def plan(self, family: str, kind: str, victims: List[int], polluters: List[int], **more: Any) -> Plan:
        files = more.pop("files", None)
        files = self.files([*victims, *polluters]) if files is None else files
        rate, note = more.pop("rate", 1.0), more.pop("note", "")
        return Plan(family, kind, self.base, self.change, self.ids(victims), self.ids(polluters), rate, files, note)

    # Leaks ----------------------------------------------------------------------------------------------

    def split(self) -> Tuple[List[edits.Edit], List[edits.Edit], str]:
        """The places of polluter and reader: both in the change, or one of them was there before."""
        ways = [(self.change, self.change, "both"), (self.change, self.base, "polluter"), (self.base, self.change, "reader")]
        return self.chance.choices(ways, [5, 4, 3])[0]

    def leak(self) -> Plan:
        """A function of the product leaves state behind that another one cannot bear."""
        writer, reader = self.pair()
        state = draw_state(self.chance, read_kinds())
        pollutes, reads, note = self.split()
        home = self.chance.choice([writer.file, reader.file])
        self.declare_state(state, home, self.base if note != "both" else self.change)
        self.pollute(state, home, writer.file, writer.name, pollutes)
        self.read(state, home, reader, reads)
        begin = min(writer.calls)
        victims = [place for place in reader.tests if place > begin]
        polluter = self.chance.choice([place for place in writer.tests if place < max(victims)])
        return self.plan("leak", state.kind, victims, [polluter], note=note)

    def test_leak(self) -> Plan:
        """A test leaves state behind that the product, or another test, cannot bear."""
        reader = self.reader()
        polluter = self.test_before(reader)
        test = self.survey.tests[polluter]
        state = draw_state(self.chance, read_kinds())
        pollutes, reads, note = self.split()
        self.declare_state(state, reader.file, self.base if note != "both" else self.change)
        self.pollute(state, reader.file, test.file, test.name or "", pollutes)
        victims = [place for place in reader.tests if place > polluter]
        victim = self.chance.choice(victims)
        if self.chance.random() < 0.3 and self.survey.tests[victim].name:
            at = self.survey.tests[victim]
            lines, condition = self.use(state, reader.file, at.file, state.is_polluted, reads)
            reads.append(edits.enter(at.file, at.name or "", [*lines, f"assert not ({condition})"]))
            victims, note = [place for place in self.family_of(victim) if place > polluter], f"{note}, read by the test"
        else:
            self.read(state, reader.file, reader, reads)
        return self.plan("leak of a test", state.kind, victims, self.family_of(polluter), note=note)

    def new_polluter(self) -> Plan:
        """A new test, in a file of its own or before the victim, spoils an old one."""
        reader, state = self.reader(), draw_state(self.chance, read_kinds())
        stage = self.chance.choice([self.base, self.change])
        self.declare_state(state, reader.file, stage)
        self.read(state, reader.file, reader, stage)
        code = self.new_test(f"test_{self.noun}", state, reader.file, state.pollute)
        victim = self.survey.tests[self.chance.choice(reader.tests)]
        if self.chance.random() < 0.5:
            self.change.append(edits.write(first_file(self.survey, self.noun), code))
            return self.plan("new polluter", state.kind, reader.tests, [], files=[], note="new file")
        self.change.append(edits.declare(victim.file, code))
        order = list(dict.fromkeys(test.file for test in self.survey.tests))
        since = order.index(victim.file)
        victims = [place for place in reader.tests if order.index(self.survey.tests[place].file) >= since]
        return self.plan("new polluter", state.kind, victims, [], note="in the victim's file")

    def import_leak(self) -> Plan:
        """The import of a test file leaves state behind."""
        reader, state = self.reader(), draw_state(self.chance, read_kinds())
        own = {self.survey.tests[place].file for place in reader.tests}
        others = sorted({test.file for test in self.survey.tests if test.name} - own)
        file = self.need(others)
        stage = self.chance.choice([self.base, self.change])
        self.declare_state(state, reader.file, stage)
        self.read(state, reader.file, reader, stage)
        code = self.new_test(f"_set_up_{self.noun}", state, reader.file, state.pollute)
        self.change.append(edits.append(file, f"{code}\n\n_set_up_{self.noun}()"))
        order = list(dict.fromkeys(test.file for test in self.survey.tests))
        files = [one for one in order if one in {*own, file}]
        return self.plan("leak of an import", state.kind, reader.tests, [], files=files, note=file)

    # What is taken away ---------------------------------------------------------------------------------

    def no_restore(self) -> Plan:
        """State that a function or a test put back is not put back any more."""
        reader, state = self.reader(), self.restorable()
        if self.chance.random() < 0.5:
            writers = [one for one in self.survey.sites if min(one.calls) < max(reader.calls) and not set(reader.calls) & set(one.calls)]
            writer = self.need(writers)
            file, name, polluters = writer.file, writer.name, [min(writer.calls)]
        else:
            place = self.test_before(reader)
            file, name, polluters = self.survey.tests[place].file, self.survey.tests[place].name or "", self.family_of(place)
        self.declare_state(state, reader.file, self.base)
        lines, code = self.use(state, reader.file, file, state.pollute, self.base)
        restore = state.restore.replace("@", self.home(state, reader.file, file)[1])
        guarded = ["try:", f"    {code}", "finally:", f"    {restore}  # {self.noun}"]
        self.base.append(edits.enter(file, name, [*lines, *guarded]))
        self.read(state, reader.file, reader, self.base)
        self.change.append(edits.replace(file, f"{restore}  # {self.noun}", f"pass  # {self.noun}"))
        victims = [place for place in reader.tests if place > polluters[0]]
        return self.plan("restore removed", state.kind, victims, polluters)

    def error_path(self) -> Plan:
        """A function that raises leaves its mark behind, because `finally` became a plain line."""
        reader = self.reader()
        last, own = max(reader.calls), set(reader.calls)
        writers = [one for one in self.survey.sites if one.is_plain and one.raised and min(one.raised) < last and not own & set(one.calls)]
        writer = self.need(writers)
        noun = self.noun
        body = TRACKED.replace("$", noun)
        self.base.append(edits.declare(writer.file, body))
        self.base.append(edits.decorate(writer.file, writer.name, f"@_tracked_{noun}"))
        home = [] if reader.file == writer.file else [f"from {self.project.module(writer.file)} import _{noun}_active"]
        self.base.append(self.fail(reader, f"_{noun}_active", home))
        self.change.append(edits.replace(writer.file, GUARDED.replace("$", noun), UNGUARDED.replace("$", noun)))
        polluter = min(writer.raised)
        victims = [place for place in reader.tests if place > polluter]
        return self.plan("error path", "list", victims, [polluter])

    def moved(self) -> Plan:
        """A polluter that ran last runs first: moved within its file, or with its file."""
        state = draw_state(self.chance, read_kinds())
        by_file = self.chance.random() < 0.5
        reader = self.reader() if by_file else self.reader_of_one_file()
        self.declare_state(state, reader.file, self.base)
        self.read(state, reader.file, reader, self.base)
        code = self.new_test(f"test_{self.noun}", state, reader.file, state.pollute)
        if by_file:
            last = last_file(self.survey, self.noun)
            self.base.append(edits.write(last, code))
            self.change.append(edits.move(last, first_file(self.survey, self.noun)))
            return self.plan("moved", state.kind, reader.tests, [], files=[], note="file")
        file = self.survey.tests[reader.tests[0]].file
        self.base.append(edits.append(file, code))
        self.change += [edits.remove(file, f"\n\n\n{code}"), edits.declare(file, code)]
        return self.plan("moved", state.kind, reader.tests, [], note="test")

    def removed(self) -> Plan:
        """The test that cleaned up is removed, or skipped."""
        state, reader = self.restorable(), self.reader_of_one_file()
        self.declare_state(state, reader.file, self.base)
        self.read(state, reader.file, reader, self.base)
        file = self.survey.tests[reader.tests[0]].file
        pollute = self.new_test(f"test_{self.noun}", state, reader.file, state.pollute)
        clean = self.new_test(f"test_{self.noun}_again", state, reader.file, state.restore)
        self.base.append(edits.declare(file, f"{pollute}\n\n{clean}"))
        skip = self.chance.random() < 0.3
        head = f"import pytest as _pytest\n\n\n@_pytest.mark.skip(reason='slow')\n{clean}" if skip else ""
        self.change.append(edits.replace(file, clean, head))
        return self.plan("removed", state.kind, reader.tests, [], note="skipped" if skip else "deleted")

    def reader_of_one_file(self) -> Site:
        """A function that only tests of one file call, which has test functions of its own."""
        tests = self.survey.tests
        sites = [one for one in self.survey.sites if len(one.calls) <= FEW and len({tests[at].file for at in one.calls}) == 1]
        return self.need([one for one in sites if tests[one.tests[0]].name])

    def fixture(self, stage: Optional[List[edits.Edit]] = None) -> Plan:
        """A fixture of two tests gets a wider scope, and what one puts in the other finds."""
        tests = self.survey.tests
        plain = [place for place, test in enumerate(tests) if test.name and "." not in test.name]
        first = self.need(plain)
        later = [place for place in plain if tests[place].file == tests[first].file and place > first]
        second = self.need([place for place in later if tests[place].name != tests[first].name])
        file, noun, scope = tests[first].file, f"{self.noun}_box", self.chance.choice(["module", "session"])
        narrow, wide = (f"@pytest.fixture{words}\ndef {noun}():\n    return []" for words in ("", f'(scope="{scope}")'))
        self.base.append(edits.declare(file, f"import pytest\n\n\n{wide if stage is self.base else narrow}\n"))
        for place, line in ((first, f"{noun}.append({first})"), (second, f"assert {noun} == []")):
            name = tests[place].name or ""
            self.base += [edits.enter(file, name, [line]), edits.parameter(file, name, noun)]
        if stage is not self.base:
            self.change.append(edits.replace(file, narrow, wide))
        return self.plan("fixture widened", scope, self.family_of(second), self.family_of(first))

    # Chance ---------------------------------------------------------------------------------------------

    def per_call(self, site: Site, rate: float) -> float:
        """The chance of one call so that a test fails at this rate."""
        return 1 - (1 - rate) ** (1 / max(site.calls.values()))

    def seldom_called(self) -> Site:
        """A function that few tests call, all equally often."""
        return self.need([one for one in self.survey.sites if len(one.calls) <= 4 and len(set(one.calls.values())) == 1 and max(one.calls.values()) <= 6])

    def coin(self, stage: List[edits.Edit], rate: float) -> Plan:
        """A function of the product throws a coin, or reads a clock."""
        site = self.seldom_called()
        kinds = ["random", "random", "number", "clock"] if max(site.calls.values()) == 1 else ["random", "number"]
        kind, part = self.chance.choice(kinds), self.per_call(site, rate)
        if kind == "clock":
            # A clock that libraries which freeze time leave alone.
            modules, condition = ["time"], f"time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000 % 1000 < {part * 1000:.1f}"
        elif kind == "number":
            modules, condition = ["random"], f"random.randrange(10_000) < {part * 10_000:.0f}"
        else:
            modules, condition = ["random"], f"random.random() < {part:.4f}"
        stage.append(self.fail(site, condition, self.imports(site.file, modules, stage), is_by_chance=True))
        return self.plan("chance", kind, site.tests, [], rate=rate)

    def louder(self) -> Plan:
        """A test that failed now and then before fails often with the change."""
        site = self.seldom_called()
        low, high = (self.per_call(site, rate) for rate in (0.03, self.chance.choice([0.6, 0.8, 0.95])))
        line = f"if random.random() < {low:.4f}:  # {self.noun}"
        self.base.append(edits.enter(site.file, site.name, ["import random", line, f'    raise RuntimeError("{self.noun} is busy")']))
        self.change.append(edits.replace(site.file, f"{low:.4f}:  # {self.noun}", f"{high:.4f}:  # {self.noun}"))
        return self.plan("fails more", "random", site.tests, [], rate=1 - (1 - high) ** max(site.calls.values()))

    def wait(self, stage: Optional[List[edits.Edit]] = None) -> Plan:
        """A wait for a thread becomes as short as the thread's work."""
        site, noun, rate = self.seldom_called(), self.noun, self.chance.choice(RATES[2:])
        short = 0.03 * (1 - self.per_call(site, rate))
        lines = [
            "import random, threading",
            f"{noun}_done = threading.Event()",
            f"threading.Timer(random.uniform(0.0, 0.03), {noun}_done.set).start()",
            f"if not {noun}_done.wait({f'{short:.4f}' if stage is self.base else '5'}):",
            f'    raise TimeoutError("{noun} did not answer")',
        ]
        self.base.append(edits.enter(site.file, site.name, lines))
        if stage is not self.base:
            self.change.append(edits.replace(site.file, f"{noun}_done.wait(5)", f"{noun}_done.wait({short:.4f})"))
        return self.plan("shorter wait", "thread", site.tests, [], rate=rate)

    def retry(self) -> Plan:
        """Retries that hid a failing call are removed; the call asks chance, or a service outside."""
        site, rate = self.seldom_called(), self.chance.choice(RATES[2:5])
        part, kind = self.per_call(site, rate), self.chance.choice(["random", "service"])
        ask = f"random.random() < {part:.4f}" if kind == "random" else f"_ask_{self.noun}({part:.4f})"
        if kind == "service":
            self.base.append(edits.declare(site.file, ASK.replace("$", self.noun)))
        loop = f"for _{self.noun} in range(15):"
        lines = ["import random", loop, f"    if not {ask}:", "        break", "else:"]
        self.base.append(edits.enter(site.file, site.name, [*lines, f'    raise ConnectionError("{self.noun} is busy")']))
        self.change.append(edits.replace(site.file, loop, loop.replace("15", "1")))
        return self.plan("retry removed", kind, site.tests, [], rate=rate)

    def set_order(self, stage: Optional[List[edits.Edit]] = None) -> Plan:
        """A list becomes a set, and its first element is another one for each hash seed."""
        site, noun = self.seldom_called(), self.noun
        names = self.chance.sample(NOUNS, self.chance.choice([2, 3, 4]))
        ordered = f"{noun}_names = {names!r}"
        unordered = ordered.replace("[", "list({").replace("]", "})")
        lines = [unordered if stage is self.base else ordered, f"if {noun}_names[0] != {names[0]!r}:"]
        self.base.append(edits.enter(site.file, site.name, [*lines, f'    raise LookupError("{noun}: " + ", ".join({noun}_names))']))
        if stage is not self.base:
            self.change.append(edits.replace(site.file, ordered, unordered))
        return self.plan("set order", str(len(names)), site.tests, [], rate=1 - 1 / len(names))

    def set_parameters(self) -> Plan:
        """A plain bug in a test whose parameters come from a set: ids move with the hash seed."""
        site, noun = self.reader(), self.noun
        names = self.chance.sample(NOUNS, self.chance.choice([4, 6, 8]))
        areas = {name: self.chance.randrange(2, 90) for name in names}
        code = f"def {noun}_area(name):\n    return {areas!r}[name]"
        wrong = {**areas, names[0]: areas[names[0]] + 1}
        self.base.append(edits.append(site.file, code))
        test = SHAPES.replace("$", noun).replace("MODULE", self.project.module(site.file)).replace("AREAS", repr(areas))
        file = last_file(self.survey, f"{noun}_shapes")
        self.base.append(edits.write(file, test))
        self.change.append(edits.replace(site.file, f"return {areas!r}", f"return {wrong!r}"))
        plan = self.plan("set of parameters", str(len(names)), [], [], files=[file])
        return plan._replace(victims=[f"{file}::test_{noun}_area[shape{place}]" for place in range(len(names))])

    def new_flaky_test(self) -> Plan:
        """The change brings a test that is flaky by itself."""
        rate = self.chance.choice(RATES[2:])
        body = f"import random\n    assert random.random() >= {rate}, '{self.noun}'"
        code = f"def test_{self.noun}_works():\n    {body}\n"
        test: Test = self.need([test for test in self.survey.tests if test.name])
        edit = edits.append if self.chance.random() < 0.5 else edits.declare
        self.change.append(edit(test.file, code))
        plan = self.plan("new flaky test", "random", [], [], rate=rate, files=[test.file])
        return plan._replace(victims=[f"{test.file}::test_{self.noun}_works"])

    def outside(self, kind: str, rate: float) -> Plan:
        """An old flake by something outside the tree: a service, or a file that counts."""
        site = self.seldom_called()
        code = ASK if kind == "service" else COUNT
        self.base.append(edits.declare(site.file, code.replace("$", self.noun)))
        condition = f"_ask_{self.noun}({self.per_call(site, rate):.4f})"
        self.base.append(self.fail(site, condition, [], is_by_chance=True))
        return self.plan("outside", kind, site.tests, [], rate=rate)

    # Old flakes and harmless changes --------------------------------------------------------------------

    def old_flake(self, family: str) -> Plan:
        """A flake that is in the base; the change on top is added by `harmless`."""
        rate = self.chance.choice(RATES)
        makers = {
            "chance": lambda: self.coin(self.base, rate),
            "outside": lambda: self.outside(self.chance.choice(["service", "counter"]), rate),
            "set order": lambda: self.set_order(self.base),
            "wait": lambda: self.wait(self.base),
            "fixture": lambda: self.fixture(self.base),
        }
        plan = makers[family]() if family in makers else self.all_in_base(family)
        return plan._replace(family=family)

    def all_in_base(self, family: str) -> Plan:
        plan = {"leak": self.leak, "leak of a test": self.test_leak, "leak of an import": self.import_leak}[family]()
        self.base += [edit for edit in self.change if edit not in self.base]
        self.change.clear()
        return plan


# The share of each family.
GUILTY = {
    "leak": 22, "test_leak": 14, "new_polluter": 8, "import_leak": 4, "no_restore": 9, "error_path": 4,
    "moved": 5, "removed": 5, "fixture": 5, "coin": 10, "louder": 2, "wait": 4, "retry": 3, "set_order": 3,
    "set_parameters": 2, "new_flaky_test": 3,
}  # fmt: skip
OLD = {"chance": 30, "outside": 18, "set order": 8, "wait": 10, "fixture": 6, "leak": 16, "leak of a test": 9, "leak of an import": 3}


def first_file(survey: Survey, noun: str) -> str:
    """A new test file that runs before all others of its folder, the first folder of the suite."""
    return str(Path(survey.tests[0].file).parent / f"test_00_{noun}.py")


def last_file(survey: Survey, noun: str) -> str:
    return str(Path(survey.tests[-1].file).parent / f"test_zz_{noun}.py")


def draw_guilty(project: Project, survey: Survey, chance: random.Random, family: Optional[str] = None) -> Plan:
    planter = Planter(project, survey, chance)
    family = family or chance.choices(list(GUILTY), list(GUILTY.values()))[0]
    if family == "coin":
        return planter.coin(planter.change, chance.choice([*RATES[2:], 1 / 3, 0.95]))
    plan: Plan = getattr(planter, family)()
    return plan


def draw_old(project: Project, survey: Survey, chance: random.Random, family: Optional[str] = None) -> Plan:
    planter = Planter(project, survey, chance)
    return planter.old_flake(family or chance.choices(list(OLD), list(OLD.values()))[0])


def truth(plan: Plan) -> Dict[str, Any]:
    """The part of a plan that is written down."""
    return {name: getattr(plan, name) for name in ("family", "kind", "victims", "polluters", "rate", "files", "note")}
