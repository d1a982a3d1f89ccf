"""OpenAPI documents of other kinds and from other places: a URL, Swagger 2.0, 3.2, FastAPI; forms, files and styles."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from grove_kit import ManualClock
from pool.http.http_kit import Seen, Send, Upstream, answer, failure, invoke, no_secrets, tools, upstream
from toolgrove import Config, Grove
from toolgrove.config import HttpToolConfig
from toolgrove.pool.http import HttpSource
from toolgrove.pool.http import source as sources
from toolgrove.pool.offer import Unavailable
from toolgrove.store.state import MemoryPins

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


def fastapi(**more: Any) -> Json:
    """A document as FastAPI writes it: no servers, and function, path and method in each operationId."""
    number = {"name": "item_id", "in": "path", "required": True, "schema": {"type": "integer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "paths": {
            "/items/": {
                "get": {"operationId": "list_items_items__get", "summary": "List Items", "tags": ["items"]},
                "post": {"operationId": "create_item_items__post", "summary": "Create Item", "tags": ["items"]},
            },
            "/items/{item_id}": {
                "get": {
                    "operationId": "read_item_items__item_id__get",
                    "summary": "Read Item",
                    "parameters": [number],
                    "tags": ["items"],
                }
            },
            "/users/": {"get": {"operationId": "read_users_users__get", "summary": "Read Users", "tags": ["users"]}},
        },
        **more,
    }


@asynccontextmanager
async def api(document: Json, place: str = "/openapi.json") -> AsyncIterator[Upstream]:
    """A real server that has a document at an address and answers everything else with what it was asked."""

    async def reply(seen: Seen, send: Send) -> None:
        if seen.target == place:
            await send(answer(body=json.dumps(document).encode()))
        else:
            await send(answer(body=json.dumps({"method": seen.method, "target": seen.target}).encode()))

    async with upstream(reply) as server:
        yield server


def entry(place: str, name: str = "shop", **more: Any) -> HttpSource:
    config = HttpToolConfig.model_validate({"openapi": place, "allowPrivate": True, **more})
    return HttpSource(name, config, no_secrets(SHOP_TOKEN="t0k3n"))


async def of_file(folder: Path, document: Json, **more: Any) -> HttpSource:
    path = folder / "api.json"
    path.write_text(json.dumps(document))
    return entry(str(path), "api", **more)


# A document at a URL


async def test_a_fastapi_document_at_a_url_needs_nothing_else() -> None:
    async with api(fastapi()) as server:
        shop = entry(f"{server.base}/openapi.json")
        found = await tools(shop)
        assert set(found) == {"shop_list_items", "shop_create_item", "shop_read_item", "shop_read_users"}
        result = await invoke(shop, found["shop_read_item"], {"item_id": 7})
    assert result["body"] == {"method": "GET", "target": "/items/7"}


async def test_names_that_would_be_the_same_without_their_path_keep_it() -> None:
    document = fastapi()
    document["paths"]["/users/"]["get"]["operationId"] = "list_items_users__get"
    async with api(document) as server:
        found = await tools(entry(f"{server.base}/openapi.json"))
    assert {"shop_list_items_items__get", "shop_list_items_users__get", "shop_read_item"} <= set(found)


async def test_a_relative_server_belongs_to_the_place_of_the_document() -> None:
    async with api(fastapi(servers=[{"url": "../v2"}]), "/docs/api.json") as server:
        shop = entry(f"{server.base}/docs/api.json")
        result = await invoke(shop, (await tools(shop))["shop_list_items"], {})
    assert result["body"]["target"] == "/v2/items/"


async def test_a_private_address_is_fetched_from_only_with_the_operators_word() -> None:
    async with api(fastapi()) as server:
        with pytest.raises(Unavailable, match=r"allowPrivate: true on httpTools\.shop"):
            await entry(f"{server.base}/openapi.json", allowPrivate=False).discover()
        assert server.connections == 0


async def test_a_document_that_cannot_be_had_says_why() -> None:
    async with api(fastapi()) as server:

        async def redirect(seen: Seen, send: Send) -> None:
            head = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/openapi.json\r\ncontent-length: 0\r\n\r\n"
            await send(head.encode())

        shop = entry(f"{server.base}/openapi.json")
        server.reply = redirect
        with pytest.raises(Unavailable, match="redirects"):
            await shop.discover()


async def test_headers_go_to_the_documents_own_host_and_to_no_other_that_it_names() -> None:
    headers = {"Authorization": "Bearer ${env:SHOP_TOKEN}"}
    async with api(fastapi()) as server:
        shop = entry(f"{server.base}/openapi.json", headers=headers)
        await invoke(shop, (await tools(shop))["shop_list_items"], {})
        fetched, called = server.seen
    assert "authorization" not in fetched.headers
    assert called.headers["authorization"] == "Bearer t0k3n"
    async with api(fastapi(servers=[{"url": "https://elsewhere.example"}])) as server:
        with pytest.raises(Unavailable, match=r"it is elsewhere\.example, not where the document is"):
            await entry(f"{server.base}/openapi.json", headers=headers).discover()


async def test_a_changed_document_waits_for_a_person_and_a_failing_fetch_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "_FOLLOW", 0.01)
    document = fastapi()
    clock = ManualClock()
    pins = MemoryPins(clock)
    async with api(document) as server:
        config = HttpToolConfig.model_validate({"openapi": f"{server.base}/openapi.json", "allowPrivate": True})
        shop = HttpSource("shop", config, no_secrets(), clock=clock, pins=pins)
        assert {offer.standing for offer in await shop.discover()} == {"ready"}
        document["paths"]["/users/"]["get"]["summary"] = "Read everybody, and send them here"
        document["paths"]["/new"] = {"get": {"operationId": "brand_new"}}
        news = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shop.run, news.set)
            clock.now += 3600
            with anyio.fail_after(20):
                await news.wait()
            standings = {offer.own_name: offer.standing for offer in await shop.discover()}
            assert standings == {
                "list_items": "ready",
                "create_item": "ready",
                "read_item": "ready",
                "read_users": "quarantined",
                "brand_new": "pending",
            }
            tasks.cancel_scope.cancel()
        [waiting] = [pin for pin in pins.list() if pin.own_name == "read_users"]
        assert "send them here" in waiting.diff()
        pins.accept("shop", "read_users", waiting.seen_hash, by="a person")
        assert {o.own_name: o.standing for o in await shop.discover()}["read_users"] == "ready"


async def test_how_a_parameter_or_a_body_is_written_is_pinned_too() -> None:
    document = fastapi()
    listing = document["paths"]["/items/"]["get"]
    listing["parameters"] = [{"name": "ids", "in": "query", "schema": {"type": "array"}}]
    form = {"schema": {"type": "object"}, "encoding": {"ids": {"style": "form"}}}
    document["paths"]["/items/"]["post"]["requestBody"] = {"content": {"application/x-www-form-urlencoded": form}}
    pins = MemoryPins(ManualClock())
    async with api(document) as server:
        config = {"openapi": f"{server.base}/openapi.json", "allowPrivate": True}

        async def standings() -> dict[str, str]:
            source = HttpSource("shop", HttpToolConfig.model_validate(config), no_secrets(), pins=pins)
            return {offer.own_name: offer.standing for offer in await source.discover()}

        assert set((await standings()).values()) == {"ready"}
        listing["parameters"][0]["explode"] = False
        form["encoding"] = {"ids": {"style": "deepObject"}}
        changed = await standings()
    assert {name for name, standing in changed.items() if standing != "ready"} == {"list_items", "create_item"}
    [pin] = [pin for pin in pins.list() if pin.own_name == "list_items"]
    assert '"style": "comma"' in pin.diff()


async def test_a_gateway_reads_an_api_by_its_url_and_tells_what_is_missing() -> None:
    scheme = {"type": "http", "scheme": "bearer"}
    document = fastapi(components={"securitySchemes": {"Login": scheme}}, security=[{"Login": []}])
    async with api(document) as server:
        config = Config.model_validate(
            {
                "workspace": False,
                "agents": {"a": {"role": "reader", "tools": ["shop_*"]}},
                "httpTools": {"shop": {"openapi": f"{server.base}/openapi.json", "allowPrivate": True}},
            }
        )
        async with Grove(config, patience=60) as grove:
            agent = await grove.agent("a")
            assert {tool.name for tool in agent.tools} == {"shop_list_items", "shop_read_item", "shop_read_users"}
            assert (await agent.call("shop_read_item", {"item_id": 3}))["body"]["target"] == "/items/3"
            notice = grove.pool.latest.sources["shop"].notice
            assert {pin.own_name for pin in grove.pins.list()} >= {"read_item", "list_items"}
    assert notice == (
        'The document asks for credentials. Add httpTools.shop.headers: {Authorization: "Bearer ${env:SHOP_TOKEN}"} '
        'and secrets: {SHOP_TOKEN: {tools: ["shop_*"]}}.'
    )


# Credentials


@pytest.mark.parametrize(
    ("scheme", "told"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, 'headers: {X-Key: "${env:API_TOKEN}"}'),
        ({"type": "apiKey", "in": "query", "name": "key"}, 'url: "https://api.example/v1?key=${env:API_TOKEN}"'),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, 'headers: {Cookie: "sid=${env:API_TOKEN}"}'),
        ({"type": "http", "scheme": "basic"}, 'headers: {Authorization: "Basic ${env:API_TOKEN}"}'),
        ({"type": "http", "scheme": "basic"}, "API_TOKEN is user:password in base64."),
        ({"type": "http", "scheme": "digest"}, "credentials that cannot be set here"),
        ({"type": "openIdConnect"}, 'Add httpTools.api.url: "https://api.example/v1", httpTools.api.headers: {Author'),
        ({"type": "oauth2", "flows": {}}, 'headers: {Authorization: "Bearer ${env:API_TOKEN}"}'),
        ({"type": "mutualTLS"}, "credentials that cannot be set here"),
    ],
)
async def test_the_line_that_lets_calls_in_is_named(tmp_path: Path, scheme: Json, told: str) -> None:
    document = fastapi(components={"securitySchemes": {"s": scheme}}, security=[{"s": []}])
    document["servers"] = [{"url": "https://api.example/v1"}]
    source = await of_file(tmp_path, document)
    await source.discover()
    assert told in source.notice


async def test_an_entry_with_the_lines_that_were_named_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    schemes = {
        "app-id": {"type": "apiKey", "in": "header", "name": "X-App"},
        "key": {"type": "apiKey", "in": "query", "name": "key"},
    }
    document = fastapi(components={"securitySchemes": schemes}, security=[{"app-id": [], "key": []}])
    document["paths"]["/users/"]["get"]["security"] = [{}]
    async with api(document) as server:
        place = f"{server.base}/openapi.json"
        shop = entry(place)
        await shop.discover()
        assert shop.notice == (
            f'The document asks for credentials. Add httpTools.shop.url: "{server.base}/?key=${{env:SHOP_KEY}}", '
            'httpTools.shop.headers: {X-App: "${env:SHOP_APP_ID}"} '
            'and secrets: {SHOP_APP_ID: {tools: ["shop_*"]}, SHOP_KEY: {tools: ["shop_*"]}}.'
        )
        config = {
            "workspace": False,
            "agents": {"a": {"role": "reader", "tools": ["*"]}},
            "httpTools": {
                "shop": {
                    "openapi": place,
                    "allowPrivate": True,
                    "url": f"{server.base}/?key=${{env:SHOP_KEY}}",
                    "headers": {"X-App": "${env:SHOP_APP_ID}"},
                }
            },
            "secrets": {"SHOP_APP_ID": {"tools": ["shop_*"]}, "SHOP_KEY": {"tools": ["shop_*"]}},
        }
        monkeypatch.setenv("SHOP_KEY", "k-1234567")
        monkeypatch.setenv("SHOP_APP_ID", "a-1234567")
        async with Grove(Config.model_validate(config), patience=60) as grove:
            await (await grove.agent("a")).call("shop_read_item", {"item_id": 3})
            assert grove.pool.latest.sources["shop"].notice == ""
        assert server.seen[-1].target == "/items/3?key=k-1234567"
        assert server.seen[-1].headers["x-app"] == "a-1234567"


async def test_only_what_is_taken_over_asks_for_credentials(tmp_path: Path) -> None:
    document = fastapi(components={"securitySchemes": {"s": {"type": "http", "scheme": "bearer"}}})
    document["paths"]["/users/"]["get"]["security"] = [{"s": []}]
    document["servers"] = [{"url": "https://api.example"}]
    whole, without_users = await of_file(tmp_path, document), await of_file(tmp_path, document, exclude=["tag:users"])
    for source in (whole, without_users):
        await source.discover()
    assert "Bearer ${env:API_TOKEN}" in whole.notice
    assert without_users.notice == ""


async def test_credentials_that_are_there_or_not_needed_are_not_asked_for(tmp_path: Path) -> None:
    bearer = {"securitySchemes": {"s": {"type": "http", "scheme": "bearer"}}}
    asked: list[tuple[Any, Json]] = [([{"s": []}], {"authorization": "x"}), ([{}, {"s": []}], {}), ([], {})]
    for security, headers in asked:
        document = fastapi(components=bearer, security=security)
        source = await of_file(tmp_path, document, url="https://api.example", headers=headers)
        await source.discover()
        assert source.notice == ""


# Selection


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        ({"include": ["tag:items"]}, {"list_items", "create_item", "read_item"}),
        ({"include": ["/users/*"]}, {"read_users"}),
        ({"include": ["GET /items/*"]}, {"list_items", "read_item"}),
        ({"include": ["read_*"], "exclude": ["tag:users"]}, {"read_item"}),
        ({"exclude": ["POST /*", "read_users_users__get"]}, {"list_items", "read_item"}),
        ({"tags": ["items"], "exclude": ["*item_id*"]}, {"list_items", "create_item"}),
    ],
)
async def test_operations_are_chosen_by_tag_path_method_or_name(tmp_path: Path, chosen: Json, kept: set[str]) -> None:
    source = await of_file(tmp_path, fastapi(servers=[{"url": "https://api.example"}]), **chosen)
    assert {offer.own_name for offer in await source.discover() if offer.standing == "ready"} == kept


async def test_a_word_of_the_operator_that_is_about_no_operation_is_named(tmp_path: Path) -> None:
    document = fastapi(servers=[{"url": "https://api.example"}])
    slips: Json = {
        "include": ["tag:itemz", "read_*"],
        "exclude": ["DELETE /*"],
        "tags": ["users", "item"],
        "reads": ["serch"],
        "rename": {"read_itm": "look_up", "read_users": "people"},
    }
    source = await of_file(tmp_path, document, **slips)
    await source.discover()
    assert source.notice == (
        "httpTools.api.include: 'tag:itemz' matches no operation of the document. "
        "httpTools.api.exclude: 'DELETE /*' matches no operation of the document. "
        "httpTools.api.tags: 'item' matches no operation of the document. "
        "httpTools.api.reads: 'serch' matches no operation of the document. "
        "httpTools.api.rename: the document has no operation 'read_itm'."
    )


async def test_an_operation_is_renamed_by_its_short_or_its_whole_name(tmp_path: Path) -> None:
    rename = {"read_item": "look_up", "read_users_users__get": "people"}
    source = await of_file(tmp_path, fastapi(servers=[{"url": "https://api.example"}]), rename=rename)
    assert set(await tools(source)) == {"look_up", "people", "api_list_items", "api_create_item"}


# Swagger 2.0 and OpenAPI 3.2

PETS: Json = {
    "swagger": "2.0",
    "info": {"title": "Pets", "version": "1"},
    "basePath": "/v2",
    "consumes": ["application/json"],
    "produces": ["application/json"],
    "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "api_key"}},
    "security": [{"key": []}],
    "parameters": {"limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 50}},
    "definitions": {
        "Pet": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        }
    },
    "paths": {
        "/pet": {
            "post": {
                "operationId": "addPet",
                "parameters": [
                    {"in": "body", "name": "pet", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
                ],
                "responses": {"200": {"description": "ok", "schema": {"type": "object"}}},
            }
        },
        "/pet/find": {
            "get": {
                "operationId": "findPets",
                "parameters": [
                    {"$ref": "#/parameters/limit"},
                    {
                        "name": "status",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "multi",
                    },
                    {"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"}},
                    {
                        "name": "near",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "pipes",
                    },
                ],
                "responses": {"200": {"description": "ok"}},
            }
        },
        "/pet/{petId}/image": {
            "post": {
                "operationId": "upload",
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "type": "integer"},
                    {"name": "note", "in": "formData", "type": "string", "description": "a word"},
                    {"name": "file", "in": "formData", "type": "file", "required": True},
                ],
                "responses": {"200": {"description": "ok"}},
            }
        },
        "/pet/{petId}": {
            "parameters": [{"name": "petId", "in": "path", "required": True, "type": "integer"}],
            "post": {
                "operationId": "form",
                "parameters": [{"name": "name", "in": "formData", "type": "string"}],
                "responses": {"405": {"description": "no"}},
            },
            "get": {
                "operationId": "tabs",
                "parameters": [{"name": "t", "in": "query", "type": "array", "items": {}, "collectionFormat": "tsv"}],
                "responses": {},
            },
        },
    },
}


async def test_a_swagger_document_works_like_an_openapi_one() -> None:
    async with api(PETS, "/v2/swagger.json") as server:
        pets = entry(f"{server.base}/v2/swagger.json", "pets", reads=["*"], exclude=["tabs"])
        found = {offer.name: offer.tool for offer in await pets.discover() if offer.tool is not None}
        assert set(found) == {"pets_addPet", "pets_findPets", "pets_upload", "pets_form"}
        assert found["pets_addPet"].spec.input_schema["required"] == ["body"]
        assert found["pets_findPets"].spec.input_schema["properties"]["limit"] == {"type": "integer", "maximum": 50}
        arguments = {"limit": 5, "status": ["a", "b"], "ids": [1, 2], "near": ["x", "y"]}
        sought = await invoke(pets, found["pets_findPets"], arguments)
        await invoke(pets, found["pets_addPet"], {"body": {"name": "Rex"}})
        await invoke(pets, found["pets_form"], {"petId": 1, "body": {"name": "Rex"}})
        file = {"filename": 'a".txt', "text": "hello"}
        await invoke(pets, found["pets_upload"], {"petId": 1, "body": {"note": "n", "file": file}})
        _, _, posted, form, uploaded = server.seen[:5]
        whole = await entry(f"{server.base}/v2/swagger.json", "pets").discover()
        refused = {offer.own_name: offer.reason for offer in whole if offer.standing != "ready"}
    assert sought["body"]["target"] == "/v2/pet/find?limit=5&status=a&status=b&ids=1%2C2&near=x%7Cy"
    assert posted.json == {"name": "Rex"}
    assert (form.headers["content-type"], form.body) == ("application/x-www-form-urlencoded", b"name=Rex")
    assert uploaded.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="note"\r\n\r\nn\r\n' in uploaded.body
    assert b'name="file"; filename="a%22.txt"\r\nContent-Type: application/octet-stream\r\n\r\nhello' in uploaded.body
    assert "style 'tabDelimited'" in refused["tabs"]
    assert 'headers: {api_key: "${env:PETS_TOKEN}"}' in pets.notice


@pytest.mark.parametrize(("schemes", "scheme"), [(None, "http"), (["https", "http"], "https"), (["http"], "http")])
async def test_a_swagger_host_without_a_scheme_has_the_one_of_its_document(
    schemes: list[str] | None, scheme: str
) -> None:
    document = {**PETS, "host": "127.0.0.1:9", **({"schemes": schemes} if schemes else {})}
    async with api(document, "/swagger.json") as server:
        pets = entry(f"{server.base}/swagger.json", "pets")
        await pets.discover()
    assert f'Add httpTools.pets.url: "{scheme}://127.0.0.1:9/v2", httpTools.pets.headers:' in pets.notice


async def test_a_swagger_form_writes_its_lists_as_the_document_says() -> None:
    document = copy.deepcopy(PETS)
    lists = [
        {"name": "a", "in": "formData", "type": "array", "items": {"type": "string"}},
        {"name": "b", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
    ]
    document["paths"]["/pet/{petId}"]["post"]["parameters"] = lists
    async with api(document, "/swagger.json") as server:
        pets = entry(f"{server.base}/swagger.json", "pets", reads=["*"], include=["form"])
        [found] = [offer.tool for offer in await pets.discover() if offer.tool is not None]
        await invoke(pets, found, {"petId": 1, "body": {"a": ["x", "y"], "b": ["x", "y"]}})
        assert server.seen[-1].body == b"a=x%2Cy&b=x&b=y"


async def test_what_openapi_3_2_added_is_read() -> None:
    document = fastapi(openapi="3.2.0")
    form = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    word = {"type": "object", "properties": {"word": {"type": "string"}}}
    document["components"] = {"mediaTypes": {"Word": {"schema": word}}}
    json_body = {"application/json": {"$ref": "#/components/mediaTypes/Word"}}
    document["paths"]["/search"] = {
        "query": {"operationId": "search", "requestBody": {"required": True, "content": json_body}},
        "get": {"operationId": "filter", "parameters": [{"name": "q", "in": "querystring", "content": form}]},
        "additionalOperations": {"COPY": {"operationId": "copy"}, "CONNECT": {"operationId": "tunnel"}},
    }
    async with api(document) as server:
        shop = entry(f"{server.base}/openapi.json", reads=["search"])
        found = await tools(shop)
        assert "shop_tunnel" not in found
        assert (found["shop_search"].approval, found["shop_copy"].approval) == (None, "HTTP COPY")
        assert found["shop_search"].spec.input_schema["properties"]["body"] == word
        sent = await invoke(shop, found["shop_search"], {"body": {"word": "tomato"}})
        filtered = await invoke(shop, found["shop_filter"], {"q": {"color": "red", "size": 2}})
        assert server.seen[1].json == {"word": "tomato"}
    assert sent["body"] == {"method": "QUERY", "target": "/search"}
    assert filtered["body"]["target"] == "/search?color=red&size=2"


# Bodies and styles


def one(operation: Mapping[str, Any], path: str = "/x") -> Json:
    return {
        "openapi": "3.1.0",
        "servers": [{"url": "PLACE"}],
        "paths": {path: {"post": {"operationId": "one", **operation}}},
    }


async def sent(document: Json, arguments: Json, folder: Path) -> Seen:
    async with api({}) as server:
        document = copy.deepcopy(document)
        document["servers"][0]["url"] = server.base
        source = await of_file(folder, document, reads=["*"])
        await invoke(source, (await tools(source))["api_one"], arguments)
        return server.seen[-1]


def body(media: str, schema: Json, **more: Any) -> Json:
    return one({"requestBody": {"required": True, "content": {media: {"schema": schema, **more}}}})


async def test_text_and_files_are_sent_as_bodies(tmp_path: Path) -> None:
    text = await sent(body("text/csv", {"type": "string"}), {"body": "a;ü\n"}, tmp_path)
    assert (text.headers["content-type"], text.body) == ("text/csv; charset=utf-8", "a;ü\n".encode())
    blob = await sent(body("application/octet-stream", {}), {"body": {"base64": "AAEC"}}, tmp_path)
    assert (blob.headers["content-type"], blob.body) == ("application/octet-stream", b"\x00\x01\x02")


async def test_a_form_with_files_carries_lists_objects_and_bytes(tmp_path: Path) -> None:
    files = {"type": "array", "items": {"type": "string", "format": "binary"}}
    schema = {"type": "object", "properties": {"files": files, "meta": {"type": "object"}, "n": {"type": "integer"}}}
    two = [{"text": "one", "contentType": "text/plain"}, {"base64": "AAEC", "filename": "b.bin"}]
    seen = await sent(body("multipart/form-data", schema), {"body": {"files": two, "meta": {"a": 1}, "n": 3}}, tmp_path)
    assert seen.body.count(b'name="files"') == 2
    assert b'filename="b.bin"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\x01\x02\r\n' in seen.body
    assert b'name="meta"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n' in seen.body
    assert b'name="n"\r\n\r\n3\r\n' in seen.body


@pytest.mark.parametrize(
    ("media", "value", "sent_as", "content"),
    [
        ("image/png", {"base64": "AAEC"}, "image/png", b"\x00\x01\x02"),
        ("image/*", {"base64": "AAEC", "contentType": "image/webp"}, "image/webp", b"\x00\x01\x02"),
        ("application/pdf", {"text": "%PDF"}, "application/pdf", b"%PDF"),
        ("text/*", "hello", "text/plain; charset=utf-8", b"hello"),
        ("application/xml", "<a/>", "application/xml; charset=utf-8", b"<a/>"),
        ("*/*", {"a": 1}, "application/json", b'{"a":1}'),
        ("application/vnd.api+json; charset=utf-8", {"a": 1}, "application/vnd.api+json", b'{"a":1}'),
    ],
)
async def test_every_kind_of_body_can_be_sent(
    tmp_path: Path, media: str, value: Any, sent_as: str, content: bytes
) -> None:
    seen = await sent(body(media, {}), {"body": value}, tmp_path)
    assert (seen.headers["content-type"], seen.body) == (sent_as, content)


async def test_a_form_is_written_in_the_style_of_each_property(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"card": {"type": "object"}, "ids": {"type": "array"}, "plain": {}}}
    encoding = {"card": {"style": "deepObject", "explode": True}, "ids": {"style": "form", "explode": False}}
    document = body("application/x-www-form-urlencoded", schema, encoding=encoding)
    value = {"card": {"number": 4, "owner": {"name": "Ada"}}, "ids": [1, 2], "plain": [1, 2]}
    seen = await sent(document, {"body": value}, tmp_path)
    assert seen.body == b"card%5Bnumber%5D=4&card%5Bowner%5D%5Bname%5D=Ada&ids=1%2C2&plain=1&plain=2"


async def test_a_file_that_may_be_null_or_has_only_a_type_is_a_file(tmp_path: Path) -> None:
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    properties = {
        "one": {"anyOf": [binary, {"type": "null"}]},
        "many": {"anyOf": [{"type": "array", "items": binary}, {"type": "null"}]},
        "picture": {},
    }
    document = body(
        "multipart/form-data",
        {"type": "object", "properties": properties},
        encoding={"picture": {"contentType": "image/png"}},
    )
    value = {"one": {"text": "1"}, "many": [{"text": "2"}, {"text": "3"}], "picture": {"base64": "AAEC"}}
    seen = await sent(document, {"body": value}, tmp_path)
    assert seen.body.count(b'filename="file"') == 4
    assert b'name="picture"; filename="file"\r\nContent-Type: image/png\r\n\r\n\x00\x01\x02' in seen.body


@pytest.mark.parametrize(
    ("value", "said"),
    [({"filename": "x"}, "either text or base64"), ({"base64": "%"}, "is not base64"), ("x", "either text or base64")],
)
async def test_a_file_that_is_none_is_refused_before_anything_is_sent(tmp_path: Path, value: Any, said: str) -> None:
    schema = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
    document = body("multipart/form-data", schema)
    document["servers"][0]["url"] = "https://api.example"
    source = await of_file(tmp_path, document, reads=["*"])
    refused = await failure(source, {"body": {"file": value}}, "api_one")
    assert said in refused.message


RGB = {"R": 100, "G": 200}
STYLED = [
    ("simple", False, "blue", "blue"),
    ("simple", False, ["a/b", "c"], "a%2Fb,c"),
    ("simple", False, RGB, "R,100,G,200"),
    ("simple", True, RGB, "R=100,G=200"),
    ("label", False, "blue", ".blue"),
    ("label", False, ["a", "b"], ".a,b"),
    ("label", True, ["a", "b"], ".a.b"),
    ("label", True, RGB, ".R=100.G=200"),
    ("matrix", False, "b;e", ";c=b%3Be"),
    ("matrix", False, ["a", "b"], ";c=a,b"),
    ("matrix", True, ["a", "b"], ";c=a;c=b"),
    ("matrix", False, RGB, ";c=R,100,G,200"),
    ("matrix", True, RGB, ";R=100;G=200"),
]


@pytest.mark.parametrize(("style", "explode", "value", "text"), STYLED)
async def test_path_styles_are_sent_as_the_document_says(
    tmp_path: Path, style: str, explode: bool, value: Any, text: str
) -> None:
    parameter = {"name": "c", "in": "path", "required": True, "style": style, "explode": explode, "schema": {}}
    seen = await sent(one({"parameters": [parameter]}, "/x/{c}/y"), {"c": value}, tmp_path)
    assert seen.target == f"/x/{text}/y"


async def test_a_header_carries_lists_and_objects(tmp_path: Path) -> None:
    for explode, text in ((False, "R,100,G,200"), (True, "R=100,G=200")):
        parameter = {"name": "X-Color", "in": "header", "explode": explode, "schema": {}}
        assert (await sent(one({"parameters": [parameter]}), {"X-Color": RGB}, tmp_path)).headers["x-color"] == text


@pytest.mark.parametrize(("place", "style"), [("query", "matrix"), ("header", "form"), ("path", "deepObject")])
async def test_a_style_that_cannot_be_sent_is_refused_at_import(tmp_path: Path, place: str, style: str) -> None:
    parameter = {"name": "c", "in": place, "required": True, "style": style, "schema": {}}
    document = one({"parameters": [parameter]}, "/x/{c}" if place == "path" else "/x")
    document["servers"][0]["url"] = "https://api.example"
    [offer] = await (await of_file(tmp_path, document)).discover()
    assert offer.standing == "unvalidated"
    assert f"the style '{style}', which cannot be sent in a {place}" in offer.reason


@pytest.mark.parametrize("value", ["..", ".", "a/../b", "a\x00"])
async def test_no_style_lets_a_value_leave_its_part_of_the_path(tmp_path: Path, value: str) -> None:
    for style in ("simple", "label"):
        parameter = {"name": "c", "in": "path", "required": True, "style": style, "schema": {}}
        document = one({"parameters": [parameter]}, "/x/{c}/y")
        document["servers"][0]["url"] = "https://api.example"
        source = await of_file(tmp_path, document, reads=["*"])
        if style == "simple" or value != "..":
            assert (await failure(source, {"c": value}, "api_one")).code == "invalid_argument"
