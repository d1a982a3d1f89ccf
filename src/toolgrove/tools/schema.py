"""The pieces that the tools' JSON Schemas are made of.

Many clients make types of them and refuse a whole list of tools for one schema that they cannot read. So nothing refers
to anything, every property has a type, and a choice between types is an `anyOf` of them.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

PAGE_DEFAULT = 50
PAGE_MAX = 200


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def node_id(description: str) -> Schema:
    """A node id: a text that is not empty."""
    return text(description, minLength=1)


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def whole(description: str, minimum: int = 0, **more: Any) -> Schema:
    return {"type": "integer", "minimum": minimum, "description": description, **more}


def choice(description: str, *values: str) -> Schema:
    """Exactly one of these words."""
    return {"type": "string", "enum": list(values), "description": description}


def listing(items: Schema, description: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **({"description": description} if description else {}), **more}


def record(properties: dict[str, Schema], *required: str, description: str = "") -> Schema:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **({"description": description} if description else {}),
    }


def either(description: str, *schemas: Schema) -> Schema:
    """A value of one of these types."""
    return {"description": description, "anyOf": list(schemas)}


def anything(description: str) -> Schema:
    """Any JSON value; lists of one type are named first, for clients that know no others."""
    types: list[Schema] = [{"type": name} for name in ("string", "number", "boolean", "null", "object")]
    return either(description, *types, listing({"type": "number"}), listing({"type": "string"}), listing({}))


def names(description: str) -> Schema:
    return listing({"type": "string"}, description)


STRING: Schema = {"type": "string"}
ID_LIST = listing(STRING)
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}
PAYLOAD = {"type": "object", "description": "Properties of the node."}

INCLUDED = names("Only these dotted property paths, and what is under them. Empty: all.")
EXCLUDED = names("Without these dotted property paths; wins over includedProperties.")
FILTERS = {"includedProperties": INCLUDED, "excludedProperties": EXCLUDED}
LIMIT = whole(f"Items per page, {PAGE_DEFAULT} by default, at most {PAGE_MAX}.", 1, maximum=PAGE_MAX)
PAGE_TOKEN = text("nextPageToken of the page before; keep the other arguments unchanged.", minLength=1)
PAGING = {"limit": LIMIT, "pageToken": PAGE_TOKEN}
VIEW_PAGING = {"pageSize": LIMIT, "pageToken": PAGE_TOKEN}
MAX_TOKENS = whole("Budget of the answer.", 1)
FORMAT = choice("'json' (default), or 'outline' for compact indented text.", "json", "outline")
DEPTH_LIMIT = whole("Levels below the root asked for; 0 is the root alone.")

_NODE = {
    "nodeId": STRING,
    "parentId": {"type": ["string", "null"]},
    "payloadType": STRING,
    "payload": OBJECT,
    "childrenCount": COUNT,
    "tags": ID_LIST,
    "payloadGroup": text("Nodes with the same one share their payload: a change through one shows in all."),
}
_NODE_KEYS = tuple(key for key in _NODE if key not in ("tags", "payloadGroup"))
_CRUMB = record({"nodeId": STRING, "name": STRING, "depth": COUNT}, "nodeId", "depth")
CRUMBS = listing(_CRUMB)
NODE = record(_NODE, *_NODE_KEYS)
HIT = record({**_NODE, "name": STRING, "path": CRUMBS, "pathCut": COUNT}, "nodeId")
SEARCH = {
    "fields": choice("What to show of each node; all by default.", "ids", "names", "all"),
    "path": flag("Show the way to it; so by default with fields: all."),
    "count": flag("Tell the total too."),
}
ITEM = record({**_NODE, "depth": COUNT, "isExpanded": {"type": "boolean"}}, *_NODE_KEYS, "depth")
CUT: Schema = {"type": "object", "description": "What is left out: nodes, or counts by place; hint says how to get it."}
VIEW_ROOT = record(
    {
        "rootNodeId": STRING,
        "defaultExpanded": {"type": "boolean"},
        "includedProperties": ID_LIST,
        "excludedProperties": ID_LIST,
        "expanded": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    "rootNodeId",
    "defaultExpanded",
    "includedProperties",
    "excludedProperties",
    "expanded",
)


def tree_of(*, expandable: bool) -> Schema:
    """A node with its children, nested."""
    extra: Schema = {"moreChildren": COUNT, "children": listing(OBJECT, "Nodes like this one, with their children.")}
    if expandable:
        extra["isExpanded"] = {"type": "boolean"}
    required = (*_NODE_KEYS, "isExpanded") if expandable else _NODE_KEYS
    return record({**_NODE, **extra}, *required)


DIFF = {
    "added": listing(OBJECT),
    "removed": listing(OBJECT),
    "moved": listing(OBJECT),
    "reordered": listing(OBJECT),
    "changed": listing(OBJECT),
}
