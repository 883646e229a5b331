"""Everything hubbub raises on purpose.

HubbubError
├── InvalidInput        a value, file or column the user can correct (also a ValueError)
│   └── NotInstalled    a statistic, mechanism, secure sum, engine or analysis that this machine does not have
├── BudgetExceeded      a charge that the ledger refuses; nothing was spent
├── ReportRejected      a Compute does not take this report; `.reason` is a stable code
├── MalformedMessage    bytes that are not a message of this version
├── CannotOpen          a sealed share that does not open, for whatever reason
├── RoundRefused        a round that must not be released; `.reason` is a stable code
├── PerhapsReleased     a round that ended in an error after it was opened; it counts as released
├── Problem             a Compute refuses a request; `.code` is stable (service/wire/problems.py)
├── Unreachable         a Compute did not answer in time; the same call again goes on (service/wire/web.py)
└── CannotCombine       published sums that do not belong together; `.reason` is a stable code

PrivacyLeakWarning      something private was used where only public values belong
NotFiniteWarning        a client's vector was not finite, and it sent zero
WeakPrivacyWarning      a budget that promises less than it seems to
UntrustworthyWarning    a result that noise or shortened rows have made misleading, as far as can be told
OutOfDomainWarning      a sample was none that the statistic knows (NaN, an unknown category), and counted as zero
"""

from __future__ import annotations

import warnings


class HubbubError(Exception):
    """Base of all errors raised by hubbub; its text is one line for the user."""


class InvalidInput(HubbubError, ValueError):
    """A value outside its bound: the message names field, bound, value and remedy."""


class NotInstalled(InvalidInput):
    """Something that a study or a user names is not installed here; the message names the package if it is known."""


class BudgetExceeded(HubbubError):
    """The ledger refused a charge; its balance is as it was before."""


class MalformedMessage(HubbubError):
    """Bytes that do not parse as a message of a known version."""


class CannotOpen(HubbubError):
    """A sealed share did not open. Deliberately without a reason."""

    def __init__(self) -> None:
        super().__init__("the sealed share cannot be opened; it is not counted")


class ReportRejected(HubbubError):
    """A Compute rejects a report; `reason` is one of a fixed set of codes."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RoundRefused(HubbubError):
    """A round is refused: nothing is released and no budget is spent.

    Of a round on Compute nodes this is raised only where every one of them has signed its refusal.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PerhapsReleased(HubbubError):
    """A round was opened on Compute nodes and ended in an error that does not prove that nothing was released.

    Its charge stays spent.
    """


NOTHING_RELEASED = (RoundRefused, InvalidInput)
"""What an engine raises only where it has released nothing of the round and never will: a ledger gives the round's
charge back on these errors and on no others."""


class CannotCombine(HubbubError):
    """The Computes' sums do not fit together. They are published, so their budget stays spent.

    `computes` are those whose sums do not fit the others', or are none, where that can be told.
    """

    def __init__(self, reason: str, message: str, computes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.reason, self.computes = reason, computes


class PrivacyLeakWarning(UserWarning):
    """Private data was used to choose something that must be public."""


class NotFiniteWarning(UserWarning):
    """A client's vector was NaN or infinite, so it sent zero; said where the client runs and nowhere else."""


class WeakPrivacyWarning(UserWarning):
    """A budget that promises less than it seems to; said before it is spent."""


class UntrustworthyWarning(UserWarning):
    """A result that must not be trusted, or of which it cannot be told; the text says why and what to do."""


class OutOfDomainWarning(UserWarning):
    """A sample was not in the domain and counted as zero; said to whoever runs the process that holds it (on Spark the
    driver), and to nobody else."""


def warn_of_rows(what: str, stacklevel: int = 3) -> None:
    """Say that something is computed from rows as they are, which leaks where these are private."""
    warnings.warn(
        f"{what} is computed from the rows as they are: it is not private, nor is a setting chosen by it; "
        "use public rows, or keep it to yourself",
        PrivacyLeakWarning,
        stacklevel=stacklevel,
    )


def whole(field: str, value: object, least: int, remedy: str, most: int | None = None) -> int:
    """`value` as a whole number in its range, or one line that says so; fractions are never rounded."""
    bound = f"a whole number >= {least}" if most is None else f"a whole number in {least}..{most}"
    if isinstance(value, bool) or (not isinstance(value, int) and not hasattr(value, "__index__")):
        raise invalid(field, bound, repr(value), remedy)
    number = int(value.__index__())
    if number < least or (most is not None and number > most):
        raise invalid(field, bound, number, remedy)
    return number


def invalid(field: str, bound: str, value: object, remedy: str) -> InvalidInput:
    """The one shape of a message about a bad value: bound first, then value, then remedy."""
    return InvalidInput(f"{field} must be {bound}, got {field}={value}; {remedy}")
