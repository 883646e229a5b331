"""The tables of a Compute. Bytes are what was signed, or sealed and locked; all else can be derived from them."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

State = Literal["open", "closed", "agreed", "released", "refused"]
STATES: tuple[State, ...] = ("open", "closed", "agreed", "released", "refused")

metadata = MetaData()

studies = Table(
    "studies", metadata,
    Column("id", String(64), primary_key=True),
    Column("record", LargeBinary, nullable=False),
    Column("position", Integer, nullable=False),  # of this Compute among the study's
    Column("registered", Float, nullable=False),
    Column("analyst", LargeBinary, nullable=False),
    Column("clients", Integer, nullable=False),
    Column("deadline", Float(53), nullable=False),
)  # fmt: skip

rounds = Table(
    "rounds", metadata,
    Column("id", Integer, primary_key=True),  # short, for the many reports that refer to it
    Column("study", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(64)),
    Column("detail", String(500)),
    Column("deadline", Float, nullable=False),
    Column("changed", Float, nullable=False),
    Column("close", LargeBinary),  # the analyst's signed wish to end it
    Column("roster_digest", LargeBinary),
    Column("roster_size", Integer),
    UniqueConstraint("study", "number"),
    ForeignKeyConstraint(["study"], ["studies.id"]),
)  # fmt: skip

reports = Table(
    "reports", metadata,
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("client", String(128), primary_key=True),
    Column("samples", Integer, nullable=False),  # that it holds
    Column("mark", String(32), nullable=False),  # which report of the client it is
    Column("locked", LargeBinary),  # the sealed share under the round's key; scrubbed after release or refusal
    Column("other", String(64), nullable=False),  # the client's event, if it named one
    ForeignKeyConstraint(["round"], ["rounds.id"]),
)  # fmt: skip

clients = Table(
    "clients", metadata,
    Column("study", String(64), primary_key=True),
    Column("client", String(128), primary_key=True),
    Column("token", LargeBinary, nullable=False),  # a digest
    Column("samples", Integer, nullable=False),
    Column("key", LargeBinary),  # Ed25519, once enrolled
    Column("opening", LargeBinary),  # of the session with this Compute, signed with it
    Column("event", String(64)),
    ForeignKeyConstraint(["study"], ["studies.id"]),
)  # fmt: skip

draws = Table(  # of studies whose clients use a few of the Computes each
    "draws", metadata,
    Column("study", String(64), primary_key=True),
    Column("commitment", LargeBinary, nullable=False),  # signed
    Column("request", LargeBinary),  # the digest of the analyst's request: the list is fixed from then on
    Column("reveal", LargeBinary),  # signed
    Column("draw", LargeBinary),  # all signed records, once every Compute has revealed
    Column("seed", String(64)),  # that follows from them
    ForeignKeyConstraint(["study"], ["studies.id"]),
)  # fmt: skip

rosters = Table(
    "rosters", metadata,
    Column("study", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("compute", Integer, primary_key=True),
    Column("record", LargeBinary, nullable=False),
    ForeignKeyConstraint(["study", "number"], ["rounds.study", "rounds.number"]),
)  # fmt: skip

agreements = Table(
    "agreements", metadata,
    Column("study", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("compute", Integer, primary_key=True),
    Column("record", LargeBinary, nullable=False),  # the own one, and others' that say the same
    ForeignKeyConstraint(["study", "number"], ["rounds.study", "rounds.number"]),
)  # fmt: skip

sums = Table(
    "sums", metadata,
    Column("study", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    ForeignKeyConstraint(["study", "number"], ["rounds.study", "rounds.number"]),
)  # fmt: skip

ledger = Table(
    "ledger", metadata,
    Column("study", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("label", String(128), nullable=False),
    Column("event", Text, nullable=False),  # what the accountant is told of the round (wire/charges.py)
    ForeignKeyConstraint(["study"], ["studies.id"]),
)  # fmt: skip

audit = Table(
    "audit", metadata,
    Column("position", Integer, primary_key=True, autoincrement=True),
    Column("event", String(64), nullable=False, unique=True),
    Column("time", Float(53), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("study", String(64)),
    Column("number", Integer),
    Column("other", String(64)),  # the other side's event
    Column("detail", String(1000), nullable=False),
    Index("audit_study", "study", "number"),
)  # fmt: skip

counters = Table(
    "counters", metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)  # fmt: skip

health = Table(
    "health", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("time", Float(53), nullable=False),  # of the last write that was made to see whether one can be made
)  # fmt: skip
