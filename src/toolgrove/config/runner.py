"""The runner: whose model drives agents."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from toolgrove.config.reference import Filled
from toolgrove.config.section import Section


class RunnerConfig(Section):
    """Whose model drives agents, in runs and for `spawn_agents`: an OpenAI-compatible endpoint, or Google's ADK."""

    kind: Literal["openai", "adk"] = Field(description="An OpenAI-compatible endpoint, or Google's ADK.")
    model: str = Field(min_length=1, description="The model, as the endpoint or the ADK names it.")
    url: str | None = Field(
        default=None, pattern=r"^https?://", description="Where /chat/completions is found, such as https://…/v1."
    )
    api_key: Filled = Field(
        default="", repr=False, description="A reference such as ${env:MODEL_KEY}; empty where none is needed."
    )
    headers: dict[str, Filled] = Field(
        default={}, repr=False, description="More headers, such as `api-key: ${env:AZURE_KEY}`."
    )
    query: dict[str, str] = Field(default={}, description="What comes after the `?`, such as `api-version`.")
    stream: bool = Field(
        default=True, description="Whether answers come piece by piece; off for endpoints that cannot, or refuse to."
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="How freely models answer.")
    max_output_tokens: int | None = Field(default=None, ge=1, description="The longest answer of a model.")
    deadline: float | None = Field(default=600.0, gt=0, description="Seconds that a run may take in all.")
    max_steps: int = Field(default=20, ge=1, le=1_000, description="Answers of the model before a run is stopped.")
    timeout: float = Field(default=120.0, gt=0, description="Seconds that one answer of the model may take.")
    max_bytes: int = Field(default=4_000_000, ge=1_000, description="The largest answer that is read.")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "openai" and self.url is None:
            raise ValueError("kind openai needs a url, such as https://…/v1")
        if self.kind == "adk" and (self.url is not None or self.api_key or self.headers or self.query):
            raise ValueError("kind adk takes only a model: the ADK reads its address and key from the environment")
        return self
