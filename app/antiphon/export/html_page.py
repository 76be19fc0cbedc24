"""A cast as one page that plays it, with the player of asciinema in it and without any network."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources

_START = """
const data = document.getElementById("cast").textContent;
const place = document.getElementById("player");
window.player = AsciinemaPlayer.create({ data }, place, { fit: "both", cursorMode: "hidden" });
"""


def write_player_page(cast: str) -> str:
    """Return the page; nothing else than its own two scripts may run in it."""
    files = resources.files("antiphon.export") / "asciinema_player"
    player = (files / "asciinema-player.min.js").read_text("utf-8")
    style = (files / "asciinema-player.css").read_text("utf-8")
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in (player, _START))
    header = json.loads(cast.partition("\n")[0])
    # In JSON, only texts have this character.
    data = cast.replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src {allowed} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width">
<title>{escape(header["title"])}</title>
<style>{style}</style>
<style>
html, body, #player {{ height: 100%; margin: 0; background: {header["term"]["theme"]["bg"]} }}
</style>
<div id="player"></div>
<script type="application/json" id="cast">{data}</script>
<script>{player}</script>
<script>{_START}</script>
</html>
"""


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
