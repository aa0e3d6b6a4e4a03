"""Which services are the run's own, and which belong to others."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from unflake_services import is_own_path, is_own_port

RUNNER = Path(__file__).parent.parent
# Says of a port whether it belongs to the asking process or its descendants.
ASK = "import sys, unflake_services as services; print(services.is_own_port(int(sys.argv[1])))"
# Listens at a port, says at which, and does so until its input ends.
LISTEN = """
import socket, sys
one = socket.create_server(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_at_which_this_process_listens_is_its_own(port: int) -> None:
    assert is_own_port(port)


def test_a_port_of_a_descendant_is_its_own() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert is_own_port(int(child.stdout.readline()))
        child.communicate()


def test_a_port_of_another_process_is_not(port: int) -> None:
    said = subprocess.run(
        [sys.executable, "-c", ASK, str(port)], cwd=RUNNER, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "False"


def test_nobody_is_talked_to_where_nobody_listens() -> None:
    assert is_own_port(1)


def test_a_path_at_which_this_process_listens_is_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert is_own_path(path)
