"""Hostile requests: nothing that the OpenAPI document allows, or nearly allows, breaks the server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import Server


def test_schemathesis_finds_no_error_of_the_server(demo: Server, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    command = [
        str(program),
        "run",
        demo.url + "/api/v1/openapi.json",
        "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        # What is sent as JSON lines has no serializer there.
        "--phases",
        "coverage,fuzzing,stateful",
        "--max-examples",
        os.environ.get("UNFLAKE_EXAMPLES", "25"),
        "--seed",
        "1",
        "--generation-deterministic",
        "--no-color",
    ]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
