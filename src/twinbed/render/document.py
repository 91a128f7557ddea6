"""A page that needs nothing else: head, style, script; it opens from disk without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""The page may fetch nothing, whatever it holds."""


def document(title: str, body: str, ending: str) -> str:
    """The whole page; ``body`` is HTML, ``title`` and ``ending`` (the last sentence) are text."""
    folder = Path(__file__).parent
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="generator" content="twinbed">\n'
        f"<style>\n{(folder / 'page.css').read_text()}</style>\n</head>\n<body>\n{body}\n"
        f"<footer><p>Made by twinbed. {escape(ending)}</p></footer>\n"
        f'<div id="tip" role="status" hidden></div>\n<script>\n{(folder / "page.js").read_text()}</script>\n</body>\n</html>\n'
    )
