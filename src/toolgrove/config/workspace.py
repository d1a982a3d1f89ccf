"""The section `workspace`: where the tree is kept, what its nodes may hold, how much one call may cover."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from toolgrove.config.fields import Location, folder_of
from toolgrove.config.section import Section
from toolgrove.notation.json_schema import compiled
from toolgrove.store.journal import Marks
from toolgrove.store.postgres import POSTGRESQL, DatabaseAddress
from toolgrove.tree.payload_type import PayloadType, PayloadTypes
from toolgrove.tree.rules import Ruleset, read_ruleset
from toolgrove.tree.workspace import Limits
from toolgrove.types import Concurrency

MEMORY = "memory"
SQLITE = "sqlite:"
_REFERENCE = re.compile(r"\$\{(?:env|file|keyring):[^{}]+\}")


class PayloadTypeConfig(Section):
    """A type of payload that nodes may have, and what its payloads must look like."""

    kind: Literal["external", "self"] = Field(
        default="external", description="Whether the payload is separate from the node, or is the node itself."
    )
    payload_schema: dict[str, Any] | None = Field(
        default=None, alias="schema", description="The JSON Schema of its payloads."
    )
    closed: bool = Field(default=False, description="Refuse properties that the schema does not name.")

    @field_validator("payload_schema")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        compiled(schema or {})
        return schema


def _limit(name: str, description: str) -> Any:
    return Field(default=getattr(Limits(), name), ge=1, description=description)


class LimitsConfig(Section):
    """How much one call may cover; what is not named keeps its default."""

    node_ids: int = _limit("node_ids", "Ids in one call.")
    patch: int = _limit("patch", "Properties in one patch.")
    update_nodes: int = _limit("update_nodes", "Nodes in one update.")
    import_nodes: int = _limit("import_nodes", "Nodes in one import.")
    copy_nodes: int = _limit("copy_nodes", "Nodes in one copy.")
    change_nodes: int = _limit("change_nodes", "Nodes in one batch of changes.")
    expand_nodes: int = _limit("expand_nodes", "Nodes in one change of expansion.")
    view_nodes: int = _limit("view_nodes", "Nodes in one exported view.")
    tags: int = _limit("tags", "Tags on one node.")
    bookmarks: int = _limit("bookmarks", "Bookmarks of one agent.")
    snapshots: int = _limit("snapshots", "Snapshots of the tree.")
    history: int = _limit("history", "Commits that undo and version checks remember.")

    def limits(self) -> Limits:
        """The limits as the tree takes them."""
        return Limits(**vars(self))


class WorkspaceConfig(Section):
    """The tree workspace: what it may hold, how much of it, and where it is kept."""

    tree: bool = Field(
        default=True,
        description="Whether there is a tree at all: its tools, and its page in the console. Store and audit stay.",
    )
    store: str = Field(
        default="memory",
        json_schema_extra={"pattern": r"^(memory|sqlite:.*\S.*|postgresql://.+)$"},
        description="Where the tree is kept: `memory`, `sqlite:` with the path of a file, or the address of a "
        "database, `postgresql://…`, where a password is a reference such as `${env:GROVE_DB_PASSWORD}`.",
    )
    concurrency: Concurrency = Field(
        default="tree", description="What makes a version stale: any change, or a change of the nodes concerned."
    )
    read_only: bool = Field(default=False, description="Nobody may change anything.")
    payload_types: dict[str, PayloadTypeConfig] = Field(default_factory=dict, description="Registered payload types.")
    allow_unknown_types: bool = Field(default=False, description="Take payload types that are not registered.")
    rulesets: dict[str, list[dict[str, Any]]] = Field(default_factory=dict, description="Rules for `validate_tree`.")
    limits: LimitsConfig = Field(default=LimitsConfig.absent(), description="How much one call may cover.")
    audit_log: Location | None = Field(default=None, description="A file that gets one JSON line per call.")
    audit_days: Annotated[int, Field(ge=1)] | Literal["forever"] | None = Field(
        default=None,
        description="How many days a store keeps audit records, or `forever`. Without it 90 in a new store, and "
        "for ever in one that was made before there was a default.",
    )
    audit_archive: Location | Literal[False] | None = Field(
        default=None,
        description="The file of JSON Lines that gets old audit records before they leave the store; `-archive.jsonl` "
        "beside the store without it. `false`: they go for good.",
    )
    audit_mark: int = Field(
        default=10_000_000,
        ge=1,
        description="Warn in `doctor` and `/metrics` beyond so many audit records in the store.",
    )
    disk_mark: int = Field(
        default=1024**3, ge=0, description="Warn there as well when the store's disk has fewer bytes left."
    )
    audit_key: str | None = Field(
        default=None,
        pattern=r"^\$\{(env|file|keyring):[^{}]+\}$",
        description="The key that the audit log is signed with, such as `${env:GROVE_AUDIT_KEY}`, the same at all "
        "replicas; without it one is made in the state folder.",
    )

    @field_validator("store")
    @classmethod
    def _located(cls, store: str, info: ValidationInfo) -> str:
        if store == MEMORY:
            return store
        if store.startswith(POSTGRESQL):
            DatabaseAddress.of(_REFERENCE.sub("x", store))
            return store
        name = store.removeprefix(SQLITE).strip()
        if not store.startswith(SQLITE) or not name:
            raise ValueError(
                "this is neither 'memory' nor 'sqlite:' with a path, such as sqlite:data/grove.db, nor an address that "
                "begins with postgresql://"
            )
        path = Path(name).expanduser()
        return f"{SQLITE}{(folder_of(info) or Path()) / path}"

    @property
    def store_path(self) -> Path | None:
        """The file of the store; None in memory and in a database."""
        return Path(self.store.removeprefix(SQLITE)) if self.store.startswith(SQLITE) else None

    @property
    def is_database(self) -> bool:
        """Whether the store is a database, which several processes may share."""
        return self.store.startswith(POSTGRESQL)

    @property
    def archive_path(self) -> Path | None:
        """Where old audit records go; None where there is no store, or they just go."""
        store = self.store_path
        if self.store == MEMORY or self.audit_archive is False:
            return None
        if store is None:
            return self.audit_archive
        return self.audit_archive or store.with_name(f"{store.name}-archive.jsonl")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        if self.audit_days is not None and self.store == MEMORY:
            raise ValueError("auditDays needs a store that is kept; in memory the last 10,000 records are kept")
        if self.audit_archive is not None and self.store == MEMORY:
            raise ValueError("auditArchive needs a store that is kept; what is in memory is not archived")
        self.types()
        self.rules()
        return self

    def marks(self) -> Marks:
        """When to warn that a store grows."""
        return Marks(audit_records=self.audit_mark, disk_free=self.disk_mark)

    def types(self) -> PayloadTypes:
        """The payload types as the tree takes them, their schemas compiled."""
        types = {
            name: PayloadType(name=name, kind=one.kind, schema=one.payload_schema, closed=one.closed)
            for name, one in self.payload_types.items()
        }
        return PayloadTypes(types, allow_unknown=self.allow_unknown_types)

    def rules(self) -> dict[str, Ruleset]:
        """The rulesets as `validate_tree` runs them."""
        return {name: read_ruleset(name, rules) for name, rules in self.rulesets.items()}


def _spelt_out(given: Any) -> Any:
    return {"tree": False} if given is False else given


Workspace = Annotated[
    WorkspaceConfig, BeforeValidator(_spelt_out, json_schema_input_type=Literal[False] | WorkspaceConfig)
]
"""The section, or `false` for one without a tree."""
