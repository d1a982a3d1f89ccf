"""A seed shop on loopback: an HTTP API for the sample's tools, which forgets its orders at the end."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_serve.clear_json import ClearJson
from mcp_serve.guard import Guard, Hosts
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop

HOST = "127.0.0.1"
DOCUMENT = files(__package__).joinpath("shop.json")


@dataclass(kw_only=True, slots=True)
class Seed:
    """A packet on the shelf."""

    sku: str
    name: str
    price: float
    stock: int
    sow: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The packet as the API shows it."""
        facts = {"sku": self.sku, "name": self.name, "price": self.price, "stock": self.stock}
        return {**facts, "sow": list(self.sow)}


def _shelf() -> list[Seed]:
    return [
        Seed(sku="car-nan", name="Carrot Nantes", price=2.4, stock=40, sow=(3, 4, 5, 6)),
        Seed(sku="bea-sca", name="Runner bean Scarlet Emperor", price=3.2, stock=18, sow=(5, 6)),
        Seed(sku="lam-vit", name="Lamb's lettuce Vit", price=1.9, stock=55, sow=(8, 9)),
        Seed(sku="tom-mat", name="Tomato Matina", price=3.6, stock=12, sow=(2, 3)),
        Seed(sku="kal-ner", name="Kale Nero di Toscana", price=2.2, stock=25, sow=(4, 5)),
        Seed(sku="pum-kur", name="Pumpkin Uchiki Kuri", price=3.9, stock=6, sow=(4, 5)),
        Seed(sku="spi-mat", name="Spinach Matador", price=1.8, stock=60, sow=(3, 4, 8, 9)),
        Seed(sku="dil-mam", name="Dill Mammoth", price=1.7, stock=30, sow=(4, 5, 6)),
    ]


class Shop:
    """What is on the shelf, and what was ordered."""

    def __init__(self) -> None:
        self._seeds = {seed.sku: seed for seed in _shelf()}
        self._numbers = count(1001)

    def app(self) -> Starlette:
        """The API; the document beside this file describes it."""
        return Starlette(
            routes=[
                Route("/seeds", self._list),
                Route("/seeds/{sku}", self._get),
                Route("/orders", self._order, methods=["POST"]),
            ],
            middleware=[Middleware(Guard, hosts=Hosts(HOST)), Middleware(ClearJson)],
        )

    async def _list(self, request: Request) -> Response:
        text, month = request.query_params.get("text", "").casefold(), request.query_params.get("month", "")
        found = [
            seed.to_json()
            for seed in self._seeds.values()
            if text in seed.name.casefold() and (not month or month in map(str, seed.sow))
        ]
        return JSONResponse({"seeds": found})

    async def _get(self, request: Request) -> Response:
        seed = self._seeds.get(request.path_params["sku"])
        return _no_such() if seed is None else JSONResponse(seed.to_json())

    async def _order(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return JSONResponse({"problem": "Send JSON."}, 415)
        try:
            order = dict(await request.json())
        except (TypeError, ValueError):
            return JSONResponse({"problem": "Send an object with sku and packets."}, 400)
        seed = self._seeds.get(str(order.get("sku")))
        if seed is None:
            return _no_such()
        packets = order.get("packets")
        if not isinstance(packets, int) or not 0 < packets <= seed.stock:
            return JSONResponse({"problem": f"There are {seed.stock} packets left."}, 409)
        seed.stock -= packets
        total = round(packets * seed.price, 2)
        order = {"order": next(self._numbers), "sku": seed.sku, "packets": packets, "total": total}
        return JSONResponse(order, 201)


def _no_such() -> Response:
    return JSONResponse({"problem": "The shop has no such packet."}, 404)


async def _at_once(seconds: float) -> None:
    """Nothing in the shop takes long."""


@asynccontextmanager
async def shop_open(listening: socket.socket) -> AsyncIterator[None]:
    """Serve the shop while the block runs."""
    stop = Stop()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_http, Shop().app(), _at_once, listening, stop)
        try:
            yield
        finally:
            stop.set()
