"""`python -I -S launcher.py SOCKET ARGUMENTS…`: lives and dies as the `python ARGUMENTS…` that the server forks."""

import json
import os
import signal
import socket
import sys

FORWARDED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]

signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
address, *arguments = sys.argv[1:]
told = os.environ.pop("WARM_TELL", None)
request = {
    "arguments": arguments,
    "directory": os.getcwd(),
    "environment": dict(os.environ),
    "leads_session": os.getsid(0) == os.getpid(),
}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(address)
    socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
    child = int(server.recv(32) or sys.exit("the warm server has gone"))
    for number in FORWARDED:
        signal.signal(number, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    if told is not None:
        os.write(int(told), b"%d\n" % child)
        os.close(int(told))
    # The streams are the child's alone: whoever reads them sees their end when it has ended.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    status = int(server.recv(32) or -signal.SIGKILL)
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
