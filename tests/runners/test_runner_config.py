"""The runner section of a project's file."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from toolgrove import Config


def section(**form: Any) -> Any:
    return Config.model_validate({"runner": form}).runner


def test_a_project_needs_no_runner() -> None:
    assert Config().runner is None


def test_the_file_writes_keys_in_camel_case() -> None:
    runner = section(kind="openai", url="https://models.example/v1", model="m", apiKey="${env:K}", maxSteps=3)
    assert (runner.api_key, runner.max_steps, runner.timeout) == ("${env:K}", 3, 120.0)


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"kind": "openai", "model": "m"}, "kind openai needs a url"),
        ({"kind": "openai", "model": "m", "url": "file:///etc/passwd"}, "runner.url"),
        ({"kind": "openai", "url": "https://models.example/v1"}, "runner.model"),
        ({"kind": "adk", "model": "gemini-2.5-flash", "url": "https://models.example/v1"}, "takes only a model"),
        ({"kind": "adk", "model": "gemini-2.5-flash", "apiKey": "${env:K}"}, "takes only a model"),
        ({"kind": "openai", "url": "https://models.example/v1", "model": "m", "maxSteps": 0}, "runner.maxSteps"),
        ({"kind": "llama", "model": "m"}, "runner.kind"),
        ({"kind": "adk", "modle": "m"}, "did you mean 'model'?"),
    ],
)
def test_a_section_that_cannot_work_is_refused_with_the_reason(form: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        section(**form)
    assert problem in str(refusal.value)
