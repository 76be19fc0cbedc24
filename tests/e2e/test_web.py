"""A project that is shared in a browser: the real page and its terminal in Debian's Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyte
import pytest

from tests.e2e.sharing import RelayThread, SharedProject, message
from tests.e2e.terminal import UNKNOWN
from tests.recordings import numbered_recording
from tests.waiting import wait_until

pytest.importorskip("textual_serve", reason="textual-serve is not installed: pip install .[web]")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="Chromium is not installed (apt-get install chromium)"
)


class WebProject(SharedProject):
    """A project in which a model writes a word each 0.4 s for longer than the test takes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = self.home / "aria.jsonl"
        recorded = numbered_recording(path, model="aria", words=3_000, pause_ms=400)
        kernel = self.terminal("serve", "--play", str(recorded.path), "--data", str(self.data))
        kernel.wait_for("Ctrl+C ends it")
        self.tool("block.create", **message("Write."))

    def tool(self, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool as the owner, in another thread: this one has Playwright's event loop."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(super().tool, tool, **params).result()

    def last_content(self, **where: str) -> str:
        """Return the content of the last block of some kind."""
        (*_, block) = self.tool("block.list", kind="text", **where)["blocks"] or [{}]
        if not block:
            return ""
        return str(self.tool("block.read", block_id=block["block_id"])["content"])


@pytest.fixture
def project(tmp_path: Path) -> Iterator[WebProject]:
    one = WebProject(tmp_path)
    yield one
    one.close()


@pytest.fixture
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        options = ("--disable-gpu", "--disable-software-rasterizer")  # nobody looks at it
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=options)
        yield chromium
        chromium.close()


class Visitor:
    """Somebody's browser with the page, and a screen that shows what its terminal is sent."""

    def __init__(self, browser: Any, link: str) -> None:
        self.context = browser.new_context(viewport={"width": 1_000, "height": 600})
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.asked_for: list[str] = []
        self.connections = 0
        self.screen = pyte.Screen(80, 24)
        self.page.on("request", lambda one: self.asked_for.append(one.url))
        self.page.on("websocket", self._begun)
        self.page.goto(link)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def _begun(self, socket: Any) -> None:
        self.connections += 1
        screen = self.screen = pyte.Screen(80, 24)
        stream = pyte.ByteStream(screen)

        def received(data: str | bytes) -> None:
            if isinstance(data, bytes):
                stream.feed(UNKNOWN.sub(b"", data))

        def sent(data: str | bytes) -> None:
            kind, *values = json.loads(data)
            if kind == "resize":
                screen.resize(values[0]["height"], values[0]["width"])

        socket.on("framereceived", received)
        socket.on("framesent", sent)

    @property
    def text(self) -> str:
        self.page.wait_for_timeout(50)  # what happens in the browser is told meanwhile
        return "\n".join(self.screen.display)

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.text, f"{words!r} on the screen")

    def wait_for_words(self, *, after: str = "") -> str:
        """Return the last word of the model, once that is another one."""

        def last() -> str:
            found = re.findall(r"word\d{4}", self.text)
            return found[-1] if found and found[-1] != after else ""

        return wait_until(last, "the model's words")

    def wait_for_notice(self, words: str) -> None:
        """Wait until the page says something above its terminal; without words, nothing."""

        def says() -> bool:
            self.page.wait_for_timeout(50)
            is_there = bool(self.page.is_visible("#notice"))
            return is_there and words in self.page.inner_text("#notice") if words else not is_there

        wait_until(says, f"{words!r} above the terminal")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


def test_editor_types_pastes_copies_resizes_comes_back_and_is_told_of_a_kick(
    project: WebProject, browser: Any
) -> None:
    sharing = ("--web", "--data", str(project.data), "--role", "editor", "--name", "bo")
    link = str(project.share(*sharing)["link"])
    relay = RelayThread(project.port)
    with Visitor(browser, link.replace(f":{project.port}/", f":{relay.port}/")) as guest:
        first = guest.wait_for_words()
        guest.wait_for_words(after=first)
        assert "#" not in guest.page.url
        origin = guest.page.url.rstrip("/")
        assert len(guest.asked_for) > 4
        assert all(one.startswith(f"{origin}/") for one in guest.asked_for)
        assert guest.connections == 1
        assert "antiphon" in guest.page.title()
        guest.press("ArrowUp")
        guest.wait_for("NAVIGATE")
        guest.press("Enter")
        guest.wait_for("EDIT")
        guest.page.keyboard.type("zebraquilt")
        wait_until(lambda: "zebraquilt" in project.last_content(role="model"), "what was typed")
        guest.page.set_viewport_size({"width": 700, "height": 400})
        wait_until(lambda: "EDIT" in guest.text and guest.screen.columns < 80, "the new size")
        guest.press("Escape")
        guest.wait_for("NAVIGATE")
        guest.press("y")
        copied = "navigator.clipboard.readText()"
        wait_until(lambda: "zebraquilt" in guest.page.evaluate(copied), "what was copied")
        guest.page.mouse.click(300, 368)  # the row above the last one
        guest.wait_for("WRITE")
        guest.page.keyboard.type("half a sentence")
        guest.wait_for("half a sentence")
        seen = guest.wait_for_words()
        relay.stop()
        guest.wait_for_notice("The connection is gone. Trying again")
        relay.go_on()
        wait_until(lambda: guest.text and guest.connections == 2, "the page again")
        guest.wait_for_notice("")
        guest.wait_for_words(after=seen)
        guest.wait_for("half a sentence")
        assert project.sessions("bo", "web")
        pasted = "\n".join(f"line {number} with ü€👩" for number in range(600))
        assert len(pasted) > 10_000
        guest.page.evaluate("text => navigator.clipboard.writeText(text)", pasted)
        guest.press("Control+v")
        draft = f"half a sentence{pasted}"
        wait_until(lambda: project.last_content(role="user") == draft, "what was pasted")
        project.share("--kick", "bo", "--reason", "time to go", "--data", str(project.data))
        guest.wait_for_notice("kicked bo: time to go.")
        wait_until(lambda: not project.sessions("bo", "web"), "the end of the session")
        guest.page.click("#again")
        guest.wait_for_notice("bo has been kicked and may come back at")
    relay.close()
