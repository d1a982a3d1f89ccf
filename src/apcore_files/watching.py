"""A folder that is followed: what a registry holds is what is in the folder, however it got there.

Events of the file system only say when to look at once. What there is to do comes from comparing the folder with what
was loaded from it, so a file that is written, replaced, renamed or moved in or out, and a folder with all that is in
it, come to the same. Without events it is looked at about every second: some are lost, some file systems have none, and
nobody says when another folder takes this one's place or a link to it leads elsewhere.

A file that cannot be used is left out, and what was served from it before stays. Files are read, named, checked and
registered by the stages that apcore's discovery has, so they become what a fresh start would make of them, with what
stands in their `_meta.yaml`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from apcore import Registry
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from apcore_files.internals import held_by, mark_of, scanned

log = logging.getLogger(__name__)
SECOND = 1.0
_SHARE = 50
"""A look that takes long is followed by a pause of so many times as long."""
_SETTLES = 0.05
_READ_ONLY = frozenset({"opened", "closed_no_write"})
_LONGEST_GOODBYE = 1.0


@contextlib.contextmanager
def following(registry: Registry) -> Iterator[None]:
    """Keep a registry in step with its extensions directories."""
    follower = _Follower(registry)
    follower.start()
    try:
        yield
    finally:
        follower.stop()


class _Follower(FileSystemEventHandler):
    """Looks at the folders in a thread of its own, whenever something may have changed in them."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self._roots = [Path(each["root"]) for each in registry._extension_roots]
        self._held = dict(held_by(registry))
        """What counts as loaded: the id and the mark of each file."""
        self._refused: set[Path] = set()
        self._pause = SECOND
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="extensions", daemon=True)
        self._observer: Any = None

    def start(self) -> None:
        """Begin to look; what has changed since the files were loaded is found by the first look."""
        self._places = self._find_places()
        self._observe()
        self._thread.start()

    def stop(self) -> None:
        """Look no more; an import that never ends is not waited for."""
        self._stopped.set()
        self._news.set()
        self._observe_no_more()
        self._thread.join(_LONGEST_GOODBYE)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Have a look soon."""
        if event.event_type not in _READ_ONLY:
            self._news.set()

    def _follow(self) -> None:
        was_missing = False
        problem = ""
        while not self._stopped.is_set():
            self._news.wait(self._pause)
            self._stopped.wait(_SETTLES)
            self._news.clear()
            places = self._find_places()
            is_missing = None in places
            if is_missing and not was_missing:
                was_missing = True  # another may be about to take its place
                continue
            was_missing = is_missing
            if places != self._places:
                self._places = places
                self._observe_no_more()
                self._observe()
            try:
                self._look()
                problem = ""
            except Exception as error:
                if problem != str(error):  # said once, not every second
                    log.exception("The extensions directory could not be read; what was loaded stays")
                problem = str(error)

    def _find_places(self) -> list[tuple[int, int] | None]:
        return [_place(root) for root in self._roots]

    def _observe(self) -> None:
        observer = Observer()
        try:
            for root in self._roots:
                if root.is_dir():
                    observer.schedule(self, os.path.realpath(root), recursive=True)
            observer.start()
            self._observer = observer
        except OSError as problem:  # no room for another watch
            log.warning("Changes in the extensions directory are seen a second later: %s", problem)

    def _observe_no_more(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(_LONGEST_GOODBYE)

    def _look(self) -> None:
        """Load what is new or changed, and let go of what is gone."""
        begun = time.monotonic()
        found = scanned(self._registry)
        marks = {path: mark_of(file) for path, file in found.items()}
        self._pause = max(SECOND, _SHARE * (time.monotonic() - begun))
        gone = self._held.keys() - found.keys()
        changed = [path for path, mark in marks.items() if path not in self._held or self._held[path][1] != mark]
        if not gone and not changed:
            return
        again = [path for path in self._refused if path in found and path not in changed]
        files = [found[path] for path in (*changed, *again)]
        metadata, classes = self._loaded(files)
        if self._stopped.is_set():
            return
        self._refused.clear()
        for path in gone:
            self._registry.unregister(self._held.pop(path)[0])
        self._held |= {file.file_path: (file.canonical_id, marks[file.file_path]) for file in files}
        self._register(files, classes, metadata)

    def _loaded(self, files: list[Any]) -> tuple[dict[str, Any], dict[str, type]]:
        """What can be used of these files; the others say in the log why they cannot."""
        metadata: dict[str, Any] = {}
        classes: dict[str, type] = {}
        for file in files:
            _forget_compiled(file.file_path)
            try:
                about = self._registry._load_all_metadata([file])
                resolved = self._registry._resolve_all_entry_points([file], about)
                classes |= self._registry._validate_all(resolved)
                metadata |= about
            except Exception as problem:
                log.warning("%s is left out: %s", file.file_path, problem)
        return metadata, classes

    def _register(self, files: list[Any], classes: dict[str, type], metadata: dict[str, Any]) -> None:
        registry = self._registry
        before: dict[str, tuple[Any, dict[str, Any], Any]] = {}
        for module_id in classes:
            if (module := registry.get(module_id)) is not None:
                about, state = registry.get_module_metadata(module_id), registry._call_on_suspend(module_id, module)
                before[module_id] = module, about, state
                registry.unregister(module_id)
        order = registry._resolve_load_order(classes, metadata)
        registry._register_in_order(order, registry._filter_id_conflicts(order, classes), metadata)
        for file in files:
            module_id = file.canonical_id
            if module_id in classes and registry.get(module_id) is None:
                self._refused.add(file.file_path)  # what stands in its way may go
                if module_id in before:
                    module, about, _ = before[module_id]
                    _attempt(module_id, partial(registry.register, module_id, module, metadata=about))
            elif module_id in before and before[module_id][2] is not None:
                resume = getattr(registry.get(module_id), "on_resume", None)
                if callable(resume):
                    _attempt(module_id, partial(resume, before[module_id][2]))


def _attempt(module_id: str, work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        log.exception("Module %s could not go on as before", module_id)


def _place(root: Path) -> tuple[int, int] | None:
    """Which folder is there now."""
    try:
        about = root.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _forget_compiled(path: Path) -> None:
    """Python would take what it compiled of another file of the same size and second for this one."""
    with contextlib.suppress(OSError, NotImplementedError):
        Path(importlib.util.cache_from_source(str(path))).unlink()
