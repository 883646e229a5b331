"""The secure sum that options of a command name, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.table import Table

from hubbub.cli.options import Whole
from hubbub.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from hubbub.population import Population
    from hubbub.protocols import SecureSum

Scheme = Literal["additive", "replicated", "shamir", "subset"]
NUMBERS: dict[str, tuple[str, ...]] = {
    "additive": (), "replicated": ("threshold", "cheating"), "shamir": ("threshold", "cheating"), "subset": ("each",),
}  # fmt: skip
"""What each of our schemes is told beside the number of Computes; `cheating` can be left out."""
_MEANING = {"threshold": "how many Computes are enough", "each": "how many Computes each client uses"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SchemeOptions:
    """How sums are kept secret."""

    scheme: Annotated[Scheme, Parameter(help="How sums are kept secret among the Computes.")] = "additive"
    threshold: Annotated[
        int | None, Whole, Parameter(help="t, for replicated and shamir: any t of the Computes are enough.")
    ] = None
    each: Annotated[int | None, Whole, Parameter(help="k, for subset: how many Computes each client uses.")] = None
    cheating: Annotated[
        int | None,
        Whole,
        Parameter(help="f, for replicated and shamir: how many may sign contradicting statements [default: 0]."),
    ] = None

    def build(self, computes: int) -> SecureSum:
        """Make the scheme for so many Computes, or refuse a number that it has no use for or lacks."""
        from hubbub.securesum import SECURE_SUMS

        given = {name: getattr(self, name) for name in ("threshold", "each", "cheating")}
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            if name not in NUMBERS[self.scheme]:
                raise invalid(name, f"left out where the scheme is {self.scheme}", value, "choose another --scheme")
        for name in set(NUMBERS[self.scheme]) - set(given) - {"cheating"}:
            raise InvalidInput(f"{name} must be given for the scheme {self.scheme}, got none; say {_MEANING[name]}")
        return SECURE_SUMS.build({"scheme": self.scheme, "computes": computes, **given})


ADDITIVE = SchemeOptions()


def about(scheme: SecureSum, people: Population) -> dict[str, Any]:
    """Say whom one must trust, how many Computes must sign and may be lost, and who is exposed to how many."""
    from hubbub.securesum import Subset, least_clients

    trust, computes = scheme.trust(), scheme.computes
    enough = next(count for count in range(1, computes + 1) if scheme.enough(range(count)))
    found = {
        **scheme.describe(), "trust": trust.sentence, "may_conspire": trust.conspiring, "sums_needed": enough,
        "quorum": scheme.quorum, "may_be_lost": computes - max(enough, scheme.quorum),
        "not_promised": trust.beyond(people.clients),
    }  # fmt: skip
    if isinstance(scheme, Subset):
        found |= {"exposure": exposure(scheme, people.clients)}
        found["clients_needed"] = people.dropouts + least_clients(computes, scheme.each, people.colluders + 1)
    return found


def too_few(found: dict[str, Any], people: Population) -> str:
    """Say that clients are too few to tie the Computes of a subset together; empty where they are enough."""
    if people.clients >= found.get("clients_needed", 0):
        return ""
    missing = f", of whom {people.dropouts} may be missing," if people.dropouts else ""
    return (
        f"Take care: {found['clients_needed']} clients{missing} are needed to tie {found['computes']} Computes "
        f"together in 999 of 1000 draws, got {people.clients}; with fewer, rounds may be refused (loose-computes)"
    )


def exposure(scheme: Any, clients: int) -> list[dict[str, float]]:
    """List how many clients a group of Computes can expect to read, for groups of several sizes."""
    from hubbub.securesum import conspiring_sizes

    sizes = [scheme.each - 1, *conspiring_sizes(scheme.computes, scheme.each)]
    return [{"conspiring": size, "clients": scheme.exposure(size, clients)} for size in sizes]


def exposure_table(found: dict[str, Any], clients: int) -> Table:
    """Lay out for people what `exposure` lists."""
    table = Table("conspiring Computes", f"expected exposed clients of {clients}")
    for row in found["exposure"]:
        table.add_row(f"{row['conspiring']} of {found['computes']}", f"{row['clients']:.3g}")
    return table
