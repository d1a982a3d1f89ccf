"""Which network addresses tools may reach; knows no names and opens nothing."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, NamedTuple

Reach = Literal["public", "private", "never"]
IP = IPv4Address | IPv6Address


class Judgement(NamedTuple):
    """How far an address may be reached, and what kind it is; `private` needs the operator's word."""

    reach: Reach
    kind: str


_NEVER: tuple[tuple[str, str], ...] = (
    ("168.63.129.16/32", "cloud metadata"),  # stands in public or private space, so no class of addresses tells
    ("100.100.100.200/32", "cloud metadata"),
    ("192.0.0.192/32", "cloud metadata"),
    ("fd00:ec2::/32", "cloud metadata"),
    ("fd20:ce::/32", "cloud metadata"),
    ("fd00:42::/32", "cloud metadata"),
    ("0.0.0.0/8", "unspecified"),
    ("::/128", "unspecified"),
    ("169.254.0.0/16", "link-local"),
    ("fe80::/10", "link-local"),
    ("224.0.0.0/4", "multicast"),
    ("ff00::/8", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_PRIVATE: tuple[tuple[str, str], ...] = (
    ("127.0.0.0/8", "loopback"),
    ("::1/128", "loopback"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("192.88.99.0/24", "6to4 relay"),
    ("3fff::/20", "documentation"),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SEVERITY: dict[Reach, int] = {"public": 0, "private": 1, "never": 2}


def _networks(table: tuple[tuple[str, str], ...]) -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((ip_network(text), kind) for text, kind in table)


_NEVER_NETWORKS, _PRIVATE_NETWORKS = _networks(_NEVER), _networks(_PRIVATE)


def judge(address: str) -> Judgement:
    """What may be done with an address as a resolver writes it; what cannot be read is never reached."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return Judgement("never", "unreadable")
    return max((_judge(one) for one in _faces(ip)), key=lambda verdict: _SEVERITY[verdict.reach])


def _judge(ip: IP | Judgement) -> Judgement:
    if isinstance(ip, Judgement):
        return ip
    for network, kind in _NEVER_NETWORKS:
        if ip in network:
            return Judgement("never", kind)
    for network, kind in _PRIVATE_NETWORKS:
        if ip in network:
            return Judgement("private", kind)
    if not ip.is_global or (isinstance(ip, IPv6Address) and ip not in _GLOBAL_UNICAST):
        return Judgement("private", "private")
    return Judgement("public", "public")


def _faces(ip: IP) -> Iterator[IP | Judgement]:
    """The address, or what it wraps: a tunnel is judged by its other end, and is never simply public."""
    if isinstance(ip, IPv4Address):
        yield ip
        return
    low = IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip.ipv4_mapped is not None:
        yield ip.ipv4_mapped
        return
    for network, kind in _TRANSLATED:
        if ip in network:
            yield from (low, Judgement("private", kind))
            return
    if ip.sixtofour is not None:
        yield from (ip.sixtofour, Judgement("private", "6to4"))
        return
    if ip.teredo is not None:
        yield from (*ip.teredo, Judgement("private", "Teredo"))
        return
    yield ip
    if (int(ip) >> 32) & 0xFDFFFFFF == 0x00005EFE:
        yield from (low, Judgement("private", "ISATAP"))
    elif int(ip) >> 32 == 0 and int(ip) > 1:
        yield low  # the old IPv4-compatible form


_TRANSLATED = (
    (IPv6Network("64:ff9b::/96"), "NAT64"),
    (IPv6Network("64:ff9b:1::/48"), "NAT64"),
    (IPv6Network("::ffff:0:0:0/96"), "IPv4-translated"),
)
