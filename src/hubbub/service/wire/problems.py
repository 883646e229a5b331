"""Every refusal of a Compute: a stable code, its HTTP status, and what it means (RFC 9457)."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from hubbub.errors import HubbubError


class Kind(NamedTuple):
    """What a code stands for."""

    status: int
    title: str
    retry: bool = False
    """True where the same request may succeed later."""


KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "The message cannot be read"),
    "bad-signature": Kind(401, "The signature is missing or not by the right key"),
    "wrong-session": Kind(401, "The report is not sealed in the session that its client enrolled with"),
    "bad-token": Kind(401, "The enrolment token is unknown or used up"),
    "stale-request": Kind(401, "The signed request is too old, or the clocks differ"),
    "unknown-client": Kind(403, "The client is not enrolled in this study"),
    "not-allowed": Kind(403, "This Compute does not take such a study"),
    "analyst-only": Kind(403, "The sums of this study are served to its analyst only"),
    "not-found": Kind(404, "There is no such thing here"),
    "method-not-allowed": Kind(405, "The address does not take this method"),
    "timeout": Kind(408, "The request took too long to arrive", retry=True),
    "duplicate": Kind(409, "The client has sent another report for this round already"),
    "already-enrolled": Kind(409, "The client has enrolled with another key or session"),
    "other-record": Kind(409, "Another record has this place already"),
    "not-enough-reports": Kind(409, "Not enough reports yet", retry=True),
    "round-open": Kind(409, "Enough reports, but the round is still open", retry=True),
    "agreement-under-way": Kind(409, "The Computes are agreeing on the roster", retry=True),
    "not-closed": Kind(409, "The round is not closed yet", retry=True),
    "round-under-way": Kind(409, "The round before must end first", retry=True),
    "second-roster": Kind(409, "A Compute has signed two rosters for one round"),
    "rolled-back": Kind(409, "This Compute's database is older than what it has signed"),
    "not-refused": Kind(409, "The round is released, not refused"),
    "not-drawn": Kind(409, "The Computes of each client are not drawn yet", retry=True),
    "already-drawn": Kind(409, "The list of clients is fixed since the draw"),
    "closed": Kind(410, "The round takes no more reports"),
    "round-refused": Kind(410, "The round was refused; nothing is released"),
    "too-large": Kind(413, "The body is too large"),
    "unsupported-type": Kind(415, "The body has another content type"),
    "wrong-study": Kind(422, "The report is for another study or another version of the round"),
    "wrong-round": Kind(422, "The report is for another round"),
    "wrong-recipient": Kind(422, "The report is for another Compute"),
    "cannot-open": Kind(422, "The sealed share cannot be opened"),
    "invalid-record": Kind(422, "The record does not hold what it must"),
    "over-budget": Kind(422, "The round would spend more than the study's budget"),
    "too-many": Kind(429, "A limit of this Compute is reached"),
    "too-fast": Kind(429, "Too many requests", retry=True),
    "internal": Kind(500, "This Compute failed; its operator's log says more", retry=True),
    "not-ready": Kind(503, "This Compute cannot do its work at present", retry=True),
}
RETRY_AFTER = 2
"""Seconds to wait where nothing better is known."""
MOST_DETAIL = 500
_CODE = re.compile(r"[a-z][a-z-]{0,39}")


class Problem(HubbubError):
    """A Compute refuses a request; `code` is one of KINDS."""

    def __init__(self, code: str, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = KINDS.get(code, Kind(500, code))
        self.retry_after = RETRY_AFTER if retry_after is None and self.kind.retry else retry_after

    def body(self) -> bytes:
        """problem+json."""
        content = {
            "type": f"urn:hubbub:problem:{self.code}", "title": self.kind.title, "status": self.kind.status,
            "detail": str(self), "code": self.code,
        }  # fmt: skip
        return json.dumps(content).encode()


def one_line(text: object, most: int = MOST_DETAIL) -> str:
    """What somebody else wrote, as one printable line of at most so many characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: 2 * most]).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def stated(code: object, detail: object, retry_after: int | None = None) -> Problem:
    """A problem that another party states: its words are shown to the user, so they are cut to one line."""
    known = code if isinstance(code, str) and _CODE.fullmatch(code) else "internal"
    return Problem(known, one_line(detail), retry_after)


def problem_from(status: int, body: bytes, retry_after: str | None) -> Problem:
    """The problem that a reply states, or one that says what came instead."""
    if 300 <= status < 400:
        return Problem(
            "redirected", f"Compute must answer itself, got a redirect (HTTP status {status}); it is not followed"
        )
    try:
        content = json.loads(body)
        code, detail = content["code"], str(content["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        code, detail = "internal", f"Compute must answer with a problem of its own, got HTTP status {status}"
    plain = retry_after is not None and retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 6
    seconds = int(retry_after) if retry_after is not None and plain else None
    return stated(code, detail, seconds)
