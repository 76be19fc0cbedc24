"""Models of a kernel, their names in messages, their built-in instructions, and the demo's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from antiphon_kernel.config import KernelConfig, find_local_models, with_known_limits
from antiphon_kernel.providers import ModelConfig, ModelKind, Provider, recording
from antiphon_kernel.providers.model_config import ALLOW_EVERYTHING, PermissionPolicy
from antiphon_kernel.providers.opening import open_provider
from antiphon_kernel.providers.recording import Recording, ScriptedProvider, load_recordings
from antiphon_kernel.turns.prompt_reading import AnsweringModel
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import LISTED, join_names, quote

BRIEF: Final = """\
You work in a context of antiphon: a document made of blocks that people and models write together,
at the same time. What you say becomes blocks of yours; everybody sees them as you write.
- What you are given is a view of these blocks. Each has a path, such as ar:... or tc:..., shown as
  [path: ...]; give a path to any tool that takes block_id. A turn begins with [TURN id].
- People may edit any block meanwhile, yours too. At the end of what you are given, [ANNOUNCE] says
  who is here and what others have changed since you last looked. Take what stands there now.
- To change a text, read it with block_read, then call block_edit with the version that you have
  read as base_version. Lines are counted from 0, ends are exclusive. If others have changed the
  same lines since, the answer shows them: decide again. Never write over what you have not read.
- Edit a text where it stands rather than saying all of it once more.
- Read files of the project with file_read, and change them with file_edit or apply_patch, not
  by a command: people may be writing in them, too.
- Of a long result you are given the beginning and the end; block_read with a range and the path of
  the result reads the rest.
- Something that a call may not do is answered with the reason. Do not try to get around it.
- Older turns may be replaced by a summary; the paths in it can still be read.
- Say briefly what you have done, and what you have not."""


SHORT_BRIEF: Final = (
    "You write in a document together with people, who read and edit what you write as it comes."
    " Answer the last message, in plain words."
)
"""Instructions of a model that calls no tools, such as a small one that reads slowly."""


def system_text(*parts: str, has_tools: bool = True) -> str:
    """Return the instructions of a model: the built-in ones, then those that are not blank."""
    built_in = BRIEF if has_tools else SHORT_BRIEF
    return "\n\n".join((built_in, *(part.strip() for part in parts if part.strip())))


_log = logging.getLogger(__name__)

OPENING: Final = (
    "This is antiphon: people and models write on one page, in the same text, at the same time."
    " aria begins. You need not wait for the end."
)
"""Message of the kernel that the demo's model answers; its reader is the person who has come."""


class Models:
    """The models of a kernel by name; the default one answers messages that name none."""

    def __init__(
        self,
        providers: Mapping[str, Provider] | None = None,
        *,
        auto_play: bool = False,
        opening: str = OPENING,
        config: KernelConfig | None = None,
    ) -> None:
        """
        Args:
            providers: models that are open already, by name; recordings, unless `config` has them.
            opening: message of the kernel that they answer if they begin by themselves.
        """
        self.config = config or KernelConfig()
        """Settings that its models share."""
        self.opening = opening
        self.autostart = auto_play
        """Every model takes a first turn by itself once a person is there."""
        self._providers = dict(providers or {})
        # By name, in order.
        self._configs = {one: ModelConfig(one, ModelKind.SCRIPTED, "") for one in self._providers}
        self._configs |= {one.name: one for one in self.config.models}
        self._opened: dict[str, AnsweringModel] = {}
        self.looked = asyncio.Event()
        """Set once servers that are looked for have answered, or have not."""
        if not self.config.discovery.local_ports:
            self.looked.set()

    def add(self, configs: Iterable[ModelConfig]) -> None:
        """Add models whose names are free, after those that are there."""
        for config in configs:
            self._configs.setdefault(config.name, config)

    async def look(self) -> None:
        """Look once for servers of models on this machine, and add what they have."""
        try:
            self.add(await find_local_models(self.config.discovery.local_ports))
        finally:
            self.looked.set()

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._configs))

    async def open(self, name: str) -> AnsweringModel:
        """Return a model with what is learned about it, opened when it is first asked for.

        Raises:
            KeyError: if there is no such model.
            AntiphonError: invalid_params if it plays a recording that cannot be read.
        """
        if name not in self._opened:
            # What is published is in a large library.
            config = await asyncio.to_thread(self.configured, name)
            if name not in self._providers:
                if config.kind is ModelKind.SCRIPTED:
                    self._providers[name] = ScriptedProvider(load_recordings(Path(config.model)))
                else:
                    self._providers[name] = open_provider(config)
            self._opened.setdefault(name, AnsweringModel(self._providers[name], config))
        return self._opened[name]

    def check_known(self, name: str) -> None:
        """Raises AntiphonError invalid_params if there is no model of a name."""
        if name not in self._configs:
            raise invalid_params(
                f"There is no model {quote(name)}; there are: {join_names(self)}.",
                field="model",
                allowed=list(self)[:LISTED],
            )

    def configured(self, name: str, *, published: bool = True) -> ModelConfig:
        """Return the configuration of a model, also with published limits and prices if asked.

        To read what is published may take a moment the first time.

        Raises:
            KeyError: if there is no such model.
        """
        config = self._configs[name]
        return with_known_limits(config) if published else config

    @property
    def default(self) -> str | None:
        """Return the model that answers messages that name none; None if there is no model."""
        chosen = self.config.context.default_model
        return chosen if chosen in self._configs else next(iter(self._configs), None)

    def permissions(self, name: str) -> PermissionPolicy:
        """Return the policy for the tool calls of a model or an agent; recordings may do what is
        in them unless their configuration says otherwise."""
        agent = next((one for one in self.config.agents if one.name == name), None)
        config = self._configs.get(name) or agent
        if config is None:
            return ALLOW_EVERYTHING
        is_played = isinstance(config, ModelConfig) and config.kind is ModelKind.SCRIPTED
        shared = ALLOW_EVERYTHING if is_played else self.config.permissions
        return shared if config.permissions is None else config.permissions.over(shared)

    async def close(self) -> None:
        """Close the providers that were opened; one that fails does not keep the others open."""
        for name, provider in self._providers.items():
            try:
                if hasattr(provider, "close"):
                    await provider.close()
            except Exception:  # noqa: BLE001  the others are closed all the same
                _log.exception("the model %s could not be closed", name)


def load_models(recordings: Sequence[Path], *, demo: bool = False, speed: float = 1.0) -> Models:
    """The models of a kernel process: those that play `recordings`, else the demo's if asked.

    There is one for each model name among the recordings, in their order; where those name none,
    the demo's play.

    Raises:
        AntiphonError: invalid_params naming file and line of a bad recording.
    """
    loaded = [one for path in recordings for one in load_recordings(path)]
    if demo and not loaded:
        loaded = [one for path in demo_recordings() for one in load_recordings(path)]
    by_model: dict[str, list[Recording]] = {}
    for one in loaded:
        by_model.setdefault(one.model, []).append(one)
    providers = {
        model: ScriptedProvider(several, speed=speed) for model, several in by_model.items()
    }
    return Models(providers, auto_play=bool(providers) and not any(one.is_answer for one in loaded))


def demo_recordings() -> list[Path]:
    """The recordings that the demo plays, in order."""
    return sorted(Path(recording.__file__).with_name("recordings").glob("demo-*.jsonl"))
