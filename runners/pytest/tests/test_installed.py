"""What is installed beside a project, as the runner tells it."""

import json
import os
from pathlib import Path
from typing import List, Optional

import pytest

from unflake_installed import installed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr("sys.path", [str(folder), str(tmp_path / "missing"), str(tmp_path / "some.zip")])
    return folder


def put(site: Path, name: str, origin: Optional[object] = None) -> None:
    folder = site / name
    folder.mkdir()
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))


def told(site: Path) -> Optional[List[str]]:
    return installed(str(site.parent / "project"))


def test_packages_are_told_with_their_versions(site: Path) -> None:
    put(site, "money-1.0.dist-info")
    put(site, "money")
    put(site, "old.egg-info")
    assert told(site) == ["money-1.0.dist-info", "old.egg-info"]


def test_a_package_from_a_folder_is_another_one_when_it_is_installed_again(site: Path) -> None:
    put(site, "money-1.0.dist-info", {"url": "file:///elsewhere", "dir_info": {}})
    before = told(site)
    os.utime(site / "money-1.0.dist-info", ns=(1, 1))
    assert before != told(site)
    assert told(site) == ["money-1.0.dist-info 1"]


def test_the_project_itself_may_be_used_from_its_folder(site: Path) -> None:
    url = (site.parent / "project" / "a b").as_uri()
    put(site, "shop-1.0.dist-info", {"url": url, "dir_info": {"editable": True}})
    assert told(site) == ["shop-1.0.dist-info"]


def test_nobody_knows_what_another_folder_holds(site: Path) -> None:
    put(site, "shop-1.0.dist-info", {"url": "file:///elsewhere", "dir_info": {"editable": True}})
    assert told(site) is None


def test_a_link_to_a_folder_has_no_version(site: Path) -> None:
    (site / "shop.egg-link").write_text("/elsewhere\n.")
    assert told(site) is None


def test_what_cannot_be_read_is_passed_over(site: Path) -> None:
    put(site, "money-1.0.dist-info")
    (site / "money-1.0.dist-info" / "direct_url.json").write_text("{")
    put(site, "odd-1.0.dist-info", {"url": 1, "dir_info": []})
    os.utime(site / "odd-1.0.dist-info", ns=(1, 1))
    assert told(site) == ["money-1.0.dist-info", "odd-1.0.dist-info 1"]
