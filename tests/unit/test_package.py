"""What the package promises about itself: size, types, loggers, platforms, versions."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points, metadata, packages_distributions, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import apcore_mcp
import mcp_serve

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("apcore_mcp", "mcp_serve")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / "src" / package).rglob("*.py"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = {Requirement(text).name: Requirement(text) for text in PROJECT["dependencies"]}
UNIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty", "uvloop"}
WINDOWS_ONLY = {"msvcrt", "winreg", "winsound", "_winapi", "win32api"}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in SOURCES:
        yield path, ast.parse(path.read_text(), str(path))


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module that is imported, and the line that does it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


# NFR-MAINT


@pytest.mark.requirement("NFR-MAINT-001")
def test_the_bridge_has_at_most_1200_lines_of_code() -> None:
    counted = counted_lines(ROOT / "src" / "apcore_mcp")
    assert "explorer.html" in counted, "the built page counts too"
    assert counted["total"] <= 1_200


def counted_lines(folder: Path) -> dict[str, int]:
    command = [sys.executable, str(ROOT / "tools" / "code_lines.py"), str(folder)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {Path(name).name: int(count) for count, name in (line.split() for line in lines)}


def test_lines_are_counted_as_cloc_counts_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        '"""About."""\n\nX = 1  # one\n# two\n\n\ndef f():\n    """Says."""\n    return (\n        X\n    )\n'
    )
    (tmp_path / "b.html").write_text("<!doctype html>\n\n<!-- about\nthis -->\n<p>text</p> <!-- more -->\n")
    (tmp_path / "c.csp").write_text("default-src 'none'\n")
    assert counted_lines(tmp_path) == {"a.py": 5, "b.html": 2, "total": 7}


@pytest.mark.requirement("NFR-MAINT-002")
def test_coverage_below_ninety_percent_fails_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["coverage"]["report"]["fail_under"] >= 90
    assert {f"*/src/{name}/*" for name in PACKAGES} <= set(project["tool"]["coverage"]["run"]["include"])
    assert "pytest --cov" in (ROOT / "Makefile").read_text()


def public_callables() -> Iterator[tuple[str, Any]]:
    found = [*pkgutil.walk_packages(apcore_mcp.__path__, "apcore_mcp.")]
    for info in [*found, *pkgutil.walk_packages(mcp_serve.__path__, "mcp_serve.")]:
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != info.name:
                continue
            if inspect.isfunction(value):
                yield f"{info.name}.{name}", value
            elif inspect.isclass(value):
                for method, function in vars(value).items():
                    ours = inspect.isfunction(function) and function.__module__ == info.name
                    if ours and (method == "__init__" or not method.startswith("_")):
                        yield f"{info.name}.{name}.{method}", function


@pytest.mark.requirement("NFR-MAINT-003")
def test_every_public_function_is_annotated() -> None:
    bare = [
        f"{name}({parameter.name})"
        for name, function in public_callables()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation is inspect.Parameter.empty and parameter.name not in {"self", "cls"}
    ]
    assert bare == []
    silent = [
        name
        for name, function in public_callables()
        if inspect.signature(function).return_annotation is inspect.Signature.empty
    ]
    assert silent == []


def test_every_public_function_says_what_it_is_for() -> None:
    assert [name for name, function in public_callables() if "__init__" not in name and not function.__doc__] == []


@pytest.mark.requirement("NFR-MAINT-003")
def test_types_are_checked_strictly_and_shipped() -> None:
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"] is True
    assert {"src", "tests"} <= set(mypy["files"])
    assert all((ROOT / "src" / package / "py.typed").exists() for package in PACKAGES)


@pytest.mark.requirement("NFR-MAINT-004", "FR-LOG-004")
def test_every_logger_is_named_after_its_module() -> None:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger"):
                named = ast.unparse(node.args[0]) if node.args else "nothing"
                assert named in {"__name__", "'apcore_mcp'"}, f"{path}:{node.lineno}"


@pytest.mark.requirement("NFR-MAINT-004", "FR-LOG-004")
def test_nothing_is_logged_through_the_root_logger() -> None:
    levels = {"debug", "info", "warning", "error", "exception", "critical", "log"}
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in levels:
                assert ast.unparse(node.func.value) != "logging", f"{path}:{node.lineno}"


@pytest.mark.requirement("FR-LOG-005")
def test_importing_everything_adds_no_handler_and_sets_no_level() -> None:
    code = """
import logging
import apcore
before = (list(logging.root.handlers), logging.root.level)
import apcore_mcp.cli, apcore_mcp.serving, apcore_mcp.converters.openai, mcp_serve.stdio
assert (list(logging.root.handlers), logging.root.level) == before
loggers = [v for k, v in logging.root.manager.loggerDict.items() if k.startswith(("apcore_mcp", "mcp_serve"))]
assert loggers
assert not any(getattr(logger, "handlers", None) or getattr(logger, "level", 0) for logger in loggers)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# NFR-PORT


@pytest.mark.requirement("NFR-PORT-001", "NFR-PORT-002")
def test_no_dependency_is_bound_to_a_platform() -> None:
    optional = [text for group in PROJECT.get("optional-dependencies", {}).values() for text in group]
    for text in [*PROJECT["dependencies"], *optional]:
        assert Requirement(text).marker is None, text


@pytest.mark.requirement("NFR-PORT-001", "NFR-PORT-002")
def test_nothing_that_only_one_platform_has_is_imported_where_it_is_not() -> None:
    for path, tree in trees():
        guarded = [node for node in tree.body if isinstance(node, ast.If) and "sys.platform" in ast.unparse(node.test)]
        everywhere = ast.Module([node for node in tree.body if node not in guarded], [])
        for line, name in imported(everywhere):
            assert name.partition(".")[0] not in UNIX_ONLY | WINDOWS_ONLY, f"{path}:{line}"


@pytest.mark.requirement("NFR-PORT-001")
def test_no_call_that_only_one_platform_has_is_made() -> None:
    missing_on_windows = {
        "add_signal_handler", "remove_signal_handler", "fork", "forkpty", "geteuid", "getuid", "killpg", "setsid",
        "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGALRM", "pthread_kill", "connect_read_pipe",
        "set_blocking",
    }  # fmt: skip
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                assert node.attr not in missing_on_windows, f"{path}:{node.lineno} uses {node.attr}"


# NFR-COMPAT


@pytest.mark.requirement("NFR-COMPAT-001")
def test_python_3_11_and_above_is_declared() -> None:
    declared = SpecifierSet(PROJECT["requires-python"])
    assert [v for v in ("3.10", "3.11", "3.12", "3.13", "3.14") if v in declared] == ["3.11", "3.12", "3.13", "3.14"]
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(PROJECT["classifiers"])


@pytest.mark.requirement("NFR-COMPAT-002")
def test_apcore_below_1_is_declared_and_installed() -> None:
    declared = DEPENDENCIES["apcore"].specifier
    assert "0.31.0" in declared
    assert "0.30.0" not in declared
    assert "1.0.0" not in declared
    assert version("apcore") in declared


@pytest.mark.requirement("NFR-COMPAT-003")
def test_mcp_2_is_declared_and_installed() -> None:
    declared = DEPENDENCIES["mcp"].specifier
    assert "2.3.0" in declared
    assert "1.30.0" not in declared
    assert "3.0.0" not in declared
    assert version("mcp") in declared


@pytest.mark.requirement("NFR-COMPAT-003", "FR-OPENAI-005")
def test_the_runtime_needs_apcore_and_mcp_and_not_openai() -> None:
    assert {"apcore", "mcp"} <= DEPENDENCIES.keys()
    assert "openai" not in DEPENDENCIES


def test_what_runs_is_pinned_as_what_is_tested() -> None:
    def pins(file: str) -> set[str]:
        lines = (ROOT / "requirements" / file).read_text().splitlines()
        return {line.removesuffix(" \\").partition(" ;")[0] for line in lines if "==" in line.partition(" ")[0]}

    running, tested = pins("run.txt"), pins("dev.txt")
    assert running - tested == set()
    assert {canonicalize_name(name) for name in DEPENDENCIES} <= {pin.partition("==")[0] for pin in running}


@pytest.mark.requirement("FR-CLI-001")
def test_the_script_is_installed() -> None:
    (script,) = entry_points(group="console_scripts", name="apcore-mcp")
    assert script.value == "apcore_mcp.cli:main"


@pytest.mark.requirement("FR-SERVER-004")
def test_the_version_is_the_one_of_the_distribution() -> None:
    assert apcore_mcp.__version__ == metadata("toolgrove")["Version"] == PROJECT["version"]


# Imports


@pytest.mark.requirement("FR-EXT-003")
def test_a_module_that_uses_the_helpers_does_not_import_mcp() -> None:
    code = """
import sys
import apcore_mcp
apcore_mcp.report_progress, apcore_mcp.elicit, apcore_mcp.MCP_PROGRESS_KEY, apcore_mcp.MCP_ELICIT_KEY
loaded = {"mcp", "mcp_types", "apcore", "starlette", "uvicorn", "pydantic"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_package_that_is_imported_is_declared() -> None:
    homes = packages_distributions()
    declared = {canonicalize_name(name) for name in DEPENDENCIES}
    optional = [text for group in PROJECT.get("optional-dependencies", {}).values() for text in group]
    declared |= {canonicalize_name(Requirement(text).name) for text in optional}
    ours = {path.name for path in (ROOT / "src").iterdir()}
    undeclared = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line, module in imported(ast.parse(path.read_text())):
            name = module.partition(".")[0]
            distributions = {canonicalize_name(home) for home in homes.get(name, [name])}
            if name not in {*ours, *sys.stdlib_module_names} and not declared & distributions:
                undeclared[name] = f"{path.relative_to(ROOT)}:{line}"
    assert undeclared == {}, "add them to [project.dependencies] in pyproject.toml, with bounds"


def test_the_bridge_never_imports_the_gateway() -> None:
    for path, tree in trees():
        for line, name in imported(tree):
            assert name.partition(".")[0] != "toolgrove", f"{path}:{line}"
