"""Where a sample (x, y) may lie, and how it is moved there: a box (clip) or a ball (scale).

Each bound states how far replacing one sample can move the regression statistic. The derivations
stand in docs/privacy.md; `tests/statistics/test_sensitivity.py` tries to break them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid

Formula = Literal["tight", "paper"]

_SMALLEST, _LARGEST = 1e-50, 1e50  # so that fourth powers stay ordinary doubles


def positive(field: str, value: object) -> float:
    """A finite positive number, or one line that says so."""
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever it is, float() decides
    except (TypeError, ValueError):
        raise invalid(field, "a positive number", repr(value), "give the public bound of the data") from None
    if not np.isfinite(number) or number <= 0:
        raise invalid(field, "positive and finite", number, "give the public bound of the data, e.g. 7.5")
    if not _SMALLEST <= number <= _LARGEST:
        raise invalid(field, f"in {_SMALLEST:g}..{_LARGEST:g}", number, "change the unit of that column")
    return number


@dataclass(frozen=True)
class Box:
    """|x_j| <= x[j] and |y| <= y: each coordinate is clipped on its own. No y, no target terms."""

    x: tuple[float, ...]
    y: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(positive("x_bound", c) for c in self.x))
        if self.y is not None:
            object.__setattr__(self, "y", positive("y_bound", self.y))

    @property
    def features(self) -> int:
        """How many coordinates x has."""
        return len(self.x)

    def apply(self, u: Floats) -> Floats:
        """Clip every coordinate of the rows u = (x, y) to its interval."""
        limit = np.asarray(self.x if self.y is None else (*self.x, self.y))
        return np.clip(u, -limit, limit)

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """Weights of the terms x_j^2, x_j x_k, x_j y, y^2: none."""
        return 1.0, 1.0, 1.0, 1.0

    def sensitivity(self, target_square: bool, formula: Formula = "tight") -> float:
        """L2 distance that one replaced sample can cause."""
        C, C_y = np.square(self.x), 0.0 if self.y is None else self.y**2
        if formula == "paper":
            return _paper_l2(C, C_y, target_square)
        F = float(C.sum())
        if C_y > F and not target_square:
            return float(np.sqrt(4 * F * C_y))
        sides = np.append(C, C_y) if C_y else C
        if sides.size % 2 == 1 and sides.size > 1 and np.all(sides == sides[0]):
            return float(sides[0] * np.sqrt(sides.size**2 - 1))  # an odd number cannot be halved
        return F + C_y

    def sensitivity_l1(self, target_square: bool, formula: Formula = "tight") -> float:
        """L1 distance that one replaced sample can cause."""
        c, c_y = np.asarray(self.x), self.y or 0.0
        if formula == "paper":
            return _paper_l1(c, c_y, target_square)
        s, C = c.sum() + c_y, np.square(c).sum()
        last = c_y**2 if target_square else -_least_loss(c, c_y)
        return float((s**2 + C + last) / 2)

    def magnitude(self, target_square: bool) -> float:
        """The largest absolute value of any term."""
        largest, c_y = max(self.x), self.y or 0.0
        return max(largest**2, largest * c_y, c_y**2 if target_square else 0.0)

    def describe(self) -> dict[str, object]:
        """Name and limits, for the study."""
        return {"bound": "box", "x": list(self.x), "y": self.y}


def _paper_l2(C: Floats, C_y: float, target_square: bool) -> float:
    """The paper's bound: every product moves by twice its largest value, every square by once."""
    F, squares = C.sum(), np.square(C).sum()
    pairs = 2 * (F**2 - squares)  # 4 C_j C_k over j < k
    return float(np.sqrt(squares + pairs + 4 * F * C_y + (C_y**2 if target_square else 0.0)))


def _least_loss(c: Floats, c_y: float) -> float:
    """min over |w_j| <= c_j of |w|^2 + (sum w)^2 - 2 c_y sum w + c_y^2, by filling up to a common level."""
    c = np.sort(c)
    for full in range(c.size + 1):  # the `full` smallest stand at their bound, the others at the level
        total = (c[:full].sum() + (c.size - full) * c_y) / (1 + c.size - full)
        level = c_y - total
        if full == c.size or level <= c[full]:
            w = np.append(c[:full], np.full(c.size - full, level))
            return float(w @ w + w.sum() ** 2 - 2 * c_y * w.sum() + c_y**2)
    raise AssertionError("unreachable: the loop returns at the latest where all are full")


def _paper_l1(c: Floats, c_y: float, target_square: bool) -> float:
    """The same term-by-term reasoning for the L1 norm."""
    s = c.sum()
    return float(s**2 + 2 * s * c_y + (c_y**2 if target_square else 0.0))


@dataclass(frozen=True)
class Ball:
    """|x|_2 <= radius and |y| <= y: a long row is scaled down, x and y by the same factor.

    Scaling both keeps E[y|x] = x'beta, so the regression stays unbiased where clipping would not.
    Off-diagonal terms are weighted by sqrt(2), which makes the statistic isometric to the matrix
    uu' with u = (x, weight * y): its sensitivity then does not grow with the number of features.
    """

    radius: float
    features: int
    y: float | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "weight", positive("weight", self.weight))
        if self.y is not None:
            object.__setattr__(self, "y", positive("y_bound", self.y))

    def apply(self, u: Floats) -> Floats:
        """Scale long rows u = (x, y) so that |x| is the radius at most, then clip y."""
        length = np.linalg.norm(u[:, : self.features], axis=1, keepdims=True)
        bounded: Floats = u * (self.radius / np.maximum(length, self.radius))
        if self.y is not None:
            np.clip(bounded[:, -1], -self.y, self.y, out=bounded[:, -1])
        return bounded

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """Weights of the terms x_j^2, x_j x_k, x_j y, y^2."""
        root = float(np.sqrt(2.0))
        return 1.0, root, root * self.weight, self.weight**2

    def sensitivity(self, target_square: bool, formula: Formula = "tight") -> float:
        """L2 distance of the weighted statistic; the paper has no ball, so both formulas agree."""
        R2, w2 = self.radius**2, (self.weight * (self.y or 0.0)) ** 2
        if w2 > R2 and not target_square:
            return float(np.sqrt(8 * w2 * R2))
        if self.y is None and self.features == 1:
            return R2  # on a line no two points are orthogonal
        return float(np.sqrt(2.0) * (R2 + w2))

    def sensitivity_l1(self, target_square: bool, formula: Formula = "tight") -> float:
        """L1 distance by Cauchy-Schwarz from the L2 distance."""
        d = self.features
        terms = d * (d + 1) // 2 + (d if self.y is not None else 0) + int(target_square)
        return float(np.sqrt(terms)) * self.sensitivity(target_square)

    def magnitude(self, target_square: bool) -> float:
        """The largest absolute value of any weighted term."""
        w = self.weight * (self.y or 0.0)
        return float(max(self.radius**2, np.sqrt(2.0) * w * self.radius, w**2 if target_square else 0.0))

    def describe(self) -> dict[str, object]:
        """Name and limits, for the study."""
        return {
            "bound": "ball",
            "radius": self.radius,
            "y": self.y,
            "weight": self.weight,
            "d": self.features,
        }
