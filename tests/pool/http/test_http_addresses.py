"""Which addresses an HTTP tool reaches: judged after resolution, and connected to as judged."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from httpcore2 import AnyIOBackend, AsyncNetworkStream
from hypothesis import given
from hypothesis import strategies as st

from pool.http.http_kit import Resolver, answer, call, failure, network, source, upstream
from toolgrove.pool.address import judge
from toolgrove.pool.host import resolve_host
from toolgrove.pool.http.dialer import Network

pytestmark = pytest.mark.anyio

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "2001:4860:4860::8888"]
PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd12::1"),
    *("198.18.0.1", "192.0.2.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808"),
    *("64:ff9b:1::a00:1", "2002:7f00:1::", "2002:808:808::", "2001:0:7f00:1::f5ff:fffe", "fec0::1", "::127.0.0.1"),
    *("192.88.99.1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1", "2606:4700::5efe:a00:1"),
]
NEVER = [
    *("0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "fd00:ec2::254"),
    *("224.0.0.1", "239.255.255.250", "ff02::1", "255.255.255.255", "240.0.0.1", "168.63.129.16", "100.100.100.200"),
    *("192.0.0.192", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::ffff:0:169.254.169.254"),
    *("2001:0:a9fe:a9fe::f5ff:fffe", "2001:0:808:808::5601:5601", "2606:4700::5efe:a9fe:a9fe", "", "shop", "1.2.3"),
    *("fd20:ce::254", "::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "64:ff9b::e000:1", "127.1", "0x7f000001"),
]


@pytest.mark.parametrize(
    ("address", "reach"),
    [*((one, "public") for one in PUBLIC), *((one, "private") for one in PRIVATE), *((one, "never") for one in NEVER)],
)
def test_every_address_has_its_place(address: str, reach: str) -> None:
    assert judge(address).reach == reach


@given(st.ip_addresses(v=4))
def test_an_address_wrapped_in_another_is_never_easier_to_reach(inner: IPv4Address) -> None:
    severity = {"public": 0, "private": 1, "never": 2}
    alone = severity[judge(str(inner)).reach]
    bits = int(inner)
    wrapped = [
        IPv6Address(0xFFFF << 32 | bits),
        IPv6Address(0x64FF9B << 96 | bits),
        IPv6Address(0x2002 << 112 | bits << 80 | 1),
        IPv6Address(0x20010000 << 96 | 0x08080808 << 64 | bits ^ 0xFFFFFFFF),
    ]
    assert all(severity[judge(str(one)).reach] >= alone for one in wrapped)


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER])
async def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(address: str) -> None:
    async with upstream(answer()) as server:
        inward = source(
            url=f"http://shop.example:{server.port}/", allowPrivate=False, network=network(["93.184.216.34", address])
        )
        error = await failure(inward)
        assert (error.code, error.facts["reason"]) == ("forbidden", "address_refused")
        assert server.connections == 0


@pytest.mark.parametrize("address", NEVER)
async def test_allow_private_opens_neither_metadata_nor_link_local(address: str) -> None:
    error = await failure(source(url="http://shop.example/", network=network([address])))
    assert (error.code, error.facts["reason"]) == ("forbidden", "address_refused")
    assert "allowPrivate" not in error.message


async def test_the_refusal_tells_the_operator_what_to_set() -> None:
    error = await failure(source("get_item", url="http://localhost/", allowPrivate=False))
    assert "allowPrivate: true on httpTools.get_item" in error.message
    assert "loopback" in error.message
    assert "127.0.0.1" not in error.message


@pytest.mark.parametrize("spelling", ["127.1", "0", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"])
async def test_whatever_the_resolver_makes_of_a_spelling_is_judged(spelling: str) -> None:
    # The url is not accepted in the first place; this is what holds behind it.
    assert {judge(address).reach for address in await resolve_host(spelling, 80)} <= {"private", "never"}


class Recorder(AnyIOBackend):
    """Sends connections for a public address to this machine, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def connect_tcp(self, host: str, *rest: Any, **options: Any) -> AsyncNetworkStream:
        self.asked.append(host)
        return await super().connect_tcp("127.0.0.1", *rest, **options)


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    resolver, recorder = Resolver(["93.184.216.34"], ["127.0.0.1"]), Recorder()
    async with upstream(answer()) as server:
        rebinding = source(
            url=f"http://shop.example:{server.port}/x",
            allowPrivate=False,
            network=Network(resolve=resolver, backend=recorder),
        )
        assert (await call(rebinding))["status"] == 200
        assert recorder.asked == ["93.184.216.34"]
        assert resolver.asked == ["shop.example"]
        assert server.seen[0].headers["host"] == f"shop.example:{server.port}"

        # The next connection resolves anew, and meets the attacker's second answer.
        assert (await failure(rebinding)).facts["reason"] == "address_refused"
        assert recorder.asked == ["93.184.216.34"]
        assert len(server.seen) == 1


async def test_a_name_without_an_address_is_unreachable() -> None:
    error = await failure(source(url="http://shop.example/", network=network([])))
    assert (error.code, error.facts["reason"], error.retryable) == ("internal", "unreachable", True)


async def test_the_second_address_is_tried_where_the_first_does_not_answer() -> None:
    async with upstream(answer()) as server:
        two = source(url=f"http://shop.example:{server.port}/", network=network(["127.0.0.2", "127.0.0.1"]))
        assert (await call(two))["status"] == 200
