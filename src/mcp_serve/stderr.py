"""What is written to stderr, through a queue: where nobody reads, it is lost instead of stopping us.

The descriptor itself stays as it is. It is the parent's too, which expects that its own writes wait.
"""

import contextlib
import os
import queue
import stat
import threading
from collections.abc import Iterator

from mcp_serve.diversion import diverted

CHUNK = 2**16
MOST = 64
"""Chunks that wait for a slow reader."""
FLUSHED_WITHIN = 0.5
LOST = b"[%d bytes of the log are lost: nobody read them]\n"


@contextlib.contextmanager
def queued_stderr() -> Iterator[None]:
    """Let all that this process writes to stderr meanwhile pass through a queue, if stderr needs a reader."""
    if not _needs_a_reader(2):
        yield
        return
    source, ours = os.pipe()
    chunks: queue.Queue[bytes] = queue.Queue(MOST)
    with contextlib.ExitStack() as stack:
        real = stack.enter_context(diverted(2, ours))
        os.close(ours)
        threading.Thread(target=_collect, args=(source, chunks), daemon=True).start()
        passing_on = threading.Thread(target=_pass_on, args=(chunks, real), daemon=True)
        passing_on.start()
        yield
    passing_on.join(FLUSHED_WITHIN)  # it ends with the last writer, which may be a child that a module left behind


def _needs_a_reader(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _collect(source: int, chunks: "queue.Queue[bytes]") -> None:
    lost = 0
    while chunk := os.read(source, CHUNK):
        try:
            chunks.put_nowait(LOST % lost + chunk if lost else chunk)
            lost = 0
        except queue.Full:
            lost += len(chunk)
    os.close(source)
    chunks.put(b"")


def _pass_on(chunks: "queue.Queue[bytes]", real: int) -> None:
    while chunk := chunks.get():
        with contextlib.suppress(OSError):  # the reader is gone
            while chunk:
                chunk = chunk[os.write(real, chunk) :]
