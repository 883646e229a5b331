"""Read study.toml, and check each of its entries before any Compute is asked or any file is written."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubbub.cli.schemes import NUMBERS
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import DEFAULT, MECHANISMS, Population, covered
from hubbub.protocols import SecureSum
from hubbub.securesum import SECURE_SUMS, smallest_k

_FIELDS = {
    "title", "clients", "tolerate", "dropouts", "colluders", "unit", "epsilon", "delta", "days", "computes", "parties",
    "analysis", "results", "privacy", "sum",
}  # fmt: skip
_MOST_DAYS = 3650


def read_toml(source: Path) -> dict[str, Any]:
    """Read the file's entries, of which none may be missing and none unknown."""
    try:
        content = tomllib.loads(source.read_text())
    except OSError as error:
        raise InvalidInput(f"study must be readable, got study={source}: {error.strerror}; check the path") from None
    except ValueError as error:
        raise InvalidInput(f"study must be TOML, got study={source}: {error}; correct that line") from None
    if "model" in content:
        raise InvalidInput('study must have [analysis] with kind = "linear" in place of model, got model; rename it')
    if unknown := sorted(set(content) - _FIELDS):
        raise invalid("study", f"made of {', '.join(sorted(_FIELDS))}", unknown[0], "check the spelling")
    for name in ("title", "epsilon", "delta", "computes", "analysis"):
        if name not in content:
            raise InvalidInput(f"study must have the entry {name}, got none in {source}; add it")
    return content


def read_parties(content: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of samples of each client, by name.

    `clients = 200` stands for client-1 to client-200 with one sample each; `parties` names them with their samples.
    """
    if ("clients" in content) == ("parties" in content):
        raise InvalidInput("study must have clients (a number) or parties (name = samples), one of the two")
    if "clients" in content:
        clients = whole("clients", content["clients"], 2, "one client alone cannot hide")
        return {f"client-{number}": 1 for number in range(1, clients + 1)}
    parties = content["parties"]
    if not isinstance(parties, dict):
        raise invalid("parties", "a table such as { hospital = 400, clinic = 250 }", parties, "name each party")
    remedy = "give how many samples it holds"
    return {name: whole(f"parties.{name}", samples, 1, remedy) for name, samples in parties.items()}


def read_population(content: Mapping[str, Any], samples: Mapping[str, int]) -> Population:
    """Return who takes part, with how many may be missing (`dropouts`) or collude (`colluders`; `tolerate`: both)."""
    missing, false = covered(content.get("tolerate", 0), content.get("dropouts"), content.get("colluders"))
    unit, largest = content.get("unit", "sample"), max(samples.values(), default=1)
    return Population(len(samples), missing, false, sum(samples.values()), largest, unit)


def read_seconds(content: Mapping[str, Any]) -> float:
    """Return how long the study runs from now on, in seconds."""
    days = content.get("days", 7)
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not (math.isfinite(days) and 0 < days <= _MOST_DAYS):
        raise invalid("days", f"a number above 0, {_MOST_DAYS} at most", days, "say how long the study may take")
    return 86400.0 * float(days)


def read_noise(content: Mapping[str, Any]) -> str:
    """Return the name of the law of noise: `[privacy] mechanism = "discrete-gaussian"`, which is the default."""
    entries = content.get("privacy", {})
    if not isinstance(entries, dict) or set(entries) - {"mechanism", "package"}:
        raise invalid("privacy", 'a table such as { mechanism = "skellam" }', entries, "name the mechanism")
    name = entries.get("mechanism", DEFAULT.name)
    MECHANISMS.find(name, entries.get("package"))
    return str(name)


def read_scheme(content: Mapping[str, Any], computes: int, clients: int) -> SecureSum:
    """Return how sums are kept secret: `[sum] scheme = "additive"`, which is the default, with the scheme's numbers.

    Of `subset` either `each` says how many Computes a client uses, or `conspiring` and `risk` do: the fewest with which
    so many conspiring Computes can expect to read at most `risk` clients.
    """
    entries = content.get("sum", {"scheme": "additive"})
    if not isinstance(entries, dict) or not isinstance(entries.get("scheme"), str):
        raise invalid("sum", 'a table such as { scheme = "additive" }', entries, "name the scheme")
    if entries["scheme"] == "subset":
        entries = _with_each(entries, computes, clients)
    _check_names(entries)
    return SECURE_SUMS.build({"computes": computes, **entries})


def _check_names(entries: Mapping[str, Any]) -> None:
    """Refuse what a scheme of ours does not have, and the lack of what it needs; another package checks its own."""
    scheme = entries["scheme"]
    if scheme not in NUMBERS:
        return
    known = NUMBERS[scheme]
    if missing := sorted({*known} - {"cheating"} - set(entries)):
        raise InvalidInput(f"sum must have {missing[0]} for the scheme {scheme}, got none; see `study create --help`")
    more = {"seed"} if scheme == "subset" else set()
    if unknown := sorted(set(entries) - {"scheme"} - {*known} - more):
        has = ", ".join(known) or "no other entries"
        raise invalid("sum", f"made of what the scheme {scheme} has ({has})", unknown[0], "check the spelling")


def _with_each(entries: Mapping[str, Any], computes: int, clients: int) -> dict[str, Any]:
    """The entries of a subset with `each`, given or found for a risk."""
    if unknown := sorted(set(entries) - {"scheme", "each", "conspiring", "risk", "seed"}):
        raise invalid("sum", "made of scheme, each, conspiring, risk", unknown[0], "check the spelling")
    goal = {"conspiring", "risk"} & set(entries)
    if ("each" in entries) == (len(goal) == 2) or len(goal) == 1:
        raise InvalidInput("sum must have each, or conspiring and risk, for the scheme subset; give one of the two")
    if not goal:
        return dict(entries)
    risk = entries["risk"]
    if isinstance(risk, bool) or not isinstance(risk, int | float):
        raise invalid("risk", "a number of clients above 0", repr(risk), "give for example 0.01")
    each = smallest_k(computes, entries["conspiring"], clients, risk)
    return {**{name: value for name, value in entries.items() if name not in goal}, "each": each}
