"""The runner that a project's file asks for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from toolgrove.config import RunnerConfig
from toolgrove.errors import RunnerMissing
from toolgrove.runners.runner import Runner

Fill = Callable[[str, str], str]


def from_config(config: RunnerConfig, fill: Fill) -> Runner:
    """Build the runner; `fill(template, field)` puts secrets in, once per run and not before."""
    return _adk(config) if config.kind == "adk" else _openai(config, fill)


def _openai(config: RunnerConfig, fill: Fill) -> Runner:
    module = import_module("toolgrove.runners.openai")  # only those who name it pay for an HTTP client's import
    runner: Runner = module.OpenAIRunner(
        url=config.url,
        model=config.model,
        api_key=lambda: fill(config.api_key, "runner.apiKey"),
        max_steps=config.max_steps,
        timeout=config.timeout,
        max_bytes=config.max_bytes,
        headers=lambda: {name: fill(value, f"runner.headers.{name}") for name, value in config.headers.items()},
        query=config.query,
        stream=config.stream,
    )
    return runner


def _adk(config: RunnerConfig) -> Runner:
    try:
        module = import_module("toolgrove.runners.adk")  # google-adk is an extra
    except ModuleNotFoundError:
        raise RunnerMissing(
            problem="runner.kind is adk, and google-adk is not installed", remedy="installs toolgrove[adk]"
        ) from None
    runner: Runner = module.AdkRunner(config.model, max_steps=config.max_steps, timeout=config.timeout)
    return runner
