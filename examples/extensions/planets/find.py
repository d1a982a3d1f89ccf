"""`planets.find`: a lookup whose result is a table."""

from typing import Any, Literal

from apcore import ModuleAnnotations, ModuleExample
from pydantic import BaseModel, Field

COLUMNS = ("name", "kind", "radius_km", "moons", "day_hours", "rings")
ROWS = [
    ("Mercury", "rocky", 2440, 0, 1407.6, False),
    ("Venus", "rocky", 6052, 0, 5832.5, False),
    ("Earth", "rocky", 6371, 1, 23.9, False),
    ("Mars", "rocky", 3390, 2, 24.6, False),
    ("Jupiter", "gas giant", 69911, 95, 9.9, True),
    ("Saturn", "gas giant", 58232, 146, 10.7, True),
    ("Uranus", "ice giant", 25362, 28, 17.2, True),
    ("Neptune", "ice giant", 24622, 16, 16.1, True),
]
PLANETS: list[dict[str, Any]] = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


class FindInput(BaseModel):
    kind: Literal["rocky", "gas giant", "ice giant"] | None = Field(None, description="Only this kind; nothing for all")
    min_moons: int = Field(0, description="At least this many known moons", ge=0)
    sort_by: Literal["name", "radius_km", "moons", "day_hours"] | None = Field(
        None, description="Column to sort by; nothing for the order from the Sun"
    )


class Planet(BaseModel):
    name: str
    kind: str
    radius_km: int = Field(description="Mean radius")
    moons: int = Field(description="Known moons")
    day_hours: float = Field(description="One turn around itself")
    rings: bool


class FindOutput(BaseModel):
    planets: list[Planet]


class Find:
    description = "Look up planets of the solar system by kind and moons."
    documentation = "Eight rows of flat objects: clients that can, show them as a table."
    tags = ["planets", "pure"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [
        ModuleExample(
            title="The planet with the most moons", inputs={"min_moons": 100}, output={"planets": [PLANETS[5]]}
        )
    ]
    input_schema = FindInput
    output_schema = FindOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = FindInput.model_validate(inputs)
        found = [
            planet for planet in PLANETS if planet["moons"] >= given.min_moons and given.kind in (None, planet["kind"])
        ]
        return {"planets": sorted(found, key=lambda planet: planet[given.sort_by]) if given.sort_by else found}
