"""Messages that wait for their turn, models that answer, and what these use."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from antiphon.actions import Mode
from antiphon.render.view import queue_label
from antiphon.screens.known_models import use_of
from antiphon.screens.model_turns import ModelTurns
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import (
    ErrorKind,
    ModelConfig,
    ModelKind,
    ModelPrice,
    ProviderError,
    TokenUsage,
)
from antiphon_kernel.providers.events import ThinkingDelta
from antiphon_kernel.types.enums import PrincipalKind
from tests.app.opened import Opened, World, Writer, opened, world
from tests.waiting import until


async def test_unknown_name_is_told_of_a_failed_turn_goes_on_and_a_program_is_stopped(
    here: World, there: Opened
) -> None:
    await there.send("@aria hi")
    await until(lambda: here.aria.prompts == ["@aria hi"], "the turn")
    assert there.screen.frame.notice.hint is None
    await there.send("@arai hi")
    said = "Nobody is called arai. Nearest: aria."
    await until(
        lambda: there.screen.frame.notice.hint == said, lambda: there.screen.frame.notice.hint or ""
    )
    here.aria.end()
    await until(lambda: len(here.aria.prompts) == 2, "the turn")
    here.aria.say(ProviderError("No credit is left.", ErrorKind.QUOTA))
    await there.sees("No credit is left.")
    await there.press("up", "G")
    await until(lambda: there.screen.situation.answered, "the failed cell")
    await there.press("a")
    await until(lambda: len(here.aria.prompts) == 3, "it goes on")
    assert len((await here.call("context.list"))["contexts"]) == 1
    here.aria.end()
    await here.turns.wait_idle()
    await there.press("i", mode=Mode.WRITE)

    # A program that appends is seen and stopped like a model.
    nova = here.kernel.open_session(
        await here.kernel.principal("nova", PrincipalKind.MODEL), "unix"
    )
    answer = {"parent_id": await here.cell("a question"), "kind": "text"}
    block = (await here.kernel.call(nova, "block.create", answer))["block_id"]
    await here.kernel.call(nova, "block.append", {"block_id": block, "text": "On and on"})
    await there.sees("● nova writing")
    await there.sees("On and on▌nova")
    await there.sees("Ctrl+C stop nova")
    await there.press("ctrl+c")
    await there.sees("stopped by you")
    await until(lambda: not there.shows("writing"), "nova has gone")


def shows_message(there: Opened, rows: list[str]) -> bool:
    """Return whether the lines of the message that begins with "two" are these."""
    shown = [" ".join(line.split()[1:]) for line in there.lines]
    return [line for line in shown if line.startswith(("two", "lines"))] == rows


async def test_waiting_messages_show_their_position_on_their_last_line_until_they_are_answered(
    here: World, there: Opened
) -> None:
    await there.send("one")
    await until(lambda: len(here.aria.prompts) == 1, "the first turn")
    await there.send("two\n\nlines")
    await there.sees("queued · 2nd")
    document = (await here.context()).document
    block = next(one for one in document.block_ids() if "two" in document.text(one))
    one_line, two_lines = ["two queued · 2nd"], ["two", "lines queued · 2nd"]
    for change, rows in ({"delete_count": 7}, one_line), ({"insert": "\n\nlines"}, two_lines):
        await here.call("block.splice", block_id=block, offset=3, **change)
        await until(partial(shows_message, there, rows), f"{rows}")

    await there.send("three")
    await there.sees("queued · 3rd")
    assert there.shows("aria writing")
    here.aria.write("first")
    here.aria.end()
    await until(lambda: len(here.aria.prompts) == 2, "the second turn")
    await until(lambda: not there.shows("3rd"), "the queue has moved")
    assert there.shows("queued · 2nd")

    # The next answer is told from the one above.
    here.aria.say(ThinkingDelta("Well."))
    await there.sees("aria  ▸ thinking")

    def before_thinking() -> list[str]:
        at = next(row for row, line in enumerate(there.lines) if "▸ thinking" in line)
        return [line.strip() for line in there.lines[at - 2 : at]]

    # The name at the model's cursor goes on a little later than its text.
    await until(lambda: before_thinking() == ["│ first", ""], "the answers stand apart")
    here.aria.end()
    await until(lambda: not there.shows("queued ·"), "nothing waits")
    here.aria.end()


@pytest.mark.parametrize(
    ("position", "words"),
    [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st"), (112, "112th")],
)
def test_queue_label_is_an_ordinal(position: int, words: str) -> None:
    assert queue_label(position) == f"queued · {words}"


ARIA = ModelConfig(
    "aria",
    ModelKind.OPENAI_CHAT,
    "aria-1",
    window=ModelWindow(input=200_000),
    price=ModelPrice(input=1000.0, output=1000.0),
)


@pytest.mark.parametrize(
    ("tokens", "window", "cost", "use"),
    [
        (1234, 8192, 0.0, "1,234/8,192 tokens"),
        (12, 2_000, 0.0, "12/2,000 tokens"),
        (9_999, 1_048_576, 0.0, "9,999/1.0M tokens"),
        (12_345, 200_000, 0.031, "12k/200k tokens · $0.03"),
    ],
)
def test_use_names_the_share_of_a_window_and_money(
    tokens: int, window: int, cost: float, use: str
) -> None:
    assert use_of(tokens, window, cost) == use


async def test_header_shows_what_a_model_uses_and_one_from_the_palette_answers_what_names_nobody(
    tmp_path: Path,
) -> None:
    nova = Writer()
    async with (
        world(tmp_path, configs={"aria": ARIA}, others={"nova": nova}) as here,
        opened(here) as there,
    ):
        await there.send("hi")
        await until(lambda: bool(here.aria.prompts), "the turn")
        here.aria.say(TokenUsage(input_tokens=1000, output_tokens=20))
        here.aria.write("Hello.")
        await there.sees("Hello.")
        here.aria.end()
        await there.sees("/200k tokens · $1.02")
        await there.palette("Model: nova answers here")
        await there.sees("nova answers here now")
        await there.send("hi")
        await until(lambda: nova.prompts == ["hi"], "its turn")
        assert len(here.aria.prompts) == 1


async def test_header_shows_what_a_turn_used_whose_author_was_not_seen_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelTurns, "current", lambda _: [])
    async with world(tmp_path, configs={"aria": ARIA}) as here, opened(here) as there:
        await until(lambda: there.screen.models.here.default == "aria", "the models")
        here.aria.say(TokenUsage(input_tokens=1000, output_tokens=20))
        here.aria.write("Hello.")
        here.aria.end()
        await there.send("hi")
        await there.sees("/200k tokens · $1.02")


TITLE = "People and models write in one document"


async def test_empty_context_without_a_model_says_how_to_get_one(tmp_path: Path) -> None:
    async with world(tmp_path, models=False) as here, opened(here) as there:
        await there.sees(TITLE)
        await there.sees("odel")


async def test_first_page_fits_and_names_other_contexts_until_the_first_letter(
    here: World,
) -> None:
    await here.call("context.create", label="notes")
    async with opened(here) as there:
        await there.sees("Other contexts")
        await there.sees("notes")
        for size in ((40, 10), (120, 40), (80, 24)):
            await there.pilot.resize_terminal(*size)
            await there.sees("antiphon")
            await there.sees("aria answers.")
            assert not there.shows("…")
        await there.sees(TITLE)
        await there.sees("Ctrl+P")
        await there.type("h")
        await until(lambda: not there.shows(TITLE), "the page is gone")
        await there.press("backspace")
        await there.sees(TITLE)
        await there.cell("something")
        await until(lambda: not there.shows(TITLE), "the page is gone")
