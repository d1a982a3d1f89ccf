"""Opens connections: resolves a name once, checks every address, and connects to the very one that was checked."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import anyio
from httpcore2 import (
    SOCKET_OPTION,
    AnyIOBackend,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    default_ssl_context,
)

from toolgrove.errors import Forbidden, UpstreamFailed
from toolgrove.pool.host import AddressRefused, Resolve, checked_addresses, resolve_host

log = logging.getLogger("toolgrove.pool")
_PATIENCE = 3.0
"""Seconds for an address that has another one behind it."""


@cache
def system_tls() -> ssl.SSLContext:
    """What the system trusts; read once, since it takes a while."""
    return default_ssl_context()


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """How the outside is reached; there is no proxy, because it would choose the address itself."""

    resolve: Resolve = resolve_host
    backend: AsyncNetworkBackend = field(default_factory=AnyIOBackend)
    tls: Callable[[], ssl.SSLContext] = system_tls


class Dialer(AsyncNetworkBackend):
    """The one way out of an HTTP tool; TLS still names and verifies the host."""

    def __init__(self, network: Network, *, entry: str, allow_private: bool) -> None:
        self._network = network
        self._entry = entry
        self._allow_private = allow_private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of the library; a call is bounded as a whole
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """A connection to the first checked address that answers."""
        addresses = await self._checked(host, port)
        for address in addresses[:-1]:
            with anyio.move_on_after(_PATIENCE):
                try:
                    return await self._network.backend.connect_tcp(address, port, timeout, local_address)
                except ConnectError:
                    continue
        return await self._network.backend.connect_tcp(addresses[-1], port, timeout, local_address)

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await checked_addresses(
                host, port, resolve=self._network.resolve, allow_private=self._allow_private
            )
        except AddressRefused as refused:
            log.warning("%s: %s leads to %s (%s), which is refused", self._entry, host, refused.address, refused.kind)
            raise self._refusal(refused) from None
        except OSError:
            addresses = ()
        if not addresses:
            raise UpstreamFailed(
                f"The host of {self._entry} has no address. Try again later; if it stays so, the operator has to "
                "correct the url.",
                reason="unreachable",
                retryable=True,
            )
        return addresses

    def _refusal(self, refused: AddressRefused) -> Forbidden:
        way = f" The operator can allow it with allowPrivate: true on {self._entry}." if refused.may_be_allowed else ""
        return Forbidden(
            f"The host of {self._entry} leads to a {refused.kind} address, which HTTP tools do not reach; "
            f"do not retry.{way}",
            reason="address_refused",
        )
