"""A study on live Computes, as an analyst and clients would run it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from hubbub.privacy import Budget, Population, gaussian_round
from hubbub.protocols import SecureSum
from hubbub.service.analyst.analyst import Analyst, find_compute, make_tokens, new_study
from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.devnet import LocalComputes
from hubbub.service.wire.records import RoundRecord
from hubbub.service.wire.signing import SigningKey
from hubbub.service.wire.web import Patience, Web
from hubbub.statistics import Means

STATISTIC = Means((64.0, 64.0))
N = 6


class LiveStudy:
    """N clients with a unique mark each, of whom one may be missing, on the Computes given."""

    def __init__(
        self, computes: LocalComputes, folder: Path, budget: Budget | None = None, samples: dict[str, int] | None = None,
        seconds: float = 3600.0, patience: float = 20.0, title: str = "a live test",
        secure_sum: SecureSum | None = None,
    ) -> None:  # fmt: skip
        authority = None if computes.authority is None else str(computes.authority)
        self.web = Web.open(authority, Patience(total=patience, first=0.02, most=0.5))
        self.key = SigningKey.generate()
        self.samples = samples or {f"c{i}": 1 for i in range(N)}
        found = [find_compute(url, self.web) for url in computes.urls]
        counts = self.samples.values()
        population = Population(len(counts), 1, samples=sum(counts), largest=max(counts))
        self.study = new_study(title, found, population, budget, self.key, seconds=seconds, secure_sum=secure_sum)
        self.tokens = make_tokens(self.samples)
        self._start(folder)

    def close_results(self) -> None:
        """The same study with results for the analyst alone; before it is prepared."""
        self.study = replace(self.study, results="analyst")
        self._start(self.outbox.path.parent)

    def _start(self, folder: Path) -> None:
        self.analyst = Analyst(self.study, self.key, self.web)
        self.outbox = Outbox(folder / f"{self.study.id[:16]}.db")
        self.clients = {
            name: Client(self.study, name, self.outbox, self.web, count, simulation=True)
            for name, count in self.samples.items()
        }

    def prepare(self) -> None:
        self.analyst.register()
        self.analyst.invite(self.tokens)
        self.analyst.draw(self.samples)
        for name, client in self.clients.items():
            client.enrol(self.tokens[name][0])

    def plan(self, number: int = 0, multiplier: float = 0.0) -> RoundRecord:
        return self.analyst.plan(number, gaussian_round(STATISTIC, multiplier, f"round {number}"))

    def rows(self, name: str) -> np.ndarray:
        mark = list(self.samples).index(name) % N
        return np.tile([2.0**mark, float(mark)], (self.samples[name], 1))

    def send(self, record: RoundRecord, names=None) -> None:
        for name in self.samples if names is None else names:
            self.clients[name].contribute(record, self.rows(name))

    def exact(self, names=None) -> np.ndarray:
        return np.vstack([self.rows(name) for name in (self.samples if names is None else names)]).sum(axis=0)

    def url(self, k: int, path: str = "") -> str:
        return f"{self.study.computes[k].url}/v1/studies/{self.study.id}{path}"

    def counter(self, k: int, reason: str) -> int:
        text = httpx.get(f"{self.study.computes[k].url}/metrics", timeout=10).text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        (found,) = [s.value for s in samples if s.name == "hubbub_rejected_total" and s.labels == {"reason": reason}]
        return int(found)
