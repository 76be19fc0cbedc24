"""Pages that need no network: of a cast, with the player of asciinema in it, and of any other."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
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
    """Return a page that plays a cast."""
    files = resources.files("antiphon.export") / "asciinema_player"
    player = (files / "asciinema-player.min.js").read_text("utf-8")
    style = (files / "asciinema-player.css").read_text("utf-8")
    header = json.loads(cast.partition("\n")[0])
    ground = header["term"]["theme"]["bg"]
    style += f"html, body, #player {{height: 100%; margin: 0; background: {ground}}}"
    # In JSON, only texts have this character.
    data = cast.replace("<", "\\u003c")
    body = f"""<div id="player"></div>
<script type="application/json" id="cast">{data}</script>
"""
    return html_page(escape(header["title"]), style, body, (player, _START))


def html_page(title: str, style: str, body: str, scripts: Sequence[str] = ()) -> str:
    """Return a page of HTML, in which no other scripts run and nothing is loaded."""
    hashes = " ".join(map(_hash, scripts))
    allowed = f" script-src {hashes} 'wasm-unsafe-eval';" if scripts else ""
    run = "".join(f"<script>{script}</script>\n" for script in scripts)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';{allowed} \
style-src {_hash(style)}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
{body}{run}</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
