"""The configuration of a project: what agents there are, and what the workspace allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import limits as rate_limits
import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from toolgrove.tree.payload_type import PayloadType, PayloadTypes
from toolgrove.tree.rules import Ruleset, read_ruleset
from toolgrove.tree.workspace import Limits
from toolgrove.types import Concurrency, Role


class Section(BaseModel):
    """A part of the file: camelCase there, snake_case accepted, unknown keys refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class PayloadTypeConfig(Section):
    """A registered payload type."""

    kind: Literal["external", "self"] = "external"
    payload_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    closed: bool = False


class LimitsConfig(Section):
    """How much one call may cover; what is not named keeps its default."""

    node_ids: int = Field(default=Limits().node_ids, ge=1)
    patch: int = Field(default=Limits().patch, ge=1)
    update_nodes: int = Field(default=Limits().update_nodes, ge=1)
    import_nodes: int = Field(default=Limits().import_nodes, ge=1)
    copy_nodes: int = Field(default=Limits().copy_nodes, ge=1)
    expand_nodes: int = Field(default=Limits().expand_nodes, ge=1)
    view_nodes: int = Field(default=Limits().view_nodes, ge=1)
    tags: int = Field(default=Limits().tags, ge=1)
    bookmarks: int = Field(default=Limits().bookmarks, ge=1)
    snapshots: int = Field(default=Limits().snapshots, ge=1)
    history: int = Field(default=Limits().history, ge=1)

    def limits(self) -> Limits:
        """The same for the tree."""
        return Limits(**self.model_dump())


class WorkspaceConfig(Section):
    """The tree workspace."""

    store: str = "memory"
    concurrency: Concurrency = "tree"
    read_only: bool = False
    payload_types: dict[str, PayloadTypeConfig] = {}
    allow_unknown_types: bool = False
    rulesets: dict[str, list[dict[str, Any]]] = {}
    limits: LimitsConfig = LimitsConfig()
    audit_log: Path | None = None

    @field_validator("store")
    @classmethod
    def _is_known(cls, store: str) -> str:
        if store != "memory" and not (store.startswith("sqlite:") and store.removeprefix("sqlite:").strip()):
            raise ValueError(f"{store!r} is neither 'memory' nor 'sqlite:' with a path, such as sqlite:data/grove.db")
        return store

    @property
    def store_path(self) -> Path | None:
        """The file of the store; None in memory."""
        return Path(self.store.removeprefix("sqlite:").strip()) if self.store != "memory" else None

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        self.types()
        self.rules()
        return self

    def types(self) -> PayloadTypes:
        """The payload types, compiled."""
        types = {
            name: PayloadType(name=name, kind=one.kind, schema=one.payload_schema, closed=one.closed)
            for name, one in self.payload_types.items()
        }
        return PayloadTypes(types, allow_unknown=self.allow_unknown_types)

    def rules(self) -> dict[str, Ruleset]:
        """The rulesets, compiled."""
        return {name: read_ruleset(name, rules) for name, rules in self.rulesets.items()}


class AgentConfig(Section):
    """An agent: which tools it is given, and what it may do with them."""

    role: Role = "reader"
    tools: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rate_limit: str | None = None
    read_only: bool = False
    write_root: str | None = None
    concurrency: Concurrency | None = None

    @field_validator("rate_limit")
    @classmethod
    def _readable(cls, notation: str | None) -> str | None:
        if notation is not None:
            try:
                rate_limits.parse(notation)
            except ValueError:
                raise ValueError(f"{notation!r} is not a rate like 60/minute") from None
        return notation


class Config(Section):
    """A whole project; without agents it has an editor and a reader with every tool of their role."""

    project: str = "default"
    workspace: WorkspaceConfig = WorkspaceConfig()
    agents: dict[str, AgentConfig] = {
        "editor": AgentConfig(role="editor", tools=("*",)),
        "reader": AgentConfig(role="reader", tools=("*",)),
    }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML or JSON file."""
        form = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return cls.model_validate(form or {})
