"""A warm Python is like a cold one in all that a program can see: or what tests prove would not hold for users."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import wait_until
from warm.command import Process, python

SEEN = """
import asyncio, atexit, gc, json, logging, os, signal, sys, threading
atexit.register(print, "at the end")
seen = {
    "argv": sys.argv[1:],
    "name": __name__,
    "main": sys.modules["__main__"].__dict__ is globals(),
    "directory": os.getcwd(),
    "environment": {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "_", "LC_CTYPE")},
    "signals": [getattr(h := signal.getsignal(n), "__qualname__", str(h)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)],
    "blocked": [str(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "streams": [(s.fileno(), s.encoding, s.errors, s.line_buffering, s.write_through, s.mode) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "open": sorted(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(),
    "logging": [logging.root.handlers, logging.root.level, logging.lastResort.level],
    "collector": [gc.isenabled(), gc.get_threshold()],
    "umask": os.umask(0),
    "path": sys.path,
    "tail": sys.stdin.read(),
}
print(json.dumps(seen, default=str, indent=1))
"""  # noqa: E501
ENDS = {
    "well": "pass",
    "with a code": "import sys; sys.exit(3)",
    "with a reason": "import sys; sys.exit('no')",
    "at once": "import os; os._exit(5)",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "by a fault": "1 / 0",
    "after its threads": "import threading, time; threading.Timer(0.1, print, ['late']).start()",
}


def both(*arguments: str, **options: object) -> list[subprocess.CompletedProcess[str]]:
    commands = ([sys.executable, *arguments], python(*arguments))
    return [subprocess.run(command, capture_output=True, text=True, **options) for command in commands]  # type: ignore[call-overload]


def test_a_program_sees_what_it_would_see_after_a_cold_start(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    script = tmp_path / "folder" / "seen.py"
    script.write_text(SEEN)
    environment = os.environ | {"MARK": "ä", "PYTHONPATH": str(tmp_path)}
    ways = [("-c", SEEN, "a b", "ü"), (str(script), "x"), ("-m", "folder.seen", "y")]
    for way, unbuffered in itertools.product(ways, ["", "1"]):
        surroundings = environment | {"PYTHONUNBUFFERED": unbuffered}
        cold, warm = both(*way, cwd=tmp_path, env=surroundings, input="to the end")
        assert (cold.returncode, cold.stderr) == (0, "")
        assert (warm.stdout, warm.stderr, warm.returncode) == (cold.stdout, cold.stderr, cold.returncode)


@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_as_it_would_after_a_cold_start(end: str) -> None:
    cold, warm = both("-c", ENDS[end])
    assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout)
    assert warm.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]


WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_program_before_its_process_is_seen_to_end(number: signal.Signals) -> None:
    with Process(python("-c", WAITS), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.real_pid
        process.send_signal(number)
        assert process.wait() == -number
        assert not Path(f"/proc/{process.real_pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_the_launcher_is_one_to_the_program(number: signal.Signals) -> None:
    with subprocess.Popen(python("-c", WAITS), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        real = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait() == -number
        wait_until(lambda: not Path(f"/proc/{real}").exists())


def test_a_session_of_its_own_ends_as_one() -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {WAITS!r}])"
    with subprocess.Popen(python("-c", parent), stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{grandchild}").exists())
