"""The status page in a real browser (Debian's chromium), after a round on live Computes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import text_to_be_present_in_element
from selenium.webdriver.support.ui import WebDriverWait

from hubbub.privacy import Budget, shared_multipliers
from hubbub.service.devnet import LocalComputes
from hubbub.service.wire.records import RoundRecord
from service.live import LiveStudy

pytestmark = pytest.mark.slow
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium or its driver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "disable-gpu", "disable-dev-shm-usage", "window-size=1000,1300"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={tmp_path / 'profile'}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    driver = webdriver.Chrome(options, Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def played(live: LocalComputes, tmp_path: Path) -> tuple[LiveStudy, RoundRecord]:
    """A study with one round released and one still open."""
    budget = Budget(2.0, 1e-5)
    study = LiveStudy(live, tmp_path, budget)
    study.prepare()
    for number, multiplier in enumerate(shared_multipliers(budget, [1.0, 2.0])):
        record = study.plan(number, multiplier)
        study.analyst.open_round(record)
        study.send(record, None if number == 0 else ["c0", "c1", "c2"])
        if number == 0:
            study.analyst.close(record)
            study.analyst.release(record)
    return study, record


def test_page_loads_nothing_from_outside(live: LocalComputes):
    reply = httpx.get(f"{live.urls[0]}/")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "http://" not in reply.text
    assert "https://" not in reply.text


def test_a_browser_shows_studies_rounds_rosters_and_ledger(
    played: tuple[LiveStudy, RoundRecord], live: LocalComputes, browser: webdriver.Chrome, tmp_path: Path
):
    study, open_round = played
    body, patient = (By.TAG_NAME, "body"), WebDriverWait(browser, 60)
    browser.get(f"{live.urls[0]}/")
    patient.until(text_to_be_present_in_element(body, "sum-released"))
    assert browser.title == "compute-1 - hubbub"
    text = browser.find_element(*body).text
    assert study.study.id in text
    assert "6 of 6 reports; 5 are needed" in text
    assert "3 of 6 reports; 5 are needed" in text
    assert "3 of 3 signed rosters; 6 clients agreed" in text
    assert "of 2 spent (delta 0.00001)" in text
    picture = tmp_path / "page.png"
    assert browser.save_screenshot(str(picture))
    assert picture.stat().st_size > 10_000
    study.send(open_round, ["c3"])  # the page follows by itself
    patient.until(text_to_be_present_in_element(body, "4 of 6 reports; 5 are needed"))
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
