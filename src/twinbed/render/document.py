"""A page that needs nothing else: head, style, script; it opens from disk without a network."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from markupsafe import Markup

from twinbed.render.html import html

POLICY = (
    "default-src 'none'; script-src '{script}'; style-src-elem '{style}'; style-src-attr 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The page may fetch nothing, run its own script alone and take its own style sheet alone, whatever it holds. Drawings have
style in attributes."""


def document(title: str, body: Markup, ending: str) -> Markup:
    """Return the whole page; ``title`` and ``ending`` (the last sentence) are text."""
    folder = Path(__file__).parent
    style, script = (f"\n{(folder / name).read_text()}" for name in ("page.css", "page.js"))
    policy = POLICY.format(script=_hash(script), style=_hash(style))
    return html(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{}</title>\n'
        '<meta http-equiv="Content-Security-Policy" content="{}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="generator" content="twinbed">\n'
        "<style>{}</style>\n</head>\n<body>\n{}\n"
        "<footer><p>Made by twinbed. {}</p></footer>\n"
        '<div id="tip" role="status" hidden></div>\n<script>{}</script>\n</body>\n</html>\n',
        title,
        Markup(policy),
        Markup(style),
        body,
        ending,
        Markup(script),
    )


def _hash(text: str) -> str:
    """Return the hash by which policies name what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
