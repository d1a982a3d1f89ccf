"""apcore-mcp: flags, error texts and exit codes. What it serves is proved end to end."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import apcore_mcp
from apcore_mcp.cli import main
from modules import EXTENSION
from warm.command import python


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    (tmp_path / "greet.py").write_text(EXTENSION)
    return tmp_path


def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line with stdin at its end, so that a server that starts stops at once."""
    command = python("-m", "apcore_mcp", *map(str, arguments))
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **options
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The error of a command line that is refused with exit code 1."""
    assert main([str(argument) for argument in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.removesuffix("\n")


def misused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The error of a command line that argparse refuses."""
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    assert exit.value.code == 2
    return capsys.readouterr().err


# FR-CLI-001, 002


@pytest.mark.requirement("FR-CLI-001", "FR-CLI-008", "FR-TRANSPORT-002", "FR-LOG-001")
def test_it_serves_the_directory_until_its_input_ends(extensions: Path) -> None:
    done = run("--extensions-dir", extensions)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "apcore-mcp server started: 1 tools registered, transport=stdio" in done.stderr


@pytest.mark.requirement("FR-CLI-001", "FR-SERVER-006", "FR-LOG-001")
def test_an_empty_directory_is_served_with_a_warning(tmp_path: Path) -> None:
    done = run("--extensions-dir", tmp_path)
    assert done.returncode == 0
    assert "No modules registered; server starting with zero tools" in done.stderr
    assert "apcore-mcp server started: 0 tools registered, transport=stdio" in done.stderr


@pytest.mark.requirement("FR-CLI-001", "NFR-REL-002")
def test_a_module_that_cannot_be_imported_does_not_stop_the_others(extensions: Path) -> None:
    (extensions / "broken.py").write_text("raise RuntimeError('at import')")
    (extensions / "syntax.py").write_text("def (")
    done = run("--extensions-dir", extensions)
    assert done.returncode == 0
    assert "server started: 1 tools registered" in done.stderr


HOPELESS = {
    "exits at import": "import sys; sys.exit(7)",
    "never ends": "while True: pass",
    "waits for ever": "import threading; threading.Event().wait()",
    "exits when made": EXTENSION + "\n    def __init__(self) -> None:\n        raise SystemExit(7)\n",
    "exits when loaded": EXTENSION + "\n    def on_load(self) -> None:\n        raise SystemExit(7)\n",
}


@pytest.mark.requirement("FR-CLI-001", "NFR-REL-002")
@pytest.mark.parametrize("code", HOPELESS.values(), ids=HOPELESS.keys())
def test_a_module_that_exits_or_never_ends_is_left_out_and_the_others_are_served(extensions: Path, code: str) -> None:
    (extensions / "hopeless.py").write_text(code)
    done = run("--extensions-dir", extensions, "--import-budget", 1)
    assert done.returncode == 0, done.stderr
    assert "server started: 1 tools registered" in done.stderr
    assert "hopeless" in done.stderr


@pytest.mark.requirement("FR-CLI-008")
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_an_impossible_import_budget_is_refused(
    capsys: pytest.CaptureFixture[str], extensions: Path, seconds: str
) -> None:
    message = "Error: import budget must be above 0 and at most 600 seconds"
    assert refused(capsys, "--extensions-dir", extensions, "--import-budget", seconds) == message


@pytest.mark.requirement("FR-CLI-001", "FR-CLI-008")
def test_the_directory_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--extensions-dir" in misused(capsys)


@pytest.mark.requirement("FR-CLI-002", "FR-CLI-008")
def test_a_directory_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "no such place"
    assert refused(capsys, "--extensions-dir", path) == f"Error: extensions directory does not exist: {path}"


@pytest.mark.requirement("FR-CLI-002", "FR-CLI-008")
def test_a_file_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path) -> None:
    path = extensions / "greet.py"
    assert refused(capsys, "--extensions-dir", path) == f"Error: extensions path is not a directory: {path}"


@pytest.mark.requirement("FR-CLI-002")
def test_a_relative_path_with_spaces_is_accepted(extensions: Path) -> None:
    (extensions / "my tools").mkdir()
    (extensions / "greet.py").rename(extensions / "my tools" / "greet.py")
    done = run("--extensions-dir", "my tools", cwd=extensions)
    assert done.returncode == 0
    assert "server started: 1 tools registered" in done.stderr


@pytest.mark.requirement("FR-CLI-002")
def test_an_unreadable_directory_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0)
    if os.access(tmp_path, os.R_OK):  # the superuser may read everything
        monkeypatch.setattr(os, "access", lambda *args, **kwargs: False)
    try:
        error = refused(capsys, "--extensions-dir", tmp_path)
        assert error == f"Error: extensions directory is not readable: {tmp_path}"
    finally:
        tmp_path.chmod(0o700)


# FR-CLI-003, 004


@pytest.mark.requirement("FR-CLI-003", "FR-CLI-008")
@pytest.mark.parametrize("transport", ["websocket", "http", ""])
def test_an_unknown_transport_lists_the_choices(
    capsys: pytest.CaptureFixture[str], extensions: Path, transport: str
) -> None:
    error = misused(capsys, "--extensions-dir", extensions, "--transport", transport)
    assert "invalid choice" in error
    assert all(choice in error for choice in ("stdio", "streamable-http", "sse"))


@pytest.mark.requirement("FR-CLI-004", "FR-CLI-008")
@pytest.mark.parametrize("port", [0, 65536, 70000, -1])
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
def test_a_port_out_of_range_is_refused(
    capsys: pytest.CaptureFixture[str], extensions: Path, transport: str, port: int
) -> None:
    error = refused(capsys, "--extensions-dir", extensions, "--transport", transport, "--port", port)
    assert error == "Error: port must be between 1 and 65535"


@pytest.mark.requirement("FR-CLI-004", "FR-CLI-008")
@pytest.mark.parametrize("port", ["abc", "1.5", ""])
def test_a_port_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path, port: str) -> None:
    assert "invalid int value" in misused(capsys, "--extensions-dir", extensions, "--port", port)


@pytest.mark.requirement("FR-CLI-004")
def test_host_and_port_do_not_matter_for_stdio(extensions: Path) -> None:
    done = run("--extensions-dir", extensions, "--host", "256.256.256.256", "--port", 65535)
    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("FR-CLI-004", "FR-CLI-008")
def test_an_empty_host_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path) -> None:
    error = refused(capsys, "--extensions-dir", extensions, "--transport", "sse", "--host", "")
    assert error == "Error: Host must not be empty"


@pytest.mark.requirement("FR-CLI-008", "FR-SERVER-002", "FR-TRANSPORT-003")
def test_a_port_in_use_is_a_failure_to_start(extensions: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--extensions-dir", extensions, "--transport", "streamable-http", "--port", port)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "in use" in done.stderr


# FR-CLI-005, 006


@pytest.mark.requirement("FR-CLI-005", "FR-CLI-008")
def test_an_empty_name_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path) -> None:
    assert refused(capsys, "--extensions-dir", extensions, "--name", "") == "Error: server name must not be empty"


@pytest.mark.requirement("FR-CLI-005", "FR-CLI-008")
def test_a_name_beyond_255_characters_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path) -> None:
    error = refused(capsys, "--extensions-dir", extensions, "--name", "n" * 256)
    assert error.startswith("Error: ")
    assert "255" in error


@pytest.mark.requirement("FR-CLI-005", "FR-CLI-008")
def test_an_empty_version_is_refused(capsys: pytest.CaptureFixture[str], extensions: Path) -> None:
    error = refused(capsys, "--extensions-dir", extensions, "--version", "")
    assert error == "Error: version must not be empty"


@pytest.mark.requirement("FR-CLI-006", "FR-CLI-008")
@pytest.mark.parametrize("level", ["TRACE", ""])
def test_an_unknown_log_level_lists_the_choices(
    capsys: pytest.CaptureFixture[str], extensions: Path, level: str
) -> None:
    error = misused(capsys, "--extensions-dir", extensions, "--log-level", level)
    assert "invalid choice" in error
    assert all(choice in error for choice in ("DEBUG", "INFO", "WARNING", "ERROR"))


@pytest.mark.requirement("FR-CLI-006", "FR-LOG-005")
@pytest.mark.parametrize(("level", "shown"), [(None, True), ("WARNING", False)])
def test_the_log_level_is_info_unless_another_is_given(extensions: Path, level: str | None, shown: bool) -> None:
    done = run("--extensions-dir", extensions, *(["--log-level", level] if level else []))
    assert done.returncode == 0
    assert ("server started" in done.stderr) is shown


# FR-CLI-007


@pytest.mark.requirement("FR-CLI-007")
def test_help_tells_every_flag_with_its_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0
    shown = capsys.readouterr().out
    for flag in ("extensions-dir", "transport", "host", "port", "name", "version", "log-level", "help"):
        assert f"--{flag}" in shown
    for default in ("stdio", "127.0.0.1", "8000", "apcore-mcp", apcore_mcp.__version__, "INFO"):
        assert f"default: {default})" in shown
    for choice in ("streamable-http", "sse", "DEBUG", "WARNING", "ERROR"):
        assert choice in shown
    assert "default: None" not in shown


@pytest.mark.requirement("FR-CLI-007")
def test_the_script_and_the_module_are_the_same_program() -> None:
    for command in ([sys.executable, "-m", "apcore_mcp"], [str(Path(sys.executable).parent / "apcore-mcp")]):
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert done.stdout.startswith("usage: apcore-mcp ")
        assert done.stderr == ""
