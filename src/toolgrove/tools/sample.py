"""A small tree to try the tools on: the docs, the examples and the REPL use it."""

from __future__ import annotations

from typing import Any

DOCUMENT: dict[str, Any] = {
    "nodeId": "property",
    "payloadType": "Property",
    "payload": {"name": "Property"},
    "children": [
        {
            "nodeId": "house",
            "payloadType": "House",
            "payload": {"name": "House", "status": "for sale"},
            "children": [
                {
                    "nodeId": "kitchen",
                    "payloadType": "Room",
                    "payload": {"name": "Kitchen", "squareFeet": 150, "status": "open"},
                    "tags": ["urgent"],
                },
                {
                    "nodeId": "living",
                    "payloadType": "Room",
                    "payload": {"name": "Living Room", "squareFeet": 320, "status": "done"},
                },
                {
                    "nodeId": "bath",
                    "payloadType": "Room",
                    "payload": {"name": "Bath Room", "squareFeet": 60, "status": "open"},
                },
            ],
        },
        {"nodeId": "shed", "payloadType": "Shed", "payload": {"name": "Shed", "squareFeet": 80}},
    ],
}
RULESETS: dict[str, list[dict[str, Any]]] = {
    "houses": [
        {"id": "room-size", "types": ["Room"], "required": ["squareFeet"]},
        {"id": "room-place", "types": ["Room"], "allowedParents": ["House"]},
        {"id": "names-trimmed", "severity": "warning", "format": {"path": "name", "is": "trimmed"}},
        {"id": "names-unique", "unique": {"path": "name", "within": "siblings"}},
        {"id": "two-rooms", "types": ["House"], "cardinality": {"type": "Room", "min": 2}},
    ]
}
