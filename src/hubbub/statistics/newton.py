"""One Newton step of a generalised linear model: each row's part of the score and of the information, bounded.

The proof of the sensitivity is in docs/privacy.md, section 5.1; tests/statistics/test_newton.py tries to break it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, whole
from hubbub.protocols import Description, Statistic
from hubbub.statistics.bounds import positive
from hubbub.statistics.log_link import Counts, Dispersed, Logarithms, OverdispersedCounts, PositiveNumbers
from hubbub.statistics.responses import Logit, Probit, Response

_MOST_COLUMNS = 1400  # so that the information has fewer than a million numbers


class NewtonSums(NamedTuple):
    """What a sum of such vectors holds, each part in its own units."""

    score: Floats
    """(p,): sum of c e u."""
    information: Floats
    """(p, p): sum of c i uu'."""
    variance: float
    """Sum of the squared lengths of the rows' scores: about the trace of the covariance of their sum."""
    spread: float
    """Sum of what the response says of its dispersion; 0 where nothing is asked."""


@dataclass(frozen=True)
class NewtonStep(Statistic):
    """(u, y) -> weight c e u, the triangle of c i uu', and trace c^2 e^2 |u|^2, at a public state b.

    With the linear predictor u'b the response gives a residual e, its bound m and the information i. The factor
    c = min(1, score/(m |u|), information/(i |u|^2)) is made of u and b alone, never of y: so c e has mean zero at the
    truth as e has, and shortening rows biases nothing. No row's score c e u is longer than `score`, no row's c i uu'
    larger than `information` (Frobenius norm; off the diagonal terms are multiplied by sqrt(2)).

    With an offset rows are (u, o, y), and the linear predictor is u'b + o. Where `spread` is positive, the vector ends
    with so many times what the response says of its dispersion.
    """

    response: Response
    state: tuple[float, ...]
    """b, the coefficients of u."""
    score: float
    information: float
    weight: float
    """What the score is multiplied by, beside the information."""
    trace: float
    """What the squared length of a score is multiplied by, beside the information."""
    spread: float = 0.0
    """What the response's word on its dispersion is multiplied by; 0 leaves it out."""
    offset: bool = False
    """True where each row has a part of its linear predictor of its own."""

    def __post_init__(self) -> None:
        whole("state", len(self.state), 1, "name a coefficient for each column", most=_MOST_COLUMNS)
        state = tuple(float(value) for value in self.state)
        if not np.isfinite(state).all() or max(map(abs, state)) > 1e50:
            raise InvalidInput("state must be finite numbers within 1e50, got others; start again from zero")
        object.__setattr__(self, "state", state)
        for name in ("score", "information", "weight", "trace"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.spread != 0:
            object.__setattr__(self, "spread", positive("spread", self.spread))
            if not isinstance(self.response, Dispersed):
                raise InvalidInput("spread must be 0 where the response has no dispersion, got another; use describe()")
        if not isinstance(self.offset, bool):
            raise InvalidInput("offset must be true or false, got another; use describe()")

    @property
    def features(self) -> int:
        """The columns without y; the constant among them."""
        return len(self.state)

    @property
    def columns(self) -> int:
        """The features, the offset where there is one, then y."""
        return self.features + self.offset + 1

    @property
    def dimension(self) -> int:
        """Score, triangle and trace, and the spread where it is asked for."""
        p = self.features
        return p + p * (p + 1) // 2 + 1 + (self.spread > 0)

    @property
    def magnitude(self) -> float:
        """Of the parts the largest."""
        return max(self.weight * self.score, self.information, self.trace * self.score**2, self.spread)

    @property
    def sensitivity(self) -> float:
        """Replace-one: with A = information^2, B = (weight score)^2 and C = (trace score^2)^2 the root of

        max(A + 4 B, 2 A + 2 B + B^2/(2 A)), of which the second holds where B < 2 A only; plus C where B < 2 C, and
        plus (2 spread)^2. What u, the offset and y are makes no difference.
        """
        A, B, C = self.information**2, (self.weight * self.score) ** 2, (self.trace * self.score**2) ** 2
        tilted = 2 * A + 2 * B + B**2 / (2 * A) if B < 2 * A else 0.0
        return float(np.sqrt(max(A + 4 * B, tilted) + (C if B < 2 * C else 0.0) + 4 * self.spread**2))

    @property
    def sensitivity_l1(self) -> float:
        """By Cauchy-Schwarz, of the whole or of each part, whichever is less."""
        p = self.features
        parts = 2 * self.weight * self.score * np.sqrt(p) + self.information * np.sqrt(p * (p + 1))
        parts += self.trace * self.score**2 + 2 * self.spread
        return float(min(np.sqrt(self.dimension) * self.sensitivity, parts))

    @property
    def domain(self) -> str:
        """What y may be."""
        return f"finite numbers, with {self.response.domain}"

    def inside(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows have a y that the response knows."""
        return self.response.inside(rows[:, -1])

    def vectors(self, rows: Floats) -> Floats:
        """Score, triangle and trace of each row, and its spread."""
        u, p = rows[:, : self.features], self.features
        squares, eta = np.square(u).sum(axis=1), (u * np.asarray(self.state)).sum(axis=1)
        found = self.response.working(eta + rows[:, p] if self.offset else eta, rows[:, -1])
        length = np.maximum(found.most * np.sqrt(squares), self.score)
        c = np.minimum(
            self.score / length, self.information / np.maximum(found.information * squares, self.information)
        )
        out = np.empty((rows.shape[0], self.dimension))
        e = c * np.clip(found.residual, -found.most, found.most)
        out[:, :p] = u * (self.weight * e)[:, None]
        v = u * np.sqrt(c * found.information)[:, None]
        start = p
        for j in range(p):
            out[:, start : start + p - j] = v[:, j : j + 1] * v[:, j:]
            start += p - j
        out[:, p:start] *= self._isometric
        out[:, start] = self.trace * np.minimum(e**2 * squares, self.score**2)
        if self.spread > 0:
            assert found.spread is not None
            out[:, -1] = self.spread * np.clip(found.spread, -1.0, 1.0)
        return out

    def unflatten(self, vector: Floats) -> NewtonSums:
        """Back from a sum, or one row's vector."""
        p, end = self.features, self.features + self._isometric.size
        triangle = vector[p:end] / self._isometric
        information = np.empty((p, p))
        information[np.triu_indices(p)] = triangle
        information.T[np.triu_indices(p)] = triangle
        spread = float(vector[-1] / self.spread) if self.spread > 0 else 0.0
        return NewtonSums(vector[:p] / self.weight, information, float(vector[end] / self.trace), spread)

    @cached_property
    def _isometric(self) -> Floats:
        row, column = np.triu_indices(self.features)
        return np.where(row == column, 1.0, np.sqrt(2.0))

    def describe(self) -> dict[str, object]:
        """Response, state, bounds and weights, for the study."""
        return {
            "statistic": NAME, **self.response.describe(), "state": list(self.state), "score": self.score,
            "information": self.information, "weight": self.weight, "trace": self.trace, "spread": self.spread,
            "offset": self.offset,
        }  # fmt: skip

    @classmethod
    def of(cls, d: Description) -> NewtonStep:
        """From its description."""
        state = d["state"]
        if not isinstance(state, list) or not 1 <= len(state) <= _MOST_COLUMNS:
            raise InvalidInput("state must be a list of numbers, got another; use describe()")
        numbers = {name: d[name] for name in ("score", "information", "weight", "trace", "spread", "offset")}
        return cls(response_from(d), tuple(state), **numbers)


def response_from(d: Description) -> Response:
    """The response that describes itself so."""
    name = d["response"]
    if name in ("logit", "probit"):
        return Logit() if name == "logit" else Probit()
    if name == "logarithms":
        return Logarithms(d["band"], d["whole"])
    if name == "counts":
        return Counts(d["band"], d["doubt"])
    if name == "overdispersed counts":
        return OverdispersedCounts(d["band"], d["doubt"], d["dispersion"])
    if name == "positive numbers":
        return PositiveNumbers(d["band"], d["doubt"], d["dispersion"])
    known = "logit, probit, counts, overdispersed counts, positive numbers or logarithms"
    raise InvalidInput(f"response must be {known}, got another; update hubbub")


NAME = "newton step"
