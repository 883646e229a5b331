"""Private variational inference: exact without noise, the conjugate posterior with little, refusals before any cost."""

from __future__ import annotations

import json

import jax
import numpy as np
import optax
import pytest
from numpyro.infer.autoguide import AutoMultivariateNormal

import hubbub
from analyses.iterative import models
from hubbub import (
    Budget,
    BudgetExceeded,
    InvalidInput,
    Ledger,
    LocalEngine,
    PrivateSVI,
    RoundRefused,
    TrustedAggregator,
)
from hubbub.errors import NotFiniteWarning
from hubbub.privacy import GaussianEvent, gaussian_round
from hubbub.protocols import Engine
from hubbub.statistics import Clipped

X, Y = models.logistic_data()
SMALL = {"steps": 3, "clip": 1.0, "seed": 0}


def test_sum_of_gradients_is_exact_without_noise():
    """Integer fixed point: within 2^-f of the plain sum for each term."""
    fitted = PrivateSVI(models.logistic, noise_multiplier=0.0, **SMALL).fit(X, Y)
    at = np.array([0.3, -0.2, 0.1])
    rows = np.column_stack([X, Y])
    release = LocalEngine(computes=3).private_sum(rows, gaussian_round(Clipped(fitted.program_, at, 1.0), 0.0))
    by_hand = X * (Y - 1 / (1 + np.exp(-X @ at)))[:, None]
    by_hand *= np.minimum(1, 1 / np.linalg.norm(by_hand, axis=1))[:, None]
    vectors = Clipped(fitted.program_, at, 1.0).vectors(rows)
    np.testing.assert_allclose(vectors, by_hand, atol=1e-6)  # JAX computes in 32 bits
    step = 2.0**-release.protection.fraction_bits
    assert np.abs(release.value - vectors.sum(axis=0)).max() <= 300 * step


def test_noise_off_gives_the_same_training_with_and_without_the_secure_sum():
    private, trusted = (
        PrivateSVI(models.logistic, noise_multiplier=0.0, engine=engine, steps=20, seed=0).fit(X, Y)
        for engine in (LocalEngine(computes=3), TrustedAggregator())
    )
    np.testing.assert_allclose(private.trace_, trusted.trace_, atol=1e-5)
    assert "no noise was added" in private.privacy_.reservations[0]


@pytest.mark.parametrize("guide", [pytest.param(AutoMultivariateNormal, marks=pytest.mark.long), models.own_guide])
def test_guides_of_every_kind_come_close_to_the_same_mean(guide):
    fitted = PrivateSVI(models.logistic, guide, budget=Budget(100.0, 1e-5), clip=3.0, steps=200, seed=0).fit(X, Y)
    w = fitted.sample(500)["w"]
    best = PrivateSVI(models.logistic, noise_multiplier=0.0, clip=100.0, steps=200, seed=1).fit(X, Y).sample(500)["w"]
    assert np.abs(w.mean(axis=0) - best.mean(axis=0)).max() < 0.15
    assert (fitted.noise_ is None) == (guide is models.own_guide)


def test_conjugate_posterior_is_approached_as_epsilon_grows():
    """Distance to N(sum x/(n+1), 1/(n+1)) in its own deviations, one seed each; at epsilon 100 within half a deviation."""
    x = 0.7 + np.random.default_rng(1).standard_normal(400)
    exact, deviation = x.sum() / 401, 401**-0.5
    distance, widths = [], []
    for epsilon in (0.3, 100.0):
        fitted = PrivateSVI(
            models.normal_mean, budget=Budget(epsilon, 1e-5), clip=4.0, steps=400, engine=LocalEngine(seed=3), seed=0
        ).fit(x)
        draws = fitted.sample(2000)["m"]
        distance.append(abs(draws.mean() - exact) / deviation)
        widths.append(draws.std() / deviation)
    assert distance[1] < 0.5
    assert distance[1] < distance[0]
    assert 0.8 < widths[1] < 1.3
    assert widths[0] > 2  # the noise is counted


@pytest.mark.parametrize(("batch", "selection", "epsilon"), [(60, "self", 20.0), (60, "trainer", 100.0)])
def test_batches_of_both_kinds_learn_and_the_report_says_against_whom(batch, selection, epsilon):
    fitted = PrivateSVI(
        models.logistic, budget=Budget(epsilon, 1e-5), batch=batch, selection=selection, steps=150, clip=3.0, seed=0,
        engine=LocalEngine(seed=0),
    ).fit(X, Y)  # fmt: skip
    assert fitted.sample(300)["w"].mean(axis=0)[2] > 0.5
    against = fitted.privacy_.as_dict()["against"]
    assert set(against) == {"public model", "Computes", "trainer"}
    if selection == "self":
        assert "amplified by sampling" in against["trainer"]["why"]
        assert fitted.privacy_.last.n == 300
    else:
        assert "not amplified" in against["Computes"]["why"]
        assert fitted.privacy_.last.n == batch
        assert fitted.privacy_.plan.participations(150) == 30
    assert all(value["epsilon"] <= epsilon for value in against.values())
    json.dumps(fitted.privacy_.as_dict())


def test_real_randomness_is_a_guarantee_and_a_seed_is_not():
    fitted = PrivateSVI(models.logistic, **SMALL).fit(X, Y)
    assert fitted.privacy_.is_guarantee
    assert "Holds against" in str(fitted.privacy_)
    seeded = PrivateSVI(models.logistic, engine=LocalEngine(seed=1), **SMALL).fit(X, Y)
    assert not seeded.privacy_.is_guarantee
    assert "NOT A GUARANTEE" in str(seeded.privacy_)


def test_nothing_is_compiled_after_the_first_step():
    compiled, counts = [], []

    def listen(name: str, *_, **__) -> None:
        if name == "/jax/core/compile/backend_compile_duration":
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    model = PrivateSVI(models.logistic, batch=100, steps=12, seed=0, tick=lambda _: counts.append(len(compiled)))
    model.fit(X, Y)
    assert counts[1:] == [counts[1]] * 11
    before = len(compiled)
    model.fit(X + 1.0, Y)
    assert len(compiled) == before  # nor for a second fit


BAD_MODELS = {
    "no plate": (models.without_plate, None, r"got site 'y' outside a subsampled plate over the data"),
    "rows that look at one another": (models.centred_in_the_model, None, r"model must have independent rows"),
    "plate of a fixed size": (models.fixed_plate, None, r"model must take any number of rows|outside a subsampled plate"),
    "latent site in every row": (models.with_local_latent, None, r"would depend on the data"),
    "discrete latent site": (models.with_discrete_latent, None, r"continuous latent sites, got discrete 'k'"),
    "guide that reads the data": (models.logistic, models.guide_that_reads_the_data, r"do not depend on the data, got param"),
    "guide as long as the data": (models.logistic, models.guide_as_long_as_the_data, r"do not depend on the data"),
    "guide without the site": (models.logistic, models.guide_without_the_site, r"must draw every latent site, got none for 'w'"),
    "guide that is a number": (models.logistic, 3, r"guide must be a function or an automatic guide"),
    "model that is a number": (3, None, r"model must be a function"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_MODELS)
def test_bad_models_and_guides_are_one_line_and_cost_nothing(name: str):
    model, guide, message = BAD_MODELS[name]
    ledger = Ledger(Budget(10.0, 1e-5))
    with pytest.raises(InvalidInput, match=message) as caught:
        PrivateSVI(model, guide, ledger=ledger, **SMALL).fit(X, Y)
    assert "\n" not in str(caught.value)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 301}, r"batch must be a whole number in 1..300, got batch=301"),
        ({"noise_multiplier": 0.3}, r"budget must pay for at least one step"),
        ({"clip": 0.0}, r"clip must be positive and finite"),
        ({"budget": 1.0}, r"budget must be a Budget"),
        ({"optimiser": 0.1}, r"optimiser must be one of optax"),
        ({"engine": LocalEngine}, r"engine must be an engine"),
        ({"average": 0.0}, r"average must be in \(0, 1\]"),
        ({"engine": LocalEngine(tolerate=299)}, r"dropouts \+ colluders must be at most K - 2 = 298"),
    ],
)
def test_bad_settings_are_one_line_and_cost_nothing(arguments, message):
    ledger = Ledger(Budget(10.0, 1e-5))
    with pytest.raises(InvalidInput, match=message) as caught:
        PrivateSVI(models.logistic, **{"ledger": ledger, "steps": 3, **arguments}).fit(X, Y)
    assert "\n" not in str(caught.value)
    assert ledger.entries == ()


@pytest.mark.parametrize("bad", [(), (X, Y[:-1]), (X, np.where(Y, np.nan, 1.0)), (np.array([["a"]] * 3), [0, 0, 0])])
def test_bad_data_is_one_line(bad):
    with pytest.raises(InvalidInput, match="data must"):
        PrivateSVI(models.logistic, **SMALL).fit(*bad)


def test_client_whose_gradient_is_not_finite_sends_zero_and_says_so():
    """A row so large that its likelihood overflows in 32 bits."""
    x = np.append(np.random.default_rng(0).standard_normal(50), 1e38)
    with pytest.warns(NotFiniteWarning, match=r"got NaN or infinity for 1 of 51 at once; each of them sends zero"):
        fitted = PrivateSVI(models.normal_mean, clip=4.0, noise_multiplier=0.0, steps=3, seed=0).fit(x, sigma=1e-3)
    assert np.isfinite(fitted.trace_).all()


@pytest.mark.parametrize("selection", ["self", "trainer"])
def test_dropouts_are_tolerated_up_to_t(selection):
    engine = LocalEngine(tolerate=3, absent=(0, 7), lost_halfway=(19,))
    fitted = PrivateSVI(models.logistic, engine=engine, batch=100, selection=selection, **SMALL).fit(X, Y)
    report = fitted.privacy_
    assert report.most_dropouts == 3 if selection == "self" else report.most_dropouts <= 3
    assert report.least_covered == 3
    assert report.is_guarantee


def test_more_dropouts_are_refused_and_only_what_was_released_is_charged():
    ledger = Ledger(Budget(3.0, 1e-5))
    engine = LocalEngine(tolerate=1, absent=(0, 7))
    with pytest.raises(RoundRefused, match="clients must number at least 299 "):
        PrivateSVI(models.logistic, engine=engine, ledger=ledger, **SMALL).fit(X, Y)
    assert ledger.entries == ()


class RefusesTheThird(Engine):
    """An engine that loses its clients in the third round."""

    hold, population = LocalEngine().hold, LocalEngine().population

    def __init__(self) -> None:
        self.inner, self.rounds = LocalEngine(computes=3), 0

    def private_sum(self, rows, spec):
        self.rounds += 1
        if self.rounds == 3:
            raise RoundRefused("too-few-clients", "clients must come back")
        return self.inner.private_sum(rows, spec)


@pytest.mark.parametrize("batch", [None, 100])
def test_run_that_ends_early_is_charged_for_what_was_released(batch):
    ledger = Ledger(Budget(3.0, 1e-5))
    with pytest.raises(RoundRefused):
        PrivateSVI(models.logistic, engine=RefusesTheThird(), ledger=ledger, batch=batch, steps=10, seed=0).fit(X, Y)
    assert [entry.label for entry in ledger.entries] == ["variational inference, 2 step(s)"]
    assert 0 < ledger.epsilon < 0.8


def test_ledger_is_charged_once_before_the_first_step_and_refuses_what_it_cannot_pay():
    ledger = Ledger(Budget(1.2, 1e-5))
    seen = []
    model = PrivateSVI(models.logistic, ledger=ledger, tick=lambda _: seen.append(len(ledger.entries)), **SMALL)
    model.fit(X, Y)
    assert seen == [1, 1, 1]
    assert ledger.epsilon == pytest.approx(1.0, abs=0.01)
    assert isinstance(ledger.entries[0].event.ideal, GaussianEvent)
    with pytest.raises(BudgetExceeded):
        model.fit(X, Y)
    assert len(seen) == 3
    with Ledger(Budget(1.5, 1e-5)) as around:
        PrivateSVI(models.logistic, batch=100, **SMALL).fit(X, Y)
    assert around.entries[0].event.ideal.steps == 3


def test_summary_predictions_and_arviz_carry_the_report():
    fitted = PrivateSVI(models.logistic, optimiser=optax.sgd(0.5), **SMALL).fit(X, Y)
    assert [row["name"] for row in fitted.summary().rows] == ["w[0]", "w[1]", "w[2]"]
    assert fitted.predict(X[:4], draws=20)["y"].shape == (20, 4)
    exported = fitted.to_arviz(X[:4], draws=50)
    assert exported.posterior["w"].shape == (1, 50, 3)
    assert exported.posterior_predictive["y"].shape[-1] == 4
    report = json.loads(exported.posterior.attrs["privacy_report"])
    assert report["guarantee"]
    assert report["adjacency"].startswith("replace-one")


def test_rows_that_the_model_cannot_predict_are_refused_in_one_line():
    fitted = PrivateSVI(models.logistic, **SMALL).fit(X, Y)
    for rows in (np.ones((1001, 3)), np.ones((5, 4)), np.ones(3)):
        with pytest.raises(InvalidInput, match="rows must be ones that the model takes, got shapes") as error:
            fitted.predict(rows)
        assert "\n" not in str(error.value)


def test_programs_are_files_that_clients_install(tmp_path):
    from hubbub.analyses.iterative.xla import XlaProgram

    program = PrivateSVI(models.logistic, **SMALL).fit(X, Y).program_
    program.save(tmp_path / "gradient.program")
    again = XlaProgram.load(tmp_path / "gradient.program")
    assert again.fingerprint == program.fingerprint
    rows, at = np.column_stack([X, Y]), np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(again.vectors(at, rows), program.vectors(at, rows))
    (tmp_path / "bad").write_bytes(b"something else\n")
    with pytest.raises(InvalidInput, match="program must be a file written by"):
        XlaProgram.load(tmp_path / "bad")


BUDGET = Budget(1.0, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.long), "network"])
def test_training_runs_where_clients_are_elsewhere(engine, request):
    if engine == "spark":
        from hubbub.engines.spark.engine import SparkEngine
        from spark_support import shared_session

        where = SparkEngine(computes=3, seed=1, session=shared_session(), partitions=2)
    else:
        where = hubbub.NetworkEngine(request.getfixturevalue("live").urls, seed=1, holds=25, budget=BUDGET)
    x = np.random.default_rng(0).standard_normal(50)
    fitted = PrivateSVI(models.normal_mean, budget=BUDGET, batch=5, steps=2, engine=where, seed=0).fit(x)
    assert fitted.privacy_.steps == 2
    assert fitted.privacy_.last.protection.computes == 3
    if engine == "spark":
        with pytest.raises(InvalidInput, match="selection must be 'self' on Spark"):
            PrivateSVI(models.normal_mean, batch=25, selection="trainer", steps=2, engine=where).fit(x)


def test_public_arguments_are_told_apart_by_content():
    """Long arrays print alike."""
    from hubbub.analyses.iterative.public import Public

    a, b = np.zeros(5000), np.zeros(5000)
    b[2500] = 1
    assert Public(v=a) == Public(v=a.copy())
    assert Public(v=a) != Public(v=b)


def test_use_before_fit_is_one_line():
    with pytest.raises(InvalidInput, match="PrivateSVI must be fitted first"):
        PrivateSVI(models.logistic).sample()
    assert hubbub.PrivateSVI is PrivateSVI
