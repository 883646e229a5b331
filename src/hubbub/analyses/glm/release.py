"""The steps of a generalised linear model as an object of its own: save it, load it, take another prior, for free."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hubbub.analyses.files import Content, names_of, numbers, read_json, write_json
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.look import NOT_SEEN, InterceptPrior, Stepped
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.posterior import GLMPosterior, sample_glm
from hubbub.analyses.glm.stored import ZERO_ONE, StoredGLM, dispersion_of, family_of, labels_of, plain, plain_offset
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.evidence import Look
from hubbub.analyses.linear.release import checked_prior, sampling_caution, shape_of
from hubbub.analyses.linear.turned import Axes, Uneven
from hubbub.errors import UntrustworthyWarning
from hubbub.statistics import Ball, Gram

_MOST = 1e100  # of any number in a file: squares of it are finite


@dataclass(frozen=True)
class GLMRelease:
    """What the private rounds released, the columns' names, and the privacy report they were released under.

    Whatever is computed from it is post-processing. Fewer features and comparisons of models, which a release of the
    linear regression has, are not there: the steps were taken at states of all columns.
    """

    FORMAT: ClassVar[str] = "hubbub generalised linear release 1"

    stepped: Stepped
    family: str
    names: tuple[str, ...]
    target: str
    privacy: dict[str, Any]
    labels: tuple[str, str] = ZERO_ONE
    """Of no and yes, where y is one."""
    offset: Offset | None = None
    """What rows added to their linear predictor; coefficients and intercept are those where that is 0."""

    @property
    def n(self) -> int:
        """How many samples."""
        return self.stepped.n

    def stored(self, posterior: GLMPosterior) -> StoredGLM:
        """What `hubbub predict` needs, with a posterior that was made of this."""
        return StoredGLM(list(self.names), self.target, posterior, self.privacy, labels=self.labels, offset=self.offset)

    def posterior(
        self, *, prior_scale: object = None, prior_mean: object = None, draws: int = 1000, seed: int | None = 0
    ) -> GLMPosterior:
        """The posterior under this prior (deviations and means of coefficients in the units of the data).

        Where the sampler's chains disagree or hold little, an UntrustworthyWarning says of what and what to do.
        """
        prior = checked_prior(len(self.names), prior_scale, prior_mean, "noise-aware", draws)
        found = sample_glm(self.stepped, FAMILIES[self.family], prior, draws=draws, seed=seed, names=self.names)
        caution = sampling_caution(found.linear, self.names, draws)
        if caution is not None:
            warnings.warn(caution, UntrustworthyWarning, stacklevel=2)
        return found

    def save(self, path: str | Path) -> None:
        """Write the JSON file. It is as public as the release itself."""
        s, columns = self.stepped, self.stepped.columns
        looks = [{"around": a.around.tolist(), "score": a.xy.tolist(), "noise_std": a.xy_noise} for a in s.looks]
        write_json(path, self.FORMAT, {
            "family": self.family, "names": list(self.names), "target": self.target,
            "labels": self.labels, "privacy": self.privacy,
            "n": s.n, "noise_std": s.noise_std, "noise_shape": s.shape, "radius": s.ball.radius,
            "information": s.sums.xx.tolist(), "score": s.sums.xy.tolist(), "looks": looks, "ratio": s.ratio,
            "intercept_prior": list(s.intercept_prior), "uneven": None if s.uneven is None else _plain_uneven(s.uneven),
            "centre": columns.centre.tolist(), "scale": columns.scale.tolist(), "doubt": columns.doubt.tolist(),
            "dispersion": plain(s.dispersion), "offset": plain_offset(self.offset),
        })  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> GLMRelease:
        """Read the JSON file, or say in one line what is wrong with it."""
        return read_json("release", path, {cls.FORMAT: cls.of})

    @classmethod
    def of(cls, content: Content) -> GLMRelease:
        """From what a file holds; a ValueError, KeyError or TypeError where it is damaged."""
        family, names = family_of(content), tuple(names_of(content["names"]))
        return cls(_stepped(content, len(names)), family, names, str(content["target"]), {**content["privacy"]},
                   labels_of(content), Offset.of(content["offset"]))  # fmt: skip


def _stepped(content: Content, d: int) -> Stepped:
    """Rebuilt and checked: every shape, every sign, every size."""
    p, n = d + 1, int(content["n"])
    information, score = numbers(content["information"], p, p), numbers(content["score"], p)
    columns = Columns(*(numbers(content[name], d + 1) for name in ("centre", "scale", "doubt")))
    looks = tuple(_look(each, p) for each in content["looks"])
    noise, radius, ratio = (float(numbers(content[name])) for name in ("noise_std", "radius", "ratio"))
    positive = min(noise, radius, ratio, *columns.scale) > 0 and columns.doubt.min() >= 0
    if not (looks and positive and 2 <= n <= 10**12 and np.allclose(information, information.T)):
        raise ValueError
    sizes = [*information.ravel(), *score, noise, radius, ratio, *columns.centre, *columns.scale, *columns.doubt]
    if content["uneven"] is not None and content.get("noise_shape") is not None:  # rows are turned under normal noise
        raise ValueError
    if max(map(abs, sizes)) > _MOST or np.trace(information) > n * radius**2 + 100 * p * noise:
        raise ValueError
    return Stepped(
        Gram(information, score, 0.0), n, noise, Ball(radius, p, y=1.0), columns, True,
        shape_of(content.get("noise_shape")), looks=looks, ratio=ratio, dispersion=dispersion_of(content),
        uneven=_uneven(content["uneven"], p, len(looks)), intercept_prior=_intercept_prior(content["intercept_prior"]),
    )  # fmt: skip


def _intercept_prior(content: object) -> InterceptPrior:
    mean, std = numbers(content, 2)
    if not (0 < std < _MOST and abs(mean) < 1e30):
        raise ValueError
    return InterceptPrior(float(mean), float(std))


def _plain_uneven(uneven: Uneven) -> Content:
    return {
        "along": uneven.axes.along.tolist(), "stretch": uneven.axes.stretch.tolist(),
        "information_noise": uneven.xx.tolist(), "score_noise": uneven.xy.tolist(),
    }  # fmt: skip


def _uneven(content: Content | None, p: int, looks: int) -> Uneven | None:
    """The noise where the last step was at turned rows: along orthogonal axes, and no deviation is 0."""
    if content is None:
        return None
    along, stretch = numbers(content["along"], p, p), numbers(content["stretch"], p)
    xx, xy = numbers(content["information_noise"], p, p), numbers(content["score_noise"], looks, p)
    positive = np.concatenate([stretch, xx.ravel(), xy.ravel()])
    if not (np.allclose(along.T @ along, np.eye(p)) and positive.min() > 0 and positive.max() < _MOST):
        raise ValueError
    if not np.allclose(xx, xx.T):
        raise ValueError
    return Uneven(Axes(along, stretch), xx, xy)


def _look(content: Content, p: int) -> Look:
    around, score, noise = numbers(content["around"], p), numbers(content["score"], p), float(content["noise_std"])
    if not (0 < noise < _MOST and max(np.abs(around).max(), math.sqrt(np.abs(score).max())) < 1e30):
        raise ValueError
    return Look(around, score, noise, 0.0, NOT_SEEN)
