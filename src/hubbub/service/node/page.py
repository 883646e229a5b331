"""The status page: one HTML file (page.html) with a little JavaScript, no build step and no outside asset."""

from importlib.resources import files

PAGE = (files("hubbub.service.node") / "page.html").read_text(encoding="utf-8")
