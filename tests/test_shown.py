"""What notebooks show: everything that the text says, escaped, without scripts or colours of its own."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from hubbub import (
    Bernoulli,
    Budget,
    Ledger,
    LocalEngine,
    PrivateGLM,
    PrivateLinearRegression,
    VariationalLogisticRegression,
)
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.errors import UntrustworthyWarning
from hubbub.shown import Part, facts_html, quantities_html, table_html

EVIL = "<script>alert(1)</script>&"


class Read(HTMLParser):
    """The text of a page, its elements and their styles; every element must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.open, self.tags, self.attributes = "", list[str](), set[str](), set[str]()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {f"{name}={value}" for name, value in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f" {data} "

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def fitted() -> SimpleNamespace:
    """A regression of a column with an evil name, with its ledger; a count of answers."""
    pandas = pytest.importorskip("pandas")
    rng, ledger = np.random.default_rng(0), Ledger(Budget(3.0, 1e-5))
    X = pandas.DataFrame({EVIL: rng.normal(size=500), "dose": rng.normal(size=500)})
    options = {"x_bound": 4.0, "engine": LocalEngine(seed=1), "ledger": ledger, "draws": 100}
    line = PrivateLinearRegression(y_bound=6.0, **options).fit(X, X["dose"] + rng.normal(size=500))
    glm = PrivateGLM("probit", **options).fit(X, rng.random(500) < 0.4)
    answers = Bernoulli().fit(rng.random(500) < 0.3, budget=Budget(1.0, 1e-5), engine=LocalEngine(computes=3))
    steps = VariationalLogisticRegression(Budget(1.0, 1e-5), steps=2, engine=LocalEngine(computes=3), seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustworthyWarning)
        steps.fit(X.to_numpy(), X["dose"] > 0)
    return SimpleNamespace(line=line, glm=glm, ledger=ledger, answers=answers, steps=steps)


def everything(f: SimpleNamespace) -> dict[str, object]:
    return {
        "summary": f.line.summary(), "report": f.line.privacy_, "ledger": f.ledger, "release": f.line.release_,
        "posterior": f.line.posterior_, "result": f.line.result_, "glm summary": f.glm.summary(),
        "glm posterior": f.glm.posterior_, "glm result": f.glm.result_, "answers": f.answers,
        "posterior of answers": f.answers.posterior, "one round": f.answers.release, "its report": f.answers.privacy,
        "of steps": f.steps.privacy_, "found in steps": f.steps.result_,
    }  # fmt: skip


def test_nothing_but_tables_lists_and_text_in_any_of_them(fitted: SimpleNamespace):
    for name, what in everything(fitted).items():
        html = what._repr_html_()
        page = Read(html)
        assert page.tags <= {"table", "caption", "tbody", "tr", "th", "td", "div", "ul", "ol", "li"}, name
        styles = {each.split("=", 1)[1] for each in page.attributes if each.startswith("style")}
        for style in styles:  # a colour of its own would not be legible in every theme
            assert not re.search(r"(?<!-)color:(?!inherit)|background|#|rgb|font-size", style), (name, style)
        assert all(each.split("=")[0] in {"style", "scope"} for each in page.attributes), name
        assert "<script" not in html, name


def test_names_of_columns_are_shown_as_they_are(fitted: SimpleNamespace):
    for name in ("summary", "release", "posterior", "result", "glm summary", "glm posterior", "glm result"):
        page = Read(everything(fitted)[name]._repr_html_())
        assert EVIL in page.words, name
        assert "dose" in page.words, name


def test_a_report_says_in_html_what_it_says_as_text(fitted: SimpleNamespace):
    for report in (fitted.line.privacy_, fitted.answers.privacy, fitted.steps.privacy_):
        page = Read(report._repr_html_()).words
        said = 0
        for part in report.parts():
            assert part.title in page
            for text in (part.text, *part.items):
                assert " ".join(text.split()) in page
                said += len(text.split())
        assert said > 0.9 * len(re.sub(r"(?m)^  (\d\.|[-+]) ", "", str(report)).split()) - 40
    assert "NOT A GUARANTEE" in Read(fitted.line.privacy_._repr_html_()).words
    assert "NOT A GUARANTEE" in Read(fitted.line.release_._repr_html_()).words
    assert "NOT A GUARANTEE" in Read(fitted.line.summary()._repr_html_()).words
    assert "NOT A GUARANTEE" not in Read(fitted.answers._repr_html_()).words


def test_a_ledger_lists_every_release(fitted: SimpleNamespace):
    page = Read(fitted.ledger._repr_html_()).words
    assert str(fitted.ledger).splitlines()[0] in page
    for entry in fitted.ledger.entries:
        assert entry.label in page
    assert "together less than the sum" in page


def test_a_summary_has_the_numbers_of_its_text(fitted: SimpleNamespace):
    summary = fitted.glm.summary(0.8)
    page = Read(summary._repr_html_()).words
    for row in summary.rows:
        for part in (f"{row['mean']:.4g}", f"{row['low']:.4g} .. {row['high']:.4g}", f"{row['ess']:.0f}"):
            assert part in page
    assert "80% interval" in page
    assert summary.note in page


def test_text_is_as_before(fitted: SimpleNamespace):
    assert Part("Spent", "epsilon 1").lines() == ["Spent:           epsilon 1"]
    assert Part("Rounds", items=("a", "b"), mark="1.").lines() == ["Rounds", "  1. a", "  2. b"]
    assert Part("Not promised", items=("c " * 60,)).lines()[1:] == ["  - " + "c " * 47 + "c", "    " + "c " * 11 + "c"]
    assert repr(fitted.line.privacy_).startswith("PrivacyReport(budget=Budget(")
    assert repr(fitted.ledger).startswith("Ledger(Budget(")
    assert not repr(fitted.line.posterior_).count("names=")


def test_estimators_keep_the_html_of_scikit_learn(fitted: SimpleNamespace):
    html = fitted.line._repr_html_()
    assert "sk-" in html
    assert "PrivateLinearRegression" in html


def test_tables_escape_everything():
    for html in (
        table_html([EVIL, "b"], [[EVIL, EVIL]], EVIL, EVIL), facts_html(EVIL, {EVIL: EVIL}), Part("a", EVIL).html(),
        Part("a", items=(EVIL,)).html(), quantities_html([{"name": EVIL, "mean": 1, "std": 1, "low": 0, "high": 2}], 0.9),
    ):  # fmt: skip
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_release_from_a_file_is_shown_whatever_its_report_says(fitted: SimpleNamespace, tmp_path):
    for privacy in ({}, {"guarantee": True, "budget": EVIL}, {"guarantee": True, "budget": {EVIL: 1}}):
        release = RegressionRelease(fitted.line.release_.released, ("a", "b"), "y", privacy)
        Read(release._repr_html_())
        assert "<script" not in release._repr_html_()
