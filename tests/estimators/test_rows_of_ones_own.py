"""ArviZ and predictive draws on rows of the caller's own: right numbers, names of columns, and a plain warning."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from hubbub import (
    Budget,
    InvalidInput,
    LocalEngine,
    PrivacyLeakWarning,
    PrivateGLM,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    TrustedAggregator,
)
from hubbub.analyses.glm.laws import LAWS, law_of
from hubbub.analyses.linear.projected import BoxResult

arviz = pytest.importorskip("arviz")
pandas = pytest.importorskip("pandas")
BOUND = {"age": (0, 110), "dose": (0, 5)}
OPTIONS = {"budget": Budget(1.0, 1e-6), "engine": LocalEngine(seed=2)}
KINDS = ("linear", "shrinkage", "bernoulli", "probit", "poisson", "classes")


@pytest.fixture(scope="module")
def people():
    rng, n = np.random.default_rng(8), 3000
    frame = pandas.DataFrame({"age": rng.normal(50, 12, n), "dose": rng.normal(2, 0.5, n)})
    eta = -2.5 + 0.03 * frame["age"] + 0.5 * frame["dose"]
    frame["linear"] = frame["shrinkage"] = 3 * eta + rng.normal(size=n)
    frame["bernoulli"] = frame["probit"] = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    frame["classes"] = np.where(frame["bernoulli"] == 1, "yes", "no")
    frame["poisson"] = rng.poisson(np.exp(eta / 2))
    return frame


@pytest.fixture(scope="module")
def models(people):
    X = people[["age", "dose"]]
    line = {"x_bound": list(BOUND.values()), "y_bound": (-10, 15), **OPTIONS}
    found = {
        "linear": PrivateLinearRegression(**line), "shrinkage": PrivateLinearRegression(posterior="shrinkage", **line),
        "bernoulli": PrivateGLM("bernoulli", x_bound=BOUND, **OPTIONS),
        "probit": PrivateGLM("probit", x_bound=BOUND, **OPTIONS),
        "poisson": PrivatePoissonRegression(x_bound=BOUND, y_bound=20, **OPTIONS),
        "classes": PrivateLogisticRegression(x_bound=BOUND, classes=["yes", "no"], **OPTIONS),
    }  # fmt: skip
    return {kind: model.fit(X, people[kind]) for kind, model in found.items()}


def exported(models, people, kind: str, rows: int = 300):
    part = people.iloc[:rows]
    with pytest.warns(PrivacyLeakWarning, match=r"to_arviz\(X, y\) is computed from the rows as they are"):
        return models[kind].to_arviz(part[["age", "dose"]], part[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_log_likelihoods_are_those_of_scipy(models, people, kind: str):
    data = exported(models, people, kind, rows=40)
    part, posterior = people.iloc[:40], data.posterior
    beta, intercept = posterior["beta"].values, posterior["intercept"].values
    if kind != "shrinkage":  # sampled coefficients predict for rows as moved to them (sampler/on_rows.py)
        sampled = models[kind].posterior_
        moved = sampled.chains_on_rows if kind == "linear" else sampled.linear.chains_on_rows
        np.testing.assert_allclose(moved.mean(axis=(0, 1)), [*beta.mean(axis=(0, 1)), intercept.mean()], rtol=0.05)
        beta, intercept = moved[..., :-1], moved[..., -1]
    eta = beta @ part[["age", "dose"]].to_numpy().T + intercept[..., None]
    y = part["bernoulli"].to_numpy() if kind in ("bernoulli", "probit", "classes") else part[kind].to_numpy()
    if kind == "classes":
        y = 1 - y  # "no" is the second class there
    law = {
        "linear": lambda: stats.norm(eta, posterior["sigma"].values[..., None]).logpdf(y),
        "shrinkage": lambda: stats.norm(eta, posterior["sigma"].values[..., None]).logpdf(y),
        "bernoulli": lambda: stats.bernoulli(1 / (1 + np.exp(-eta))).logpmf(y),
        "classes": lambda: stats.bernoulli(1 / (1 + np.exp(-eta))).logpmf(y),
        "probit": lambda: stats.bernoulli(stats.norm.cdf(eta)).logpmf(y),
        "poisson": lambda: stats.poisson(np.exp(eta)).logpmf(y),
    }[kind]()
    found = data.log_likelihood["y"].values
    assert found.shape == (*beta.shape[:2], 40)
    np.testing.assert_allclose(found, law, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(data.observed_data["y"].values, y)


def test_a_linear_regressions_chains_are_moved_to_the_rows_and_without_noise_they_stay(people):
    X = people[["age", "dose"]].to_numpy()
    model = PrivateLinearRegression(Budget(1e6, 1e-6), list(BOUND.values()), (-10, 15), engine=TrustedAggregator(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.fit(X, people["linear"]).posterior_
    np.testing.assert_allclose(posterior.chains_on_rows, posterior.chains[..., :-1], atol=0.02 * posterior.std.max())


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_outcomes_have_the_mean_and_spread_that_the_model_predicts(models, people, kind: str):
    """Of 300 rows. FALSE_ALARM: below 1e-6, as deviations of means are a fifth of the tolerance."""
    data, model, X = exported(models, people, kind), models[kind], people.iloc[:300][["age", "dose"]]
    drawn = data.posterior_predictive["y"].values.reshape(-1, 300)
    again = model.sample_predictive(X, 4000, seed=3)
    if kind == "classes":
        assert set(np.unique(again)) == {"yes", "no"}
        again = (again == "no").astype(float)
    expected = model.predict_proba(X)[:, 1] if kind == "classes" else model.predict(X)
    deviation = drawn.std()
    for each in (drawn, again):
        assert each.mean() == pytest.approx(expected.mean(), abs=0.03 * deviation)
        np.testing.assert_allclose(each.mean(axis=0), expected, atol=0.25 * deviation)
    np.testing.assert_allclose(drawn.std(axis=0).mean(), again.std(axis=0).mean(), rtol=0.05)
    if kind in ("linear", "shrinkage"):
        np.testing.assert_allclose(drawn.std(axis=0), model.predict(X, return_std=True)[1], rtol=0.15)
    elif kind == "poisson":
        np.testing.assert_allclose(drawn.var(axis=0).mean(), expected.mean(), rtol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_arviz_takes_it_for_loo_and_checks(models, people, kind: str):
    import matplotlib

    matplotlib.use("Agg")
    data = exported(models, people, kind)
    chains = 1 if kind == "shrinkage" else 4
    assert data.posterior["beta"].shape[0] == chains
    assert data.posterior["feature"].values.tolist() == ["age", "dose"]
    assert json.loads(data.posterior.attrs["privacy_report"])["epsilon"] == pytest.approx(1.0, rel=1e-6)
    for group in (
        data,
        data.posterior_predictive,
        data.log_likelihood,
        data.observed_data,
    ):  # which the report must not be read for
        assert "outside the privacy guarantee" in group.attrs["privacy"]
        assert "privacy_report" not in group.attrs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a discrete outcome, and few draws
        found = arviz.loo(data, reff=1.0)
        assert arviz.plot_ppc(data, num_pp_samples=5) is not None
    each = data.log_likelihood["y"].values.reshape(-1, 300)
    together = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
    assert together.sum() - 30 < found.elpd_loo < together.sum()
    assert ("sigma" in data.posterior) == (kind in ("linear", "shrinkage"))
    if chains == 4:
        table, told = models[kind].summary().to_dict(), arviz.summary(data, round_to="none")
        for j, name in enumerate(["age", "dose"]):
            assert table[name]["r_hat"] == pytest.approx(told["r_hat"].iloc[j], rel=1e-6)
            assert table[name]["ess"] == pytest.approx(told["ess_bulk"].iloc[j], rel=1e-6)


def test_rows_alone_are_predicted_and_nothing_else_is_said_of_them(models, people):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        data = models["poisson"].to_arviz(people.iloc[:7][["age", "dose"]])
        assert models["poisson"].to_arviz().groups() == ["posterior"]
    assert data.groups() == ["posterior", "posterior_predictive"]
    assert data.posterior_predictive["y"].shape == (4, 250, 7)
    again = models["poisson"].to_arviz(people.iloc[:7][["age", "dose"]], seed=0)
    np.testing.assert_array_equal(data.posterior_predictive["y"], again.posterior_predictive["y"])


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("poisson", [1, 2], "y must have a value for each of the 3 rows, got 2"),
        ("poisson", [1, 2, -717], "y must be a whole number >= 0 for the family poisson"),
        ("bernoulli", [0, 1, 717], "y must be 0 or 1 for the family bernoulli"),
        ("classes", ["yes", "no", "secret717"], "y must be one of the two classes"),
        ("linear", [1.0, np.nan, 717.0], "y must be finite"),
        ("linear", ["a717", "b", "c"], "y must be numeric"),
    ],
)
def test_bad_rows_are_one_line_without_their_values(models, people, kind: str, y, message: str):
    X = people.iloc[:3][["age", "dose"]]
    with pytest.raises(InvalidInput, match=message) as caught:
        models[kind].to_arviz(X, y)
    assert "717" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match="X must be given with y"):
        models[kind].to_arviz(y=y)


def test_a_family_without_a_law_is_refused():
    with pytest.raises(InvalidInput, match="family must be one of bernoulli, probit, poisson"):
        law_of("cauchy")


def test_laws_far_out_are_finite():
    far, rng = np.array([-800.0, 800.0]), np.random.default_rng(0)
    for law in LAWS.values():
        assert np.isfinite(law.drawn(rng, far, np.ones(1))).all()
        assert not np.isnan(law.log_likelihood(far, np.ones(2), np.ones(1))).any()


@pytest.mark.parametrize(
    ("family", "law"),
    [
        ("negative-binomial", lambda mean, d: stats.nbinom(1 / d, 1 / (1 + d * mean))),
        ("gamma", lambda mean, d: stats.gamma(1 / d, scale=d * mean)),
    ],
)
def test_laws_with_a_dispersion_are_those_of_scipy(family: str, law):
    """Log likelihoods to ten digits; 40000 draws have mean and variance within six of their errors."""
    eta, y, dispersion = np.array([-0.5, 1.0, 3.0]), np.array([1.0, 3.0, 25.0]), np.array([[0.3], [1.7]])
    rng = np.random.default_rng(1)
    found = law_of(family).log_likelihood(eta, y, dispersion)
    exact = law(np.exp(eta), dispersion)
    np.testing.assert_allclose(found, exact.logpdf(y) if family == "gamma" else exact.logpmf(y), rtol=1e-10)
    drawn = law_of(family).drawn(rng, np.broadcast_to(eta, (40_000, 3)), np.full((40_000, 1), 0.3))
    expected, spread = np.exp(eta), law(np.exp(eta), 0.3).var()
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - expected), 6 * np.sqrt(spread / 40_000))
    np.testing.assert_allclose(drawn.var(axis=0), spread, rtol=0.15)


def test_exposures_and_dispersions_are_part_of_what_is_exported(people):
    rng = np.random.default_rng(3)
    X, years = people[["age", "dose"]], rng.uniform(0.5, 4.0, len(people))
    y = rng.poisson(years * rng.gamma(2.0, np.exp(0.02 * people["age"]) / 2.0))
    model = PrivateGLM("negative-binomial", x_bound=BOUND, y_bound=60, exposure_bound=(0.5, 4), **OPTIONS)
    model.fit(X, y, exposure=years)
    twice = [model.sample_predictive(X[:200], 2000, seed=1, exposure=np.full(200, each)).mean() for each in (1.0, 2.0)]
    assert twice[1] == pytest.approx(2 * twice[0], rel=0.05)
    with pytest.warns(PrivacyLeakWarning):
        data = model.to_arviz(X[:50], y[:50], exposure=years[:50])
    moved, posterior = model.posterior_.linear.chains_on_rows, data.posterior
    eta = moved[..., :-1] @ X[:50].to_numpy().T + moved[..., -1:] + np.log(years[:50])
    d = posterior["dispersion"].values[..., None]
    assert np.median(d) == pytest.approx(model.posterior_.dispersion.value, rel=0.1)
    exact = stats.nbinom(1 / d, 1 / (1 + d * np.exp(eta))).logpmf(y[:50])
    np.testing.assert_allclose(data.log_likelihood["y"].values, exact, rtol=1e-8)
    with pytest.raises(InvalidInput, match="X must be given with exposure"):
        model.to_arviz(exposure=years)


def test_gaussian_is_exported_as_a_linear_regression(people):
    model = PrivateGLM("gaussian", x_bound=BOUND, y_bound=(-10, 15), **OPTIONS).fit(
        people[["age", "dose"]], people["linear"]
    )
    assert model.to_arviz().posterior["beta"].shape[-1] == 2
    assert "sigma" in model.to_arviz().posterior
    assert model.sample_predictive(people[["age", "dose"]][:5], 10, seed=0).shape == (10, 5)
    assert model.release_.posterior(prior_scale=0.1).labels == ["age", "dose"]
    assert model.stored(["age", "dose"], "y").target == "y"


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_columns_are_everywhere(models, kind: str):
    model, names = models[kind], ["age", "dose"]
    frame = model.summary().to_frame()
    assert frame.index.tolist()[:3] == [*names, "intercept"]
    assert frame.loc["age", "mean"] == pytest.approx(np.ravel(model.coef_)[0])
    assert model.posterior_.labels == names
    assert model.feature_names_in_.tolist() == names
    assert model.release_.names == ("age", "dose")
    if kind == "linear":
        assert model.release_.restricted(["dose"]).posterior(kind="shrinkage").labels == ["dose"]


def test_the_papers_methods_have_names_too(people):
    X = people[["age", "dose"]] - people[["age", "dose"]].mean()
    model = PrivateLinearRegression(OPTIONS["budget"], 60.0, 20.0, method="plain").fit(X, people["linear"])
    assert isinstance(model.result_, BoxResult)
    assert model.posterior_.labels == ["age", "dose"]
    assert model.to_arviz().posterior["feature"].values.tolist() == ["age", "dose"]


def test_names_come_through_a_pipeline_that_gives_data_frames(people):
    """set_output is for transformers, as in scikit-learn: predictions stay arrays."""
    public = StandardScaler()  # of public numbers, so that it learns nothing here
    public.fit(pandas.DataFrame({"age": [40.0, 60.0], "dose": [1.0, 3.0]}))
    pipeline = make_pipeline(
        FunctionTransformer(public.transform, feature_names_out="one-to-one"),
        PrivateLogisticRegression(x_bound=6.0, **OPTIONS),
    ).set_output(transform="pandas")
    pipeline.fit(people[["age", "dose"]], people["bernoulli"])
    assert [row["name"] for row in pipeline[-1].summary().rows] == ["age", "dose", "intercept"]
    assert isinstance(pipeline.predict(people[["age", "dose"]]), np.ndarray)
    for model in (PrivateLinearRegression, PrivateGLM, PrivateLogisticRegression):
        assert not hasattr(model, "get_feature_names_out")  # nor has a regressor or classifier of scikit-learn
