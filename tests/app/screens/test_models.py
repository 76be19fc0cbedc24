"""Models in the app: what they use, which one answers, a turn that goes on after an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.screens.known_models import ModelsHere
from antiphon.screens.model_turns import ModelTurns
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ErrorKind, ModelConfig, ModelKind, ModelPrice, ProviderError
from antiphon_kernel.providers.events import Usage
from tests.app.opened import Opened, World, Writer, opened, world
from tests.waiting import until

ARIA = ModelConfig(
    "aria",
    ModelKind.OPENAI_CHAT,
    "aria-1",
    window=ModelWindow(input=200_000),
    price=ModelPrice(input=1000.0, output=1000.0),
)


async def send(there: Opened, text: str) -> None:
    await there.type(text)
    await there.press("enter")


@pytest.mark.parametrize(
    ("here", "use"),
    [
        (ModelsHere(("aria",), "aria", 1234), ""),
        (ModelsHere(("aria",), "aria", 1234, 8192), "1,234/8,192 tokens"),
        (ModelsHere(("aria",), "aria", 12, 2_000), "12/2,000 tokens"),
        (ModelsHere(("aria",), "aria", 9_999, 1_048_576), "9,999/1.0M tokens"),
        (ModelsHere(("aria",), "aria", 12_345, 200_000, 0.031), "12k/200k tokens · $0.03"),
    ],
)
def test_use_names_the_share_of_a_known_window_and_money(here: ModelsHere, use: str) -> None:
    assert here.use == use


async def test_header_shows_what_a_model_uses_after_its_turn(tmp_path: Path) -> None:
    async with world(tmp_path, configs={"aria": ARIA}) as here, opened(here) as there:
        await there.live()
        await send(there, "hi")
        await until(lambda: bool(here.aria.prompts), "the turn")
        here.aria.say(Usage(1000, 20))
        here.aria.write("Hello.")
        await there.sees("Hello.")
        here.aria.end()
        await there.sees("/200k tokens · $1.02")


async def test_header_shows_what_a_turn_used_whose_author_was_not_seen_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelTurns, "current", lambda _: [])
    async with world(tmp_path, configs={"aria": ARIA}) as here, opened(here) as there:
        await until(lambda: there.screen.models.here.default == "aria", "the models")
        here.aria.say(Usage(1000, 20))
        here.aria.write("Hello.")
        here.aria.end()
        await send(there, "hi")
        await there.sees("/200k tokens · $1.02")


async def test_model_chosen_in_the_palette_answers_what_names_nobody(tmp_path: Path) -> None:
    nova = Writer()
    async with world(tmp_path, others={"nova": nova}) as here, opened(here) as there:
        await there.live()
        await until(lambda: there.screen.models.here.default == "aria", "the models")
        await there.press("ctrl+p")
        await there.type("nova answers")
        await there.sees("Model: nova answers here")
        await there.press("enter")
        await there.sees("nova answers here now")
        await send(there, "hi")
        await until(lambda: nova.prompts == ["hi"], "its turn")
        assert here.aria.prompts == []


async def test_turn_that_failed_goes_on_when_it_is_asked_again(here: World, there: Opened) -> None:
    await there.live()
    await send(there, "hi")
    await until(lambda: len(here.aria.prompts) == 1, "the turn")
    here.aria.say(ProviderError("No credit is left.", ErrorKind.QUOTA))
    await there.sees("No credit is left.")
    await there.press("up", "G")
    await until(lambda: there.screen.situation.answered, "the failed cell")
    await there.press("a")
    await until(lambda: len(here.aria.prompts) == 2, "it goes on")
    assert len((await here.call("context.list"))["contexts"]) == 1
