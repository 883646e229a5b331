"""What a Compute shows of itself: studies, rounds, rosters and ledger. Nothing here is secret."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, func, select

from hubbub.service.node import store as db
from hubbub.service.node import tables
from hubbub.service.node.compute import Node
from hubbub.service.node.known import account, parsed_study
from hubbub.service.node.metrics import Counts
from hubbub.service.wire.problems import Problem

_EVENTS = 50


def studies(node: Node) -> dict[str, Any]:
    """All studies by name and title."""
    with node.store.read() as connection:
        rows = connection.execute(select(tables.studies).order_by(tables.studies.c.registered)).all()
    return {"studies": [{"study": row.id, "title": parsed_study(row.record).title} for row in rows]}


def study_row(node: Node, study_id: str) -> Row[Any]:
    """The study as the store has it."""
    with node.store.read() as connection:
        return db.find_study(connection, study_id)


def rounds(node: Node, study_id: str) -> dict[str, Any]:
    """The signed rounds of a study, and the state of each."""
    with node.store.read() as connection:
        db.find_study(connection, study_id)
        rows = db.rounds_of(connection, study_id)
        held = {row.number: node.known.reports(connection, row) for row in rows}
    found = [
        {"number": row.number, "state": row.state, "reason": row.reason, "detail": row.detail,
         "reports": held[row.number], "roster": row.roster_size, "record": row.record.decode()}
        for row in rows
    ]  # fmt: skip
    return {"study": study_id, "rounds": found}


def rosters(node: Node, study_id: str, compute: str = "", number: str = "") -> dict[str, Any]:
    """Signed rosters that this Compute holds, its own and others': all, or of one Compute, or of one round."""
    for name, value in (("compute", compute), ("round", number)):
        if value and not (value.isascii() and value.isdigit() and len(value) < 10):
            raise Problem("malformed", f"{name} must be a whole number; leave it out for all")
    with node.store.read() as connection:
        db.find_study(connection, study_id)
        rows = db.stored_rosters(
            connection, study_id, int(number) if number else None, compute=int(compute) if compute else None
        )
    return {"rosters": [row.record.decode() for row in rows]}


def overview(node: Node, counts: Counts) -> dict[str, Any]:
    """Everything on the status page."""
    with node.store.read() as connection:
        rows = connection.execute(select(tables.studies).order_by(tables.studies.c.registered)).all()
        found = [_study(node, connection, row) for row in rows]
        columns = (tables.audit.c.time, tables.audit.c.kind, tables.audit.c.study, tables.audit.c.number)
        events = connection.execute(select(*columns).order_by(tables.audit.c.position.desc()).limit(_EVENTS)).all()
    counters = counts.current(node.store)
    return {
        "name": node.name, "time": node.clock(), "studies": found, "counters": counters,
        "events": [{"time": e.time, "kind": e.kind, "study": e.study, "round": e.number} for e in events],
    }  # fmt: skip


def _study(node: Node, connection: Any, row: Any) -> dict[str, Any]:
    study = parsed_study(row.record)
    enrolled = select(func.count(tables.clients.c.key)).where(tables.clients.c.study == row.id)
    spent = db.ledger_events(connection, row.id)
    signed = db.count_rosters(connection, row.id)
    found = [
        {"number": each.number, "state": each.state, "reason": each.reason, "roster": each.roster_size,
         "reports": node.known.reports(connection, each), "rosters": signed.get(each.number, 0),
         "computes": len(study.computes)}
        for each in db.rounds_of(connection, row.id)
    ]  # fmt: skip
    budget = None
    if study.budget is not None:
        epsilon = account(spent, study.budget.delta)
        budget = {"epsilon": study.budget.epsilon, "delta": study.budget.delta, "spent": epsilon}
    return {
        "study": row.id, "title": study.title, "clients": study.population.clients,
        "samples": study.population.n, "dropouts": study.population.dropouts, "colluders": study.population.colluders,
        "computes": [compute.name for compute in study.computes], "deadline": study.deadline,
        "enrolled": connection.execute(enrolled).scalar_one(), "budget": budget, "rounds": found,
        "drawn": db.find_study(connection, row.id).seed is not None if study.draws else None,
    }  # fmt: skip
