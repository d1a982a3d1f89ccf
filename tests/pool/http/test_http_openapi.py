"""OpenAPI documents: every operation becomes a tool, and what cannot be one says why."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest
import yaml

from pool.http.http_kit import answer, by_path, failure, invoke, no_secrets, source, tools, upstream
from pool.http.shop import DOCUMENT, TOKEN, Shop, open_shop
from toolgrove.errors import Forbidden, GroveError, InvalidArgument
from toolgrove.pool.http import HttpSource
from toolgrove.pool.http.openapi import document as documents
from toolgrove.pool.http.openapi import operations
from toolgrove.pool.http.openapi.schema import Schemas
from toolgrove.pool.offer import Offer, Unavailable
from toolgrove.pool.pool import Pool
from toolgrove.pool.snapshot import PoolSnapshot

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop


def written(folder: Path, document: Any, name: str = "shop.json") -> Path:
    path = folder / name
    text = yaml.safe_dump(document, sort_keys=False) if name.endswith("yaml") else json.dumps(document)
    path.write_text(text, encoding="utf-8")
    return path


def shop_source(path: Path, shop: Shop, **entry: Any) -> HttpSource:
    secrets = no_secrets(SHOP_TOKEN=TOKEN)
    headers = {"Authorization": "Bearer ${env:SHOP_TOKEN}"}
    return source("shop", openapi=str(path), url=shop.base, headers=headers, secrets=secrets, **entry)


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize("name", ["shop.json", "shop.yaml"])
async def test_every_operation_becomes_a_tool_that_works(shop: Shop, tmp_path: Path, name: str) -> None:
    shopping = shop_source(written(tmp_path, DOCUMENT, name), shop)
    found = await tools(shopping)
    assert set(found) == {"shop_listItems", "shop_items_add", "shop_getItem", "shop_delete_items_id", "shop_login"}
    approvals = {name: tool.approval for name, tool in found.items()}
    assert approvals["shop_listItems"] is approvals["shop_getItem"] is None
    assert approvals["shop_items_add"] == "HTTP POST"
    assert approvals["shop_delete_items_id"] == "HTTP DELETE"

    listed = await invoke(shopping, found["shop_listItems"], {"limit": 5, "tag": ["a", "b"], "filter_name_": "x&y"})
    assert listed == {"status": 200, "body": [{"id": "1", "name": "lamp", "note": None}]}
    assert shop.requests[-1] == ("GET", "/v1/items?limit=5&tag=a&tag=b&filter%5Bname%5D=x%26y")

    added = await invoke(shopping, found["shop_items_add"], {"body": {"name": "chair"}})
    assert (added["status"], added["body"]["id"]) == (201, "2")
    assert (await invoke(shopping, found["shop_getItem"], {"id": "2"}))["body"]["name"] == "chair"
    assert (await invoke(shopping, found["shop_delete_items_id"], {"id": "2"})) == {"status": 204, "body": None}
    with pytest.raises(GroveError) as gone:
        await invoke(shopping, found["shop_getItem"], {"id": "2"})
    assert (gone.value.code, gone.value.facts["status"]) == ("not_found", 404)

    login = await invoke(shopping, found["shop_login"], {"body": {"user": "a b&c"}})
    assert login["body"] == {"got": "user=a+b%26c", "type": "application/x-www-form-urlencoded"}


async def test_reads_names_operations_that_only_read_and_no_delete_is_one(shop: Shop, tmp_path: Path) -> None:
    found = await tools(shop_source(written(tmp_path, DOCUMENT), shop, reads=["items.*", "delete_*"]))
    assert (found["shop_items_add"].mutates, found["shop_items_add"].approval) == (False, None)
    assert (found["shop_delete_items_id"].mutates, found["shop_login"].mutates) == (True, True)
    assert found["shop_login"].reads_if == 'httpTools.shop.reads: ["login"]'


async def test_schemas_are_translated_and_self_contained(shop: Shop, tmp_path: Path) -> None:
    found = await tools(shop_source(written(tmp_path, DOCUMENT), shop))
    listing = found["shop_listItems"].spec
    assert listing.description == "List the items."
    assert listing.input_schema["properties"] == {
        "limit": {"type": "integer", "exclusiveMinimum": 0, "description": "At most so many."},
        "tag": {"type": "array", "items": {"type": "string"}},
        "filter_name_": {"type": "string"},
        "X-Trace": {"type": "string"},
    }
    assert listing.input_schema["additionalProperties"] is False
    adding = found["shop_items_add"].spec.input_schema
    assert adding["properties"]["body"] == {"$ref": "#/$defs/Item"}
    assert adding["required"] == ["body"]
    assert adding["$defs"]["Item"] == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "part_of": {"$ref": "#/$defs/Item"},
        },
    }
    checked = jsonschema_rs.validator_for(dict(adding))
    assert checked.is_valid({"body": {"name": "x", "part_of": {"name": "y", "note": None}}})
    assert not checked.is_valid({"body": {"name": "x", "part_of": {"name": 1}}})
    one = found["shop_getItem"].spec.output_schema
    assert one["properties"]["body"] == {"$ref": "#/$defs/Item"}
    assert one["$defs"]["Item"]["required"] == ["id", "name"]
    assert "$defs" not in found["shop_items_add"].spec.output_schema


@pytest.mark.parametrize(
    ("version", "schema", "expected"),
    [
        ("3.0.0", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            "3.0.0",
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ("3.0.0", {"allOf": [{}], "nullable": True}, {"anyOf": [{"allOf": [{}]}, {"type": "null"}]}),
        ("3.1.0", {"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ("3.0.0", {"maximum": 5, "exclusiveMaximum": True}, {"exclusiveMaximum": 5}),
        ("3.0.0", {"maximum": 5, "exclusiveMaximum": False}, {"maximum": 5}),
        ("3.1.0", {"exclusiveMaximum": 5}, {"exclusiveMaximum": 5}),
        ("3.1.0", {"items": False, "prefixItems": [{"x-a": 1}, True]}, {"items": False, "prefixItems": [{}, True]}),
        (
            "3.0.0",
            {"properties": {"nullable": {"example": 1}, "x-a": {}}, "additionalProperties": {"xml": {}}},
            {"properties": {"nullable": {}, "x-a": {}}, "additionalProperties": {}},
        ),
        (
            "3.1.0",
            {"required": ["a", "b"], "properties": {"a": {"readOnly": True}, "b": {"writeOnly": True}}},
            {"required": ["b"], "properties": {"b": {}}},
        ),
        ("3.1.0", {"$ref": "#/a/x", "description": "d"}, {"$ref": "#/$defs/x", "description": "d"}),
        ("3.1.0", {"anyOf": [{"$ref": "#/a/x"}, {"$ref": "#/b/x"}]}, {"anyOf": [_ref("x"), _ref("x_2")]}),
    ],
)
def test_a_schema_keeps_its_meaning(version: str, schema: Any, expected: Any) -> None:
    document = documents.OpenApiDocument({"openapi": version, "a": {"x": {"type": "string"}}, "b": {"x": {}}})
    assert Schemas(document, side="request", budget=100).take(schema) == expected


async def test_no_argument_sets_a_credential(shop: Shop, tmp_path: Path) -> None:
    shopping = shop_source(written(tmp_path, DOCUMENT), shop)
    listing = (await tools(shopping))["shop_listItems"]
    for name in ("Authorization", "session", "Cookie", "Host", "X-HTTP-Method-Override"):
        with pytest.raises(Forbidden) as caught:
            await invoke(shopping, listing, {name: "x"})
        assert caught.value.facts["reason"] == "http_policy"
    for value in ("a\r\nHost: evil", "a\nb", "a\x00b", "ü"):
        with pytest.raises(InvalidArgument) as refused:
            await invoke(shopping, listing, {"X-Trace": value})
        assert refused.value.facts["reason"] == "header_argument"
    assert shop.requests == []


async def test_the_properties_of_an_object_cannot_name_another_method(tmp_path: Path) -> None:
    async with upstream(answer()) as server:
        operation = {"operationId": "x", "parameters": [{"name": "p", "in": "query"}]}
        api = source("api", openapi=str(written(tmp_path, with_operation(operation))), url=server.base)
        error = await failure(api, {"p": {"X-HTTP-Method-Override": "DELETE"}}, "api_x")
        assert (error.code, error.facts["reason"]) == ("forbidden", "http_policy")
        assert server.connections == 0


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_field_of_a_form_cannot_name_another_method(tmp_path: Path, media: str) -> None:
    async with upstream(answer()) as server:
        operation = {"operationId": "x", "requestBody": {"content": {media: {"schema": {"type": "object"}}}}}
        document = with_operation(operation, method="post")
        api = source("api", openapi=str(written(tmp_path, document)), url=server.base, reads=["x"])
        error = await failure(api, {"body": {"_method": "DELETE"}}, "api_x")
        assert (error.code, error.facts["reason"]) == ("forbidden", "http_policy")
        assert server.connections == 0


def with_operation(operation: Any, path: str = "/x", method: str = "get", **document: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "servers": [{"url": "http://shop.example"}],
        "paths": {path: {method: operation}},
        **document,
    }


async def offers(folder: Path, document: Any, **entry: Any) -> list[Offer]:
    return list(await source("shop", openapi=str(written(folder, document)), **entry).discover())


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (with_operation({"parameters": [{"$ref": "http://evil/p"}]}), "outside of the document"),
        (with_operation({"parameters": [{"$ref": "file:///etc/passwd"}]}), "outside of the document"),
        (with_operation({"parameters": [{"$ref": "#/servers/" + "9" * 5_000}]}), "does not hold"),
        (with_operation({"parameters": [{"$ref": "#/nowhere"}]}), "does not hold"),
        (
            with_operation({"parameters": [{"name": "a", "in": "query", "schema": {"$ref": "other.json#/A"}}]}),
            "outside of the document",
        ),
        (with_operation({}, "/x/{id}"), "'id'"),
        (with_operation({"parameters": [{"name": "id", "in": "path", "schema": {}}]}), "'id'"),
        (with_operation({}, "/x/${env:HOME}"), "no reference"),
        (with_operation({}, "/../x"), "'..'"),
        (with_operation({}, "x"), "begin with '/'"),
        (with_operation({"servers": [{"url": "http://evil"}]}), "its own servers"),
        (with_operation({}) | {"paths": {"/x": {"servers": [{"url": "http://evil"}], "get": {}}}}, "its own servers"),
        (with_operation({"parameters": [{"name": "_method", "in": "query", "required": True}]}), "never comes from"),
        (with_operation({"parameters": [{"name": "Cookie", "in": "header", "required": True}]}), "never comes from"),
        (with_operation({"parameters": [{"name": "s", "in": "cookie", "required": True}]}), "never comes from"),
        (with_operation({"parameters": [{"in": "query"}]}), "no name"),
        (with_operation({"parameters": [{"name": "a", "in": "query", "schema": 7}]}), "not an object"),
        (with_operation({"parameters": [{"$ref": "#/loop"}]}, loop={"$ref": "#/loop"}), "in circles"),
        (with_operation({"parameters": [{"name": "a", "in": "matrix"}]}), "not known"),
        (
            with_operation({"requestBody": {"required": True, "content": {"multipart/mixed": {}}}}, method="post"),
            "its body is multipart/mixed",
        ),
        (with_operation({"parameters": [{"name": "a", "in": "query", "schema": {"type": "strin"}}]}), "JSON Schema"),
        (with_operation({"summary": "a\u200bb"}), "U+200B"),
        (
            with_operation({"requestBody": {"content": {"application/json": {"schema": {"enum": list(range(6000))}}}}}),
            "too large",
        ),
    ],
)
async def test_an_operation_that_cannot_be_a_tool_says_why_and_harms_no_other(
    tmp_path: Path, document: dict[str, Any], reason: str
) -> None:
    document["paths"]["/good"] = {"get": {"operationId": "good"}}
    by_name = {offer.own_name: offer for offer in await offers(tmp_path, document)}
    assert by_name.pop("good").standing == "ready"
    [bad] = by_name.values()
    assert (bad.standing, bad.tool) == ("unvalidated", None)
    assert reason in bad.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not say openapi: 3.0, 3.1 or 3.2, nor swagger: 2.0"),
        ("swagger: '1.2'", "nor swagger: 2.0"),
        ("swagger: '2.0'\npaths: {}", "set url in the entry"),
        ("swagger: '2.0'\npaths: {/a: {get: {parameters: [{$ref: '#/nowhere'}]}}}", "does not hold"),
        ("swagger: '2.0'\npaths: {/a: {get: {parameters: 3}}}", "does not follow Swagger 2.0"),
        ("openapi: 3.3.0", "openapi: 3.0, 3.1 or 3.2"),
        ("{", "neither valid JSON nor valid YAML"),
        ("a: [\nb", "line 3"),
        ("openapi: !!python/object/apply:os.system [x]", "neither"),
        ("openapi: 3.0.0\nx: &a [*a]", "too large or too deep"),
        ("openapi: 3.0.0\n? [1]\n: 2", "neither"),
        ("openapi: 3.0.0\npaths: {}", "set url in the entry"),
        ("openapi: 3.0.0\nservers: [{url: /v1}]", "set url in the entry"),
        ("openapi: 3.0.0\nservers: [{url: 'http://${env:X}/'}]", "no references"),
        ("openapi: 3.0.0\nservers: [{url: 'http://h/{v}'}]", "'v'"),
        ("openapi: 3.0.0\nservers: [{url: 'http://u@h/'}]", "user"),
        (
            "openapi: 3.0.0\nservers: [{url: 'http://h'}]\npaths: {/a: {$ref: 'http://evil/'}}",
            "outside of the document",
        ),
    ],
)
async def test_a_document_that_cannot_be_read_makes_its_source_unavailable(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "api.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Unavailable) as caught:
        await source("shop", openapi=str(path)).discover()
    assert reason in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


async def test_a_missing_document_is_told_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be read") as caught:
        await source("shop", openapi=str(tmp_path / "none.json")).discover()
    assert str(tmp_path) not in str(caught.value)


def test_a_handful_of_aliases_that_stand_for_billions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_NODES", 10_000)
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 20)]
    path = tmp_path / "laughs.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(Unavailable, match="too large"):
        documents.load(path)


async def test_size_and_number_of_operations_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = with_operation({"operationId": "a"})
    document["paths"]["/y"] = {"get": {"operationId": "b"}}
    monkeypatch.setattr(operations, "MAX_OPERATIONS", 1)
    with pytest.raises(Unavailable, match="2 operations; at most 1"):
        await offers(tmp_path, document)
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    with pytest.raises(Unavailable, match="larger than"):
        await offers(tmp_path, document)


async def test_base_addresses_come_from_the_document_or_from_the_entry(tmp_path: Path) -> None:
    reply = by_path({"/v2/x?key=k%2F1": answer(body=b"1"), "/x": answer(body=b"2"), "/v1/x": answer(body=b"3")})
    async with upstream(reply) as server:
        for servers, url, expected in [
            ([{"url": "http://evil.example"}], f"{server.base}/v2/?key=${{env:K}}", 1),
            ([{"url": "/v1"}], server.base, 2),
            ([{"url": f"{server.base}/{{v}}", "variables": {"v": {"default": "v1"}}}], None, 3),
        ]:
            path = written(tmp_path, with_operation({"operationId": "x"}, servers=servers))
            entry: dict[str, Any] = {"openapi": str(path)} | ({"url": url} if url else {})
            api = source("api", secrets=no_secrets(K="k/1"), **entry)
            assert (await invoke(api, (await tools(api))["api_x"]))["body"] == expected


async def test_the_same_name_in_two_places_stays_two_arguments(tmp_path: Path) -> None:
    places: list[Any] = [
        {"name": "id", "in": place, "required": True, "schema": {}} for place in ("path", "query", "header")
    ]
    operation: dict[str, Any] = {
        "operationId": "x",
        "parameters": [*places, {"name": "body", "in": "query", "schema": {}}],
    }
    operation |= {"requestBody": {"content": {"application/json": {"schema": {}}}}}
    async with upstream(answer()) as server:
        path = written(tmp_path, with_operation(operation, "/x/{id}", "post"))
        api = source("api", openapi=str(path), url=server.base)
        tool = (await tools(api))["api_x"]
        arguments = {"id": "1", "id_query": "2", "id_header": "3", "body": "4", "body_request": [5]}
        assert set(tool.spec.input_schema["properties"]) == set(arguments)
        await invoke(api, tool, arguments)
        [seen] = server.seen
        assert (seen.target, seen.headers["id"], seen.json) == ("/x/1?id=2&body=4", "3", [5])


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ({}, ["a", "b"], "p=a&p=b"),
        ({"explode": False}, ["a", "b"], "p=a%2Cb"),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "p=a%7Cb"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "p=a%20b"),
        ({"style": "deepObject"}, {"a": 1, "b": {"c": [2, 3]}}, "p%5Ba%5D=1&p%5Bb%5D%5Bc%5D=2&p%5Bb%5D%5Bc%5D=3"),
        ({"content": {"application/json": {"schema": {}}}}, {"a": [1]}, "p=%7B%22a%22%3A%5B1%5D%7D"),
        ({}, {"a": 1, "b": [2], "c": None}, "a=1&b=%5B2%5D"),
        ({"explode": False}, {"a": 1, "b": "x"}, "p=a%2C1%2Cb%2Cx"),
        ({"style": "pipeDelimited", "explode": True}, ["a", "b"], "p=a&p=b"),
        ({}, None, ""),
        ({}, True, "p=true"),
    ],
)
async def test_query_styles(tmp_path: Path, style: dict[str, Any], value: Any, query: str) -> None:
    operation = {"operationId": "x", "parameters": [{"name": "p", "in": "query", **style}]}
    async with upstream(answer()) as server:
        api = source("api", openapi=str(written(tmp_path, with_operation(operation))), url=server.base)
        await invoke(api, (await tools(api))["api_x"], {"p": value})
        assert server.seen[0].target == (f"/x?{query}" if query else "/x")


async def test_an_answer_that_breaks_the_document_is_told_as_such(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["id"]}
    responses = {"200": {"content": {"application/json": {"schema": schema}}}}
    async with upstream(answer(body=b"{}")) as server:
        path = written(tmp_path, with_operation({"operationId": "x", "responses": responses}))
        error = await failure(source("api", openapi=str(path), url=server.base), tool="api_x")
        assert (error.facts["reason"], error.facts["status"]) == ("output_schema", 200)


async def test_a_document_that_changes_is_read_again(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgrove.pool.http.source._FOLLOW", 0.01)
    path = written(tmp_path, DOCUMENT)
    shopping = shop_source(path, shop)
    before = await tools(shopping)
    changed = anyio.Event()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shopping.run, changed.set)
            await anyio.wait_all_tasks_blocked()
            smaller = copy.deepcopy(DOCUMENT)
            del smaller["paths"]["/login"]
            smaller["paths"]["/items"]["get"]["summary"] = "Other."
            written(tmp_path, smaller)
            await changed.wait()
            after = await tools(shopping)
            tasks.cancel_scope.cancel()
    assert set(before) - set(after) == {"shop_login"}
    with pytest.raises(GroveError) as caught:
        await invoke(shopping, before["shop_listItems"])
    assert caught.value.facts["reason"] == "definition_changed"
    assert (await invoke(shopping, before["shop_getItem"], {"id": "1"}))["status"] == 200
    assert [offer.standing for offer in shopping.last_known()] == ["unavailable"] * len(after)


async def test_a_document_that_takes_longer_than_the_budget_comes_in_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgrove.pool.http.source._FOLLOW", 0.01)
    document = with_operation({"operationId": "first"})
    document["paths"] |= {f"/y{n}": {"get": {"operationId": f"o{n}"}} for n in range(300)}
    complete = anyio.Event()

    def changed(snapshot: PoolSnapshot) -> None:
        if len(snapshot.offers) == 301 and not snapshot.sources["shop"].problem:
            complete.set()

    late = source("shop", openapi=str(written(tmp_path, document)))
    with anyio.fail_after(20):
        async with Pool([], [late], budget=0.005, changed=changed).running():
            await complete.wait()


async def test_a_pipe_in_the_place_of_a_document_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unavailable, match="not a regular file"):
        await source("shop", openapi=str(tmp_path / "pipe")).discover()


async def test_long_and_odd_operation_ids_become_legal_names(tmp_path: Path) -> None:
    document = with_operation({"operationId": "öffne die/Tür!"})
    document["paths"]["/y"] = {"get": {"operationId": "a" * 200}}
    document["paths"]["/z/{a}-{b}"] = {
        "get": {"parameters": [{"name": n, "in": "path", "required": True, "schema": {}} for n in "ab"]}
    }
    names = [offer.name for offer in await offers(tmp_path, document)]
    assert names[0] == "shop_ffne_die_T_r"
    assert len(names[1]) == 64
    assert names[2] == "shop_get_z_a_-_b"
