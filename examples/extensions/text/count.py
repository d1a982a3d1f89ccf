"""`text.count`: how long a text is, and which words it likes."""

import re
from collections import Counter
from typing import Any

from apcore import ModuleAnnotations, ModuleExample
from pydantic import BaseModel, Field


class CountInput(BaseModel):
    text: str = Field(description="The text to count")
    top: int = Field(5, description="How many of the most frequent words to list", ge=0, le=50)


class WordCount(BaseModel):
    word: str
    count: int


class CountOutput(BaseModel):
    characters: int
    words: int
    lines: int
    reading_seconds: int = Field(description="At 230 words per minute")
    top: list[WordCount] = Field(description="The most frequent words, in lower case")


class Count:
    description = "Count characters, words and lines, and list the most frequent words."
    documentation = """
A word is a run of letters, digits and apostrophes. Upper and lower case are the same word.
Words that are equally frequent are listed in the order in which they first appear.
"""
    tags = ["text", "pure"]
    annotations = ModuleAnnotations(readonly=True, idempotent=True, open_world=False)
    examples = [
        ModuleExample(
            title="A rhyme",
            inputs={"text": "Row, row, row your boat\ngently down the stream", "top": 1},
            output={
                "characters": 46,
                "words": 9,
                "lines": 2,
                "reading_seconds": 2,
                "top": [{"word": "row", "count": 3}],
            },
        )
    ]
    input_schema = CountInput
    output_schema = CountOutput

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        given = CountInput.model_validate(inputs)
        words = [word.lower() for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", given.text)]
        frequent = Counter(words).most_common(given.top)
        return {
            "characters": len(given.text),
            "words": len(words),
            "lines": len(given.text.splitlines()),
            "reading_seconds": round(len(words) * 60 / 230),
            "top": [{"word": word, "count": count} for word, count in frequent],
        }
