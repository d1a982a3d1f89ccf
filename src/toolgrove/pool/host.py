"""From the name of a host to addresses that may be reached: resolved once, and every one of them judged."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio

from toolgrove.pool.address import Judgement, judge

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(Exception):
    """A host leads to an address that is not reached; `may_be_allowed` is whether the operator could change that."""

    def __init__(self, address: str, judgement: Judgement) -> None:
        super().__init__(f"{address} is a {judgement.kind} address")
        self.address = address
        self.kind = judgement.kind
        self.may_be_allowed = judgement.reach == "private"


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, in the order in which the system prefers them."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def checked_addresses(
    host: str, port: int, *, resolve: Resolve, allow_private: bool, allow_loopback: bool = False
) -> Sequence[str]:
    """The addresses of a host, if every one may be reached; who connects goes to one of these, not to the name."""
    addresses = await resolve(host, port)
    for address in addresses:
        judgement = judge(address)
        private = allow_private or (allow_loopback and judgement.kind == "loopback")
        if judgement.reach not in (("public", "private") if private else ("public",)):
            raise AddressRefused(address, judgement)
    return addresses


def private_kind(host: str) -> str:
    """What kind of address a host is if it says itself that only `allowPrivate` opens it; empty for any other."""
    try:
        judgement = judge(str(ip_address("127.0.0.1" if host == "localhost" else host)))
    except ValueError:
        return ""
    return judgement.kind if judgement.reach == "private" else ""


def names_loopback(url: str) -> bool:
    """Whether a URL says itself that it stays on this machine; a name or a reference to a secret does not."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
