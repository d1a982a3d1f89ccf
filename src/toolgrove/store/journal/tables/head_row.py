"""The head of a store: where it stands, in one row that every transaction rewrites."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

from toolgrove.store.audit import GENESIS, Place
from toolgrove.store.journal.tables.audit_retention import DEFAULT_DAYS
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import checksum, decode_all, encode
from toolgrove.store.project import earlier_identity, new_identity
from toolgrove.tree.effects import Mark
from toolgrove.tree.history import change_id, new_term


class Head(NamedTuple):
    """Revision and mark of the workspace, both ends of the audit chain under a stamp, how much its bodies fill, and
    what tokens are made with.

    `commit` names the newest change. `audit_days` is how long records are kept unless the project says so; None in a
    store from before there was a default. `audit_key` is the public half of the key that signs the chain, so that
    another is noticed, and `audit_floor_seal` signs the beginning of it. `project` is the identity of the project.
    """

    epoch: str
    secret: str
    revision: int = 0
    mark: Mark = Mark()
    audit_number: int = 0
    audit_hash: str = GENESIS
    audit_floor: str = ""
    audit_floor_number: int = 0
    audit_body_bytes: int = 0
    audit_seal: str = ""
    audit_key: str = ""
    audit_floor_seal: str = ""
    audit_days: int | None = None
    commit: str = ""
    project: str = ""

    @property
    def identity(self) -> str:
        """Of which project the store is."""
        return self.project or earlier_identity(self.epoch, self.secret)

    @property
    def newest(self) -> str:
        """The identity of the change that led to the revision; stores of before named it by the epoch."""
        return self.commit or change_id(self.epoch, self.revision)

    @property
    def place(self) -> Place:
        """Where the audit chain stands."""
        return Place(self.audit_number, self.audit_hash)

    @property
    def floor(self) -> Place:
        """What the oldest audit record rests on: the newest of those that retention took away."""
        return Place(self.audit_floor_number, self.audit_floor or GENESIS)

    @property
    def seal_text(self) -> str:
        """What its stamp is made of: both ends of the chain, so that neither can be cut off."""
        text = f"head {self.epoch} {self.floor} {self.place}"
        return f"{text} {self.audit_key}" if self.audit_key else text

    @property
    def floor_text(self) -> str:
        """What the signature of the beginning is made of."""
        return f"floor {self.epoch} {self.floor}"

    @classmethod
    def fresh(cls, project: str = "") -> Head:
        """The head of a new store, of a new project unless told."""
        return cls(
            epoch=new_term(), secret=secrets.token_hex(32), audit_days=DEFAULT_DAYS, project=project or new_identity()
        )

    @classmethod
    def read(cls, connection: Connection, *, lock: str = "") -> Head | None:
        """The head in the store; None in a new one. `lock` keeps other writers away, where a database needs that."""
        row = connection.execute(f"SELECT body, crc FROM head{lock}").fetchone()  # noqa: S608  our own words
        return None if row is None else cls.of(row)

    @classmethod
    def of(cls, row: tuple[str, int]) -> Head:
        """The head in a row."""
        (stored,) = decode_all("head", [row])
        facts: dict[str, Any] = {**stored, "mark": Mark(**stored["mark"])}
        head = cls(**facts)
        return head._replace(audit_body_bytes=int(head.audit_body_bytes))  # a text in databases of before

    def text(self) -> str:
        """What its row holds."""
        return encode({**self._asdict(), "mark": self.mark._asdict()})

    def write(self, connection: Connection) -> None:
        """Put it into the open transaction."""
        body = self.text()
        connection.execute("INSERT OR REPLACE INTO head (one, body, crc) VALUES (1, ?, ?)", (body, checksum(body)))
