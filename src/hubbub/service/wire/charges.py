"""What a round costs, as text: how a Compute's ledger and a client's outbox write an event down."""

from __future__ import annotations

import json

from hubbub.errors import InvalidInput
from hubbub.events import event_fields, event_of
from hubbub.privacy import Event


def event_text(event: Event) -> str:
    """The same text for the same event."""
    return json.dumps(event_fields(event), sort_keys=True, allow_nan=False)


def event_from(text: str) -> Event:
    """The event that was written down so, or InvalidInput."""
    try:
        return event_of(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput(f"event must be written as hubbub writes it, got {text[:80]!r}; check the file") from None
