"""`trips.plan`: a module that asks the user a question while it runs."""

from typing import Any, Literal

from apcore import ModuleAnnotations
from pydantic import BaseModel, Field

from apcore_mcp import elicit

SIGHTS = {
    "Lisbon": ["Alfama", "Belém Tower", "Tram 28", "LX Factory", "Jerónimos Monastery", "Miradouro da Graça"],
    "Kyoto": ["Fushimi Inari", "Nishiki Market", "Kinkaku-ji", "Philosopher's Path", "Arashiyama", "Gion"],
    "Quito": ["La Compañía", "Mitad del Mundo", "El Panecillo", "La Ronda", "TelefériQo", "Itchimbía"],
}
SIGHTS_PER_DAY = {"slow": 1, "steady": 2, "fast": 3}

QUESTION = {
    "type": "object",
    "properties": {
        "pace": {"type": "string", "title": "Pace", "enum": list(SIGHTS_PER_DAY), "default": "steady"},
        "early": {"type": "boolean", "title": "Start before breakfast?", "default": False},
    },
    "required": ["pace"],
}


class PlanInput(BaseModel):
    city: Literal["Lisbon", "Kyoto", "Quito"] = Field("Lisbon", description="Where to go")
    days: int = Field(2, description="How many days to stay", ge=1, le=6)


class Day(BaseModel):
    day: int
    start: str = Field(description="When to leave the house")
    sights: list[str]


class PlanOutput(BaseModel):
    city: str
    asked: bool = Field(description="Whether the user answered; if not, the pace is steady")
    days: list[Day]


class Plan:
    description = "Plan a city trip. Asks the user how fast they like to travel."
    documentation = """
The module calls `elicit` with a small form. The user may decline, and some clients cannot ask at all:
then the answer is `None` and the plan uses a steady pace.
"""
    tags = ["trips", "asks"]
    annotations = ModuleAnnotations(readonly=True, open_world=False)
    input_schema = PlanInput
    output_schema = PlanOutput

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = PlanInput.model_validate(inputs)
        answer = await elicit(context, f"How do you like to travel in {given.city}?", QUESTION)
        wishes = answer or {"pace": "steady"}
        per_day = SIGHTS_PER_DAY.get(wishes.get("pace", "steady"), SIGHTS_PER_DAY["steady"])
        start = "06:30" if wishes.get("early") else "09:00"
        sights = SIGHTS[given.city]
        days = [
            {"day": day + 1, "start": start, "sights": sights[day * per_day : (day + 1) * per_day]}
            for day in range(given.days)
        ]
        return {"city": given.city, "asked": answer is not None, "days": days}
