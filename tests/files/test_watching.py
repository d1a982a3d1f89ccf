"""A folder that is followed: whatever happens to it, what is served is what is in it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apcore import Registry
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apcore_files.folder import discovered
from apcore_files.watching import following
from waiting import wait_until

NAMES = ("a", "b", "sub/a", "sub/c", "sub/deep/d", "other/c")
FOLDERS = ("sub", "sub/deep", "other", "another")
CLASS = """
from pydantic import BaseModel

class Empty(BaseModel):
    pass

class Module:
    description = "version {:04}"
    input_schema = output_schema = Empty

    def execute(self, inputs, context):
        return {{}}
"""
FUNCTION = """
def {name}() -> str:
    "version {version:04}"
    return ""
"""
META = 'description: "version {:04}"\n'


class Folder:
    """A folder of modules, and all that people and programs do to one."""

    def __init__(self, home: Path) -> None:
        self.root = home / "extensions"
        self.outside = home / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        self.count = 0

    def source(self, name: str) -> str:
        """Another version each time; every second is a function, and all are of one size."""
        self.count += 1
        stem = Path(name).name
        return CLASS.format(self.count) if self.count % 2 else FUNCTION.format(name=stem, version=self.count)

    def write(self, name: str, text: str | None = None) -> None:
        file = self.root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.source(name) if text is None else text)

    def replace(self, name: str) -> None:
        """As `sed -i`, git and most editors do it."""
        file = self.root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".new")
        beside.write_text(self.source(name))
        beside.replace(file)

    def replace_alike(self, name: str) -> None:
        """The same size and time: what Python compiled of the old one still looks right."""
        file = self.root / f"{name}.py"
        if not file.exists() or "class" not in file.read_text():
            self.replace(name)
            return
        about = file.stat()
        self.count += 1
        beside = self.outside / "alike"
        beside.write_text(CLASS.format(self.count))
        os.utime(beside, ns=(about.st_atime_ns, about.st_mtime_ns))
        beside.replace(file)

    def rename(self, name: str, other: str) -> None:
        old, new = self.root / f"{name}.py", self.root / f"{other}.py"
        if old.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.replace(new)

    def move_in(self, name: str) -> None:
        file = self.root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        elsewhere = self.outside / "moved.py"
        elsewhere.write_text(self.source(name))
        elsewhere.replace(file)

    def move_out(self, name: str) -> None:
        if (self.root / f"{name}.py").exists():
            (self.root / f"{name}.py").replace(self.outside / "gone.py")

    def delete(self, name: str) -> None:
        (self.root / f"{name}.py").unlink(missing_ok=True)

    def describe(self, name: str) -> None:
        """What stands beside a file says more of it than the file."""
        self.count += 1
        if (self.root / name).parent.is_dir():
            (self.root / f"{name}_meta.yaml").write_text(META.format(self.count))

    def describe_no_more(self, name: str) -> None:
        (self.root / f"{name}_meta.yaml").unlink(missing_ok=True)

    def rename_folder(self, name: str, other: str) -> None:
        old, new = self.root / name, self.root / other
        if old.is_dir() and not new.exists() and new.parent.is_dir() and old not in new.parents:
            old.rename(new)

    def remove_folder(self, name: str) -> None:
        shutil.rmtree(self.root / name, ignore_errors=True)

    def move_folder_in(self, name: str) -> None:
        if not (self.root / name).exists() and (self.root / name).parent.is_dir():
            built = self.outside / "built"
            (built / "deep").mkdir(parents=True)
            (built / "c.py").write_text(self.source("c"))
            (built / "deep" / "d.py").write_text(self.source("d"))
            built.rename(self.root / name)

    def check_out(self) -> None:
        """Another branch: every file is removed and written anew, some are gone and some are new."""
        for file in sorted(self.root.rglob("*.py")):
            file.unlink()
        for name in NAMES[self.count % 3 :: 2]:
            self.write(name)

    def swap(self) -> None:
        """Another folder takes the place of this one."""
        old = self.outside / f"old{self.count}"
        built = Folder.__new__(Folder)
        built.root, built.outside, built.count = self.outside / f"new{self.count}", self.outside, self.count
        built.root.mkdir()
        for name in NAMES[:2]:
            built.write(name)
        self.count = built.count
        self.root.rename(old)
        built.root.rename(self.root)

    def served(self) -> dict[str, str]:
        """What is to be served, as a person reads it: the version in each file, or in what stands beside it."""
        found = {}
        for file in self.root.rglob("*.py"):
            beside = file.with_name(f"{file.stem}_meta.yaml")
            said = re.search(r"version \d+", (beside if beside.exists() else file).read_text())
            stems_are_right = "class" in file.read_text() or f"def {file.stem}(" in file.read_text()
            name = ".".join(file.relative_to(self.root).with_suffix("").parts)
            if stems_are_right and said is not None:
                found[name] = said.group()
            else:  # a function that is not named as its file has a name below it
                [function] = re.findall(r"def (\w+)\(", file.read_text())
                found[f"{name}.{function}"] = re.findall(r"version \d+", file.read_text())[0]
        return found


def held(registry: Registry) -> dict[str, str]:
    """What is served."""
    definitions = {module_id: registry.get_definition(module_id) for module_id in registry.list()}
    return {module_id: found.description for module_id, found in definitions.items() if found is not None}


names = st.sampled_from(NAMES)
folders = st.sampled_from(FOLDERS)
OPERATIONS: st.SearchStrategy[tuple[Callable[..., None], tuple[Any, ...]]] = st.one_of(
    st.tuples(
        st.sampled_from(
            [
                Folder.write,
                Folder.replace,
                Folder.replace_alike,
                Folder.move_in,
                Folder.move_out,
                Folder.delete,
                Folder.describe,
                Folder.describe_no_more,
            ]
        ),
        st.tuples(names),
    ),
    st.tuples(st.just(Folder.rename), st.tuples(names, names)),
    st.tuples(st.just(Folder.rename_folder), st.tuples(folders, folders)),
    st.tuples(st.sampled_from([Folder.remove_folder, Folder.move_folder_in]), st.tuples(folders)),
    st.tuples(st.sampled_from([Folder.check_out, Folder.swap]), st.just(())),
)


@settings(max_examples=20)
@example([[(Folder.write, ("b",))], [(Folder.replace_alike, ("a",))]])
@example([[(Folder.swap, ())], [(Folder.check_out, ())]])
@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=4))
@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002")
def test_what_is_served_is_what_is_in_the_folder_however_it_got_there(
    bursts: list[list[tuple[Callable[..., None], tuple[Any, ...]]]],
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "dont_write_bytecode", False)  # as it is where people serve
        folder = Folder(Path(home))
        folder.write("a")
        folder.write("sub/c")
        registry = discovered(folder.root)
        folder.replace("a")  # before anybody looks
        with following(registry):
            for burst in bursts:
                for operation, arguments in burst:
                    operation(folder, *arguments)
                wait_until(lambda: held(registry) == folder.served(), 20)
        assert held(discovered(folder.root)) == held(registry), "a fresh start serves something else"


def test_a_file_that_cannot_be_used_leaves_the_version_before_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a")
    registry = discovered(folder.root)
    with following(registry):
        folder.write("a", "def broken(")
        folder.write("b")
        wait_until(lambda: "b" in held(registry))
        assert held(registry)["a"] == "version 0001"
        folder.replace("a")
        wait_until(lambda: held(registry) == folder.served())
