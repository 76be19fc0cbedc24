"""A cast as one page that plays it, with the player of asciinema in it and without any network."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources

_START = r"""
const data = document.getElementById("cast").textContent;
const events = data.trim().split("\n").slice(1).map((line) => JSON.parse(line));
// Of the first second. As "npt:1" a seek that comes before it plays would lose it.
let left = 1;
const first = events.filter(([wait, kind]) => (left -= wait) > 0 && kind === "o");
const poster = `data:text/plain,${first.map((one) => one[2]).join("")}`;
const looks = { fit: "both", cursorMode: "hidden", preload: true, poster };
window.player = AsciinemaPlayer.create({ data }, document.getElementById("player"), looks);
"""


def write_player_page(cast: str) -> str:
    """Return the page; nothing else than its own two scripts may run in it."""
    files = resources.files("antiphon.export") / "asciinema_player"
    player = (files / "asciinema-player.min.js").read_text("utf-8")
    style = (files / "asciinema-player.css").read_text("utf-8")
    header = json.loads(cast.partition("\n")[0])
    ground = header["term"]["theme"]["bg"]
    style += f"html, body, #player {{height: 100%; margin: 0; background: {ground}}}"
    # In JSON, only texts have this character.
    data = cast.replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src {_hash(player)} {_hash(_START)} 'wasm-unsafe-eval'; style-src {_hash(style)}; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width">
<title>{escape(header["title"])}</title>
<style>{style}</style>
<div id="player"></div>
<script type="application/json" id="cast">{data}</script>
<script>{player}</script>
<script>{_START}</script>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
