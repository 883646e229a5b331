"""Any model or release that `hubbub fit` has written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hubbub.analyses.files import Content, read_json
from hubbub.analyses.glm.release import GLMRelease
from hubbub.analyses.glm.stored import StoredGLM
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.stored import StoredModel

AnyModel = StoredModel | StoredGLM
AnyRelease = RegressionRelease | GLMRelease

_MODELS: Mapping[str, Callable[[Content], AnyModel]] = {each.FORMAT: each.of for each in (StoredModel, StoredGLM)}
_RELEASES: Mapping[str, Callable[[Content], AnyRelease]] = {
    RegressionRelease.FORMAT: RegressionRelease.of,
    RegressionRelease.EARLIER: RegressionRelease.of,
    GLMRelease.FORMAT: GLMRelease.of,
}


def load_model(path: str | Path) -> AnyModel:
    """What `hubbub fit --out` has written."""
    return read_json("model", path, _MODELS)


def load_release(path: str | Path) -> AnyRelease:
    """What `hubbub fit --release` has written."""
    return read_json("release", path, _RELEASES)
