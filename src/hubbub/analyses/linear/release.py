"""The release of the default regression as an object of its own: save it, load it, refit it, at no further cost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hubbub.analyses.files import Content, read_json, write_json
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior, sample_posterior
from hubbub.analyses.linear.released import LaterLook, Released
from hubbub.analyses.linear.residuals import EDGES
from hubbub.analyses.linear.sampler.chains import Effort
from hubbub.analyses.linear.shrinkage import in_original_units, shrinkage_posterior
from hubbub.analyses.linear.tuning import TUNING, record
from hubbub.analyses.linear.unevenly import noise_budget
from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, UntrustworthyWarning, invalid, whole
from hubbub.shown import facts_html
from hubbub.statistics import Ball, Gram

KINDS = ("noise-aware", "shrinkage")
LEAST_SHAPE, MOST_SHAPE = 0.01, 1e12
"""Of the noise: shares that were added over shares that make Laplace noise. A sum has all of them, and rarely many."""
_MOST_MODELS = 64
_MOST_LATER = 8


@dataclass(frozen=True)
class RegressionRelease:
    """The noisy sums, their columns' names, and the privacy report they were released under.

    Whatever is computed from it is post-processing: another prior, fewer features, a comparison of models.
    """

    FORMAT: ClassVar[str] = "hubbub regression release 2"
    EARLIER: ClassVar[str] = "hubbub regression release 1"

    released: Released
    names: tuple[str, ...]
    target: str
    privacy: dict[str, Any]
    tuning: dict[str, Any] = field(default_factory=record)
    """The numbers chosen by judgement (`analyses/linear/tuning.py`) that were in force when it was released, with their
    version; empty where a file of an earlier version did not say. A posterior is always made with today's numbers."""

    @property
    def n(self) -> int:
        """How many samples."""
        return self.released.n

    def posterior(
        self,
        *,
        prior_scale: object = None,
        prior_mean: object = None,
        kind: str = "noise-aware",
        draws: int = 1000,
        seed: int | None = 0,
    ) -> LinearPosterior:
        """The posterior under this prior (standard deviations and means in the units of the data).

        A width or a mean beyond 10^4 standard units counts as so many: that is flat already.
        "shrinkage" is the quick closed form, with a learned prior only. For fewer features see `restricted`.
        Where the sampler's chains disagree or hold little, an UntrustworthyWarning says of what and what to do.
        """
        if kind not in KINDS:
            raise invalid("kind", f"one of {', '.join(KINDS)}", repr(kind), "use 'noise-aware'")
        prior = checked_prior(len(self.names), prior_scale, prior_mean, kind, draws)
        if kind == "shrinkage":
            quick = in_original_units(shrinkage_posterior(self.released), self.released)
            return LinearPosterior(quick.coefficients, quick.residual_variance, names=self.names)
        found = sample_posterior(self.released, prior, draws=draws, seed=seed)
        drawn = np.column_stack([found.coefficients, found.intercept, found.residual_variance])
        posterior = LinearPosterior.of_draws(
            drawn, found.chains, found.centre, found.on_rows, chains_on_rows=found.chains_on_rows,
            noise_share=found.noise_share, names=self.names,
        )  # fmt: skip
        caution = sampling_caution(posterior, self.names, draws)
        if caution is not None:
            warnings.warn(caution, UntrustworthyWarning, stacklevel=2)
        return posterior

    def compare(
        self, models: Sequence[Sequence[str]], *, prior_scale: object = None, seed: int | None = 0
    ) -> list[float]:
        """Posterior probability of each model (a list of features), all equally likely a priori.

        The evidence of a model averages over everything it leaves open, the noise included: where the noise hides
        a feature's worth, the smaller model is not ruled out. Every model claims that what it leaves out has no
        effect: where all of them leave out something that has, none fits.
        """
        if not _is_list(models) or not 2 <= len(models) <= _MOST_MODELS:
            raise invalid("models", f"2 to {_MOST_MODELS} lists of features", repr(models), "name the candidates")
        positions = [self._positions(model) for model in models]
        prior = checked_prior(len(self.names), prior_scale, None, "noise-aware", 2000)
        found = sample_posterior(self.released, prior, draws=2000, seed=seed, models=positions)
        return [float(p) for p in found.models]

    def restricted(self, features: Sequence[str]) -> RegressionRelease:
        """The release of these columns alone, for the regression on them: nothing is assumed of the others."""
        chosen = self._positions(features)
        if not chosen:
            raise invalid("features", "at least one name", list(features), f"choose among {', '.join(self.names)}")
        r, first = self.released, int(self.released.intercept)
        return replace(
            self, released=r.restricted([*range(first), *(first + j for j in chosen)]), names=tuple(features)
        )

    def noise_budget(self) -> dict[str, Floats]:
        """For each coefficient the variance it owes to sampling, to the noise of X'y and to that of XX'.

        First-order, at the closed-form estimate, in the units of the data: a guide to what a larger budget would buy.
        """
        r, first, seen = self.released, int(self.released.intercept), self.released.evidence
        quick = shrinkage_posterior(r)
        if seen.uneven is not None:
            parts = noise_budget(seen, quick.coefficients.mean, quick.residual_variance)
            return {name: part[first:] * r.factors**2 for name, part in parts.items()}
        values, vectors = np.linalg.eigh(seen.xx)
        solid = np.maximum(values, seen.noise_std)  # below the noise nothing is known of S
        inverse = vectors @ np.diag(1 / solid) @ vectors.T
        step = quick.coefficients.mean - seen.around  # what the last round was not around yet
        squared = np.diag(inverse @ inverse)
        parts = {
            "sampling": np.diag(inverse) * quick.residual_variance,
            "noise of X'y": squared * seen.xy_noise**2,
            "noise of XX'": (squared * float(step @ step) + (np.diag(inverse) * step) ** 2) * seen.noise_std**2 / 2,
        }
        return {name: part[first:] * r.factors**2 for name, part in parts.items()}

    def _repr_html_(self) -> str:
        r, told = self.released, self.privacy
        promise = told.get("budget", {}) if told.get("guarantee") else "NOT A GUARANTEE (see privacy)"
        return facts_html("Release of a regression", {
            "features": ", ".join(self.names), "target": self.target, "samples": r.n,
            "intercept": "yes" if r.intercept else "no", "rounds of sums": 1 + len(r.later),
            "noise": f"standard deviation {r.noise_std:.4g} in a diagonal term of XX', columns standardised",
            "differential privacy": promise if isinstance(promise, str) else _listed(promise),
        })  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the JSON file. It is as public as the release itself."""
        r = self.released
        write_json(path, self.FORMAT, {
            "names": list(self.names), "target": self.target, "privacy": self.privacy,
            "n": r.n, "noise_std": r.noise_std, "noise_shape": r.shape, "intercept": r.intercept,
            "xx": r.sums.xx.tolist(), "xy": r.sums.xy.tolist(), "yy": r.sums.yy,
            "radius": r.ball.radius, "y_bound": r.ball.y, "weight": r.ball.weight,
            "centre": r.columns.centre.tolist(), "scale": r.columns.scale.tolist(), "doubt": r.columns.doubt.tolist(),
            "later": [_later_content(each) for each in r.later], "tuning": self.tuning,
        })  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> RegressionRelease:
        """Read the JSON file, or say in one line what is wrong with it."""
        return read_json("release", path, dict.fromkeys((cls.FORMAT, cls.EARLIER), cls.of))

    @classmethod
    def of(cls, content: Content) -> RegressionRelease:
        """From what a file holds; a ValueError, KeyError or TypeError where it is damaged."""
        return cls(_released(content), tuple(map(str, content["names"])), str(content["target"]),
                   {**content["privacy"]}, {**content.get("tuning", {})})  # fmt: skip

    def _positions(self, features: Sequence[str]) -> list[int]:
        if not _is_list(features):
            raise invalid("features", "a list of names", repr(features), f"choose among {', '.join(self.names)}")
        unknown = [name for name in features if name not in self.names]
        if unknown or len(set(features)) != len(features):
            known = ", ".join(self.names)
            raise InvalidInput(f"features must be distinct names among {known}, got {', '.join(map(str, features))}")
        return [self.names.index(name) for name in features]


def _listed(budget: object) -> str:
    return ", ".join(f"{name} {value}" for name, value in budget.items()) if isinstance(budget, dict) else str(budget)


def _is_list(value: object) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, str)


def sampling_caution(posterior: LinearPosterior, names: Sequence[str], draws: int) -> str | None:
    """One line on the quantity that the sampler told least of, where r-hat or effective sample size is bad."""
    if posterior.diagnostics is None:
        return None
    ess, r_hat, bad = posterior.diagnostics.ess_bulk, posterior.diagnostics.r_hat, posterior.diagnostics.bad
    if not bad.any():
        return None
    worst = int(np.argmin(np.where(bad, ess, np.inf)))
    effort = Effort.of(len(names) + int(posterior.joint.covariance[-1, -1] > 0))
    more = effort.sweeps(draws) < effort.most
    advice = "raise draws, say fourfold" if more else "take fewer features, or read its interval as rough"
    return (
        f"r_hat must be at most {TUNING.bad_r_hat} and ess at least {TUNING.least_ess:.0f}, got "
        f"{r_hat[worst]:.2f} and {ess[worst]:.0f} for {[*names, 'intercept', 'residual deviation'][worst]}"
        f" ({int(bad.sum())} such in all); {advice}"
    )


def checked_prior(features: int, prior_scale: object, prior_mean: object, kind: str, draws: int) -> Prior:
    """The prior, or one line that says what is wrong with it: to be asked before a budget is spent."""
    if kind == "shrinkage" and not (prior_scale is None and prior_mean is None):
        field = "prior_mean" if prior_scale is None else "prior_scale"
        raise invalid(field, "left out for posterior 'shrinkage'", "a value", "use posterior='noise-aware'")
    whole("draws", draws, 100, "1000 are enough for 90 % intervals")
    scale = _per_feature("prior_scale", prior_scale, features, positive=True)
    return Prior(scale, _per_feature("prior_mean", prior_mean, features, positive=False))


def _per_feature(field: str, value: object, features: int, *, positive: bool) -> Floats | None:
    if value is None:
        return None
    kind = "a positive number" if positive else "a number"
    wrong = invalid(field, f"{kind}, or one for each of the {features} features", repr(value), "give e.g. 1.0")
    try:
        numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), features)
    except (TypeError, ValueError):
        raise wrong from None
    if not np.isfinite(numbers).all() or (positive and not (numbers > 0).all()):
        raise wrong
    return numbers


def _released(content: dict[str, Any]) -> Released:
    """Rebuilt and checked: every shape, every sign, every size."""
    if not isinstance(content["names"], list) or len(set(content["names"])) != len(content["names"]):
        raise ValueError
    d, intercept = len(content["names"]), bool(content["intercept"])
    p = d + int(intercept)
    sums = Gram(np.array(content["xx"], float), np.array(content["xy"], float), float(content["yy"]))
    columns = Columns(*(np.array(content[name], float) for name in ("centre", "scale", "doubt")))
    ball = Ball(float(content["radius"]), p, y=float(content["y_bound"]), weight=float(content["weight"]))
    shapes = [part.shape == (d + 1,) for part in (columns.centre, columns.scale, columns.doubt)]
    single = np.array([sums.yy, content["noise_std"]])
    numbers = (sums.xx, sums.xy, columns.centre, columns.scale, columns.doubt, single)
    if sums.xx.shape != (p, p) or sums.xy.shape != (p,) or not all(shapes) or d < 1:
        raise ValueError
    if not all(np.isfinite(part).all() for part in numbers) or not (columns.scale > 0).all() or int(content["n"]) < 2:
        raise ValueError
    if not np.allclose(sums.xx, sums.xx.T) or (columns.doubt < 0).any() or float(content["noise_std"]) < 0:
        raise ValueError
    shape = shape_of(content.get("noise_shape"))
    later = tuple(_later(each, p) for each in _looks_of(content))
    if len(later) > _MOST_LATER or any(not _same(each.turn, later[0].turn) for each in later):
        raise ValueError
    released = Released(sums, int(content["n"]), float(content["noise_std"]), ball, columns, intercept, shape, later)
    looks = [released, *(replace(released, sums=each.sums, noise_std=each.noise_std, later=()) for each in later)]
    if not all(map(_sensible, looks)):
        raise ValueError
    return released


def _looks_of(content: Content) -> list[Content]:
    """Of later rounds: files of before had one, or none."""
    if content["format"] == RegressionRelease.EARLIER:
        return [] if content.get("second") is None else [content["second"]]
    found: list[Content] = content["later"]
    return found


def _later_content(later: LaterLook) -> dict[str, Any]:
    return {
        "xx": later.sums.xx.tolist(), "xy": later.sums.xy.tolist(), "yy": later.sums.yy,
        "noise_std": later.noise_std, "around": later.around.tolist(), "unit": later.unit,
        "counts": later.counts.tolist(), "counts_noise": later.counts_noise,
        "left_out": later.left_out, "left": later.left, "turn": None if later.turn is None else later.turn.tolist(),
    }  # fmt: skip


def _later(content: dict[str, Any], p: int) -> LaterLook:
    """A later round's release, checked for shapes and signs; its sums' size is checked with the others."""
    arrays = {name: np.array(content[name], float) for name in ("xx", "xy", "around", "counts")}
    shapes = {"xx": (p, p), "xy": (p,), "around": (p,), "counts": (len(EDGES) + 1,)}
    single = {name: float(content[name]) for name in ("yy", "noise_std", "unit", "counts_noise")}
    if any(arrays[name].shape != shape or not np.isfinite(arrays[name]).all() for name, shape in shapes.items()):
        raise ValueError
    if not np.isfinite(list(single.values())).all() or min(single["noise_std"], single["counts_noise"]) < 0:
        raise ValueError
    if not 1e-6 <= single["unit"] <= 1e6 or np.abs(arrays["around"]).max() > 1e6:
        raise ValueError
    if not np.allclose(arrays["xx"], arrays["xx"].T):
        raise ValueError
    left_out, left = float(content.get("left_out", 0.0)), content.get("left")
    if not 0 <= left_out <= 1e6 or not (left is None or 0.01 <= float(left) <= 1):
        raise ValueError
    return LaterLook(
        Gram(arrays["xx"], arrays["xy"], single["yy"]), single["noise_std"], arrays["around"], single["unit"],
        arrays["counts"], single["counts_noise"], left_out, None if left is None else float(left),
        _turn(content.get("turn"), p),
    )  # fmt: skip


def _turn(value: object, p: int) -> Floats | None:
    """Of the rows: symmetric, and far from singular. None in files of versions that turned none."""
    if value is None:
        return None
    turn = np.array(value, float)
    if turn.shape != (p, p) or not np.isfinite(turn).all() or not np.allclose(turn, turn.T):
        raise ValueError
    stretch = np.linalg.eigvalsh(turn)
    if stretch[0] < 1e-4 or stretch[-1] > 1e4:
        raise ValueError
    return turn


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other if one is None or other is None else bool(np.array_equal(one, other))


def shape_of(value: object) -> float | None:
    """Of the noise: none in files of a version that knew normal noise only."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_SHAPE <= value <= MOST_SHAPE:
        raise ValueError
    return float(value)


def _sensible(r: Released) -> bool:
    """Sums no larger than rows in the ball can make them, up to noise; other numbers as a release can have them."""
    assert r.ball.y is not None
    assert r.sums.yy is not None
    most, noise = r.n * max(r.ball.radius, r.ball.y) ** 2, r.noise_std / min(1.0, r.ball.weight) ** 2
    sums = max(np.abs(r.sums.xx).max(), np.abs(r.sums.xy).max(), abs(r.sums.yy))
    sizes = np.array([r.ball.radius, r.ball.y, r.ball.weight, *r.columns.scale])
    units = (sizes[:3] >= 1e-6).all() and (sizes[:3] <= 1e6).all() and (sizes[3:] >= 1e-60).all()
    columns = max(np.abs(r.columns.centre).max(), r.columns.scale.max()) <= 1e60 and r.columns.doubt.max() <= 100
    return bool(r.n <= 10**12 and r.noise_std <= 1e15 and units and columns and sums <= most + 100 * noise)
