"""The status page: one HTML file without outside assets."""

PAGE = "<!doctype html><title>hubbub</title>"
