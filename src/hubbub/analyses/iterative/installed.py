"""Models that this process has installed: a study names a model and never brings its code along."""

from __future__ import annotations

from typing import Generic, TypeVar

from hubbub.errors import InvalidInput

Made = TypeVar("Made")


class InstalledModels(Generic[Made]):
    """Models by what a description says of them: the fingerprint of what clients run, and the trainer's choices."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._found: dict[tuple[str, ...], Made] = {}

    def add(self, key: tuple[str, ...], model: Made) -> None:
        """Let descriptions in this process name it; the last one under a key is used."""
        self._found[key] = model

    def find(self, name: str, key: tuple[str, ...]) -> Made:
        """The installed model, or one line that says what to install."""
        if key not in self._found:
            also = "".join(f", {each}" for each in key[1:])
            raise InvalidInput(
                f"model must be installed here, got {name[:80]!r} ({key[0][:12]}{also}), which is not; make the same "
                f"{self._what} from the model's source, which you trust, and call its install()"
            )
        return self._found[key]
