"""An environment as it was before a change: the user's packages by links, without those that it brought.

It is a program of its own. `lay` runs in the user's interpreter and links what is installed there into
folders that a new virtual environment looks into after its own. Then somebody installs there what the
change has replaced. `settle` runs in that environment: it leaves out what is replaced or came with the
change, and says what is still as the change wants it. Nothing is written into the user's environment.
"""

import importlib
import importlib.util
import json
import os
import re
import site
import sys
import sysconfig
from importlib import metadata
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple


def main() -> None:
    step, folder = sys.argv[1:]
    if step == "lay":
        lay(folder)
    else:
        settle(folder)


def lay(folder: str) -> None:
    """Links all that is installed beside this interpreter, and writes down what that is."""
    rests = []
    for number, place in enumerate(_sites()):
        # Whoever looks at the path of a module sees that it is installed.
        rest = os.path.join(folder, f"user{number}", "site-packages")
        os.makedirs(rest)
        link(place, rest, set())
        rests.append((place, rest))
    lines = [f"import site; site.addsitedir({rest!r})\n" for _, rest in rests]
    with open(
        os.path.join(_site_of(os.path.join(folder, "venv")), "zz_user.pth"), "w", encoding="utf-8"
    ) as file:
        file.writelines(lines)
    versions = {name: _version(found) for name, (found, _) in visible().items()}
    _write(folder, "rests.json", rests)
    _write(folder, "installed.json", versions)


def settle(folder: str) -> None:
    """Hides what is replaced and what came with the change, and writes down what is not as it was."""
    rests = _read(folder, "rests.json")
    wanted = _read(folder, "wanted.json")
    own = set(packages_in([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]))
    unneeded = set(wanted["added"]) - needed_beside(set(wanted["added"]))
    hidden = own | unneeded
    replaced: List[str] = []
    # Nobody told of it when it was installed, and so nobody knows which version that is.
    complaints = [
        f"{name} is no package, and can be imported" for name in wanted["absent"] if _is_module(name)
    ]
    for site_packages, rest in rests:
        files: Set[str] = set()
        for name, (found, _) in packages_in([site_packages]).items():
            if name not in hidden:
                continue
            if found.files is None and name in unneeded:
                complaints.append(f"{name} does not list its files")
            files |= {os.path.normpath(str(file)) for file in found.files or []}
            # Files there that are not in the list, such as a note of an installer, must not name it either.
            files |= {name for name in os.listdir(site_packages) if _is_metadata(name, found)}
        replaced += [os.path.realpath(os.path.join(site_packages, file)) for file in sorted(files)]
        if files:
            _empty(rest)
            link(site_packages, rest, files)
    now = visible()
    complaints += [f"{name} is found in {now[name][1]}" for name in sorted(unneeded & set(now))]
    for name, text in wanted["changed"]:
        complaint = differs(now.get(name), text, wanted["pins"].get(name), name in own)
        if complaint:
            complaints.append(complaint)
    _write(folder, "settled.json", complaints)
    _write(folder, "replaced.json", replaced)


def needed_beside(added: Set[str]) -> Set[str]:
    """The packages among these that others need: they were there before."""
    now = visible()
    needed: Set[str] = set()
    todo = [name for name in now if name not in added]
    while todo:
        found, _ = now[todo.pop()]
        for text in found.requires or []:
            if "extra ==" in text:
                continue
            name = normalize(re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0])
            if name in added and name in now and name not in needed:
                needed.add(name)
                todo.append(name)
    return needed


def differs(found: Optional[Tuple[Any, str]], text: str, pin: Optional[str], is_own: bool) -> Optional[str]:
    """Why a package may be another than that which a requirement led to before the change, if it may."""
    requirement, pinned = _requirement(text), _requirement(pin) if pin else None
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    if found is None:
        return f"{text} is not there"
    version = _version(found[0])
    asked = [one for one in (requirement, pinned) if one is not None]
    if not all(one.specifier.contains(version, prereleases=True) for one in asked):
        return f"{requirement.name} {version} is found in {found[1]}, and not {text}"
    if is_own and not found[1].startswith(sys.prefix):
        return f"{requirement.name} is found in {found[1]}"
    is_exact = any(
        spec.operator in ("==", "===") and "*" not in spec.version for one in asked for spec in one.specifier
    )
    if not is_own and (requirement.url or not is_exact):
        return f"{text} leaves open which version there was, and you have {version}"
    return None


def _is_module(name: str) -> bool:
    return importlib.util.find_spec(name.replace("-", "_")) is not None


def _is_exact(spec: Any) -> bool:
    return spec.operator in ("==", "===") and "*" not in spec.version


def link(own: str, rest: str, hidden: Set[str], inside: str = "") -> None:
    """Links the entries of a folder but for some files; a folder with such files is made anew."""
    for name in os.listdir(os.path.join(own, inside)):
        path = os.path.join(inside, name)
        if name == "__pycache__" or path in hidden:
            continue
        target = os.path.join(own, path)
        if any(file.startswith(path + os.sep) for file in hidden):
            link(own, rest, hidden, path)
        else:
            os.makedirs(os.path.join(rest, inside), exist_ok=True)
            os.symlink(target, os.path.join(rest, path))


def visible() -> Dict[str, Tuple[Any, str]]:
    """The packages that are found, each with the folder where it is."""
    return packages_in(sys.path)


def packages_in(folders: List[str]) -> Dict[str, Tuple[Any, str]]:
    importlib.invalidate_caches()
    found: Dict[str, Tuple[Any, str]] = {}
    for folder in folders:
        for one in _distributions(folder):
            name = one.metadata["Name"]
            if name:
                found.setdefault(normalize(name), (one, folder))
    return found


def _distributions(folder: str) -> Iterator[Any]:
    return iter(metadata.distributions(path=[folder])) if os.path.isdir(folder) else iter(())


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_metadata(name: str, found: Any) -> bool:
    return name.endswith(".dist-info") and normalize(name.split("-", 1)[0]) == normalize(
        found.metadata["Name"]
    )


def _version(found: Any) -> str:
    return str(found.metadata["Version"])


def _requirement(text: str) -> Any:
    # pytest needs this package, so that it is there.
    from packaging.requirements import Requirement

    return Requirement(text)


def _sites() -> List[str]:
    """The folders with packages of this interpreter, in the order in which it looks into them."""
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # Old virtual environments have a `site` of their own.
    if hasattr(site, "getsitepackages"):
        folders.update(site.getsitepackages())
    if getattr(site, "ENABLE_USER_SITE", None):
        folders.add(site.getusersitepackages())
    found: List[str] = []
    for folder in sys.path:
        is_known = any(os.path.realpath(folder) == os.path.realpath(one) for one in found)
        if folder in folders and os.path.isdir(folder) and not is_known:
            found.append(folder)
    return found


def _site_of(home: str) -> str:
    lib = os.path.join(home, "lib")
    versions = [name for name in os.listdir(lib) if name.startswith(("python", "pypy"))]
    return os.path.join(lib, versions[0], "site-packages")


def _empty(folder: str) -> None:
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _empty(entry.path)
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)


def _read(folder: str, name: str) -> Any:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def _write(folder: str, name: str, value: Any) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


if __name__ == "__main__":
    main()
