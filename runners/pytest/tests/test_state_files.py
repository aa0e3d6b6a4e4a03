"""Files under the project, in the temporary folder and in the repository around it."""

import os
import stat
import tempfile
from types import SimpleNamespace
from typing import Any, Callable, List, Optional

import pytest

from unflake_channel import Message
from unflake_state import State


@pytest.fixture
def shop(tmp_path: Any, monkeypatch: Any) -> Any:
    """A project with a few files, and a temporary folder of its own."""
    for name in ("shop", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "shop" / "data.json").write_text("{}")
    return tmp_path / "shop"


def state_of(shop: Any, request: Any) -> Any:
    config = SimpleNamespace(rootpath=shop, pluginmanager=request.config.pluginmanager)
    return State(config, [])


def check(
    shop: Any, request: Any, change: Callable[[], Any], path: str, before: Optional[str], after: Optional[str]
) -> Message:
    """Exactly this piece is seen, and can be put back."""
    state = state_of(shop, request)
    state.mark()
    change()
    pieces: List[Message] = state.compare()["pieces"]
    seen = [(piece["kind"], piece["path"], piece["before"], piece["after"]) for piece in pieces]
    assert seen == [("file", path, before, after)]
    assert state.restore([pieces[0]["key"]]) == []
    assert state.compare()["pieces"] == []
    return pieces[0]


def test_a_file_that_was_changed(shop: Any, request: Any) -> None:
    data = shop / "data.json"
    check(shop, request, lambda: data.write_text("[1]"), "data.json", "'{}'", "'[1]'")
    assert data.read_text() == "{}"


def test_a_file_that_was_created(shop: Any, request: Any) -> None:
    check(shop, request, lambda: (shop / "new.txt").write_text("x"), "new.txt", None, "'x'")
    assert not (shop / "new.txt").exists()


def test_a_file_that_was_deleted(shop: Any, request: Any) -> None:
    check(shop, request, (shop / "data.json").unlink, "data.json", "'{}'", None)
    assert (shop / "data.json").read_text() == "{}"


def test_a_file_whose_mode_was_changed(shop: Any, request: Any) -> None:
    (shop / "data.json").chmod(0o644)
    state = state_of(shop, request)
    state.mark()
    (shop / "data.json").chmod(0o600)
    (piece,) = state.compare()["pieces"]
    assert state.restore([piece["key"]]) == []
    assert stat.S_IMODE((shop / "data.json").stat().st_mode) == 0o644


def test_a_file_that_was_only_touched_is_no_change(shop: Any, request: Any) -> None:
    state = state_of(shop, request)
    state.mark()
    os.utime(shop / "data.json", (1, 1))
    assert state.compare()["pieces"] == []


def test_a_folder_that_was_created_is_one_piece(shop: Any, request: Any) -> None:
    def change() -> None:
        (shop / "out" / "deep").mkdir(parents=True)
        (shop / "out" / "deep" / "log").write_text("")

    check(shop, request, change, "out", None, "a folder")
    assert not (shop / "out").exists()


def test_a_folder_that_was_deleted_comes_back_with_what_was_in_it(shop: Any, request: Any) -> None:
    (shop / "out" / "deep").mkdir(parents=True)
    (shop / "out" / "deep" / "log").write_text("hello")

    def change() -> None:
        (shop / "out" / "deep" / "log").unlink()
        (shop / "out" / "deep").rmdir()
        (shop / "out").rmdir()

    check(shop, request, change, "out", "a folder", None)
    assert (shop / "out" / "deep" / "log").read_text() == "hello"


def test_a_link_that_points_elsewhere(shop: Any, request: Any) -> None:
    (shop / "current").symlink_to("data.json")

    def change() -> None:
        (shop / "current").unlink()
        (shop / "current").symlink_to("other.json")

    check(shop, request, change, "current", "'data.json'", "'other.json'")


def test_what_tools_write_for_themselves_is_left_out(shop: Any, request: Any) -> None:
    state = state_of(shop, request)
    state.mark()
    for name in ("__pycache__", ".pytest_cache", "node_modules"):
        (shop / name).mkdir()
        (shop / name / "file").write_text("")
    (shop / "env").mkdir()
    (shop / "env" / "pyvenv.cfg").write_text("")
    assert state.compare()["pieces"] == []


def test_a_temporary_file_has_the_same_key_in_every_vm(shop: Any, request: Any) -> None:
    def change() -> None:
        descriptor, _ = tempfile.mkstemp(suffix=".log")
        os.close(descriptor)

    state = state_of(shop, request)
    state.mark()
    change()
    (piece,) = state.compare()["pieces"]
    assert piece["key"] == "file:$TMPDIR/tmp*.log"
    assert state.restore([piece["key"]]) == []
    assert state.compare()["pieces"] == []


def test_the_configuration_of_the_enclosing_repository(shop: Any, request: Any) -> None:
    git = shop.parent / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "objects").mkdir()
    (git / "config").write_text("[core]")

    def change() -> None:
        (git / "config").write_text("[user]")
        (git / "objects" / "new").write_text("")

    check(shop, request, change, ".git/config", "'[core]'", "'[user]'")


def test_a_file_too_large_to_keep_is_a_suspect(shop: Any, request: Any) -> None:
    (shop / "large").write_bytes(b"x" * 300_000)
    state = state_of(shop, request)
    state.mark()
    (shop / "large").unlink()
    (piece,) = state.compare()["pieces"]
    assert (piece["path"], piece["restorable"]) == ("large", False)


def test_more_files_than_can_be_watched_are_said(shop: Any, request: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("unflake_state_files.ENTRIES", 5)
    for number in range(10):
        (shop / str(number)).write_text("")
    assert any("files under" in text for text in state_of(shop, request).mark()["unseen"])
