"""Models of a kernel, their names in messages, and the demo's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from antiphon_kernel.providers import recording
from antiphon_kernel.providers.permission_policy import ALLOW_EVERYTHING, PermissionPolicy
from antiphon_kernel.providers.provider import Provider
from antiphon_kernel.providers.recording import Recording, load_recording
from antiphon_kernel.providers.scripted import ScriptedProvider
from antiphon_kernel.text.mentions import mentions


class Models:
    """The models of a kernel by name; the first one answers messages that name none."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        *,
        auto_play: bool = False,
        permissions: Mapping[str, PermissionPolicy] | None = None,
    ) -> None:
        """`permissions` are policies for the tool calls of models, by name."""
        self._providers = dict(providers)
        self._permissions = dict(permissions or {})
        self.autostart = auto_play
        """Every model takes a first turn by itself once a person is there."""

    @classmethod
    def from_recordings(
        cls, paths: Iterable[Path], speed: float = 1.0, *, auto_play: bool = True
    ) -> Models:
        """Scripted models: one for each model name among the recordings, in their order.

        Raises:
            AntiphonError: invalid_params naming file and line of a bad recording.
        """
        by_model: dict[str, list[Recording]] = {}
        for path in paths:
            loaded = load_recording(path)
            by_model.setdefault(loaded.model, []).append(loaded)
        providers = {
            model: ScriptedProvider(recordings, speed=speed)
            for model, recordings in by_model.items()
        }
        return cls(providers, auto_play=auto_play and bool(providers))

    def __iter__(self) -> Iterator[str]:
        return iter(self._providers)

    def __len__(self) -> int:
        return len(self._providers)

    def __getitem__(self, name: str) -> Provider:
        """Raises KeyError if there is no such model."""
        return self._providers[name]

    def permissions(self, name: str) -> PermissionPolicy:
        """Return the policy for a model's tool calls; recordings may do what is in them."""
        if name in self._permissions:
            return self._permissions[name]
        is_scripted = isinstance(self._providers.get(name), ScriptedProvider)
        return ALLOW_EVERYTHING if is_scripted else PermissionPolicy()

    def mentioned(self, text: str) -> list[str]:
        """The models that answer `text`: those it names at its start, else the default one."""
        named = [name for name in mentions(text) if name in self._providers]
        return named or list(self._providers)[:1]


def load_models(recordings: Sequence[Path], *, demo: bool = False, speed: float = 1.0) -> Models:
    """The models of a kernel process: those that play `recordings`, else the demo's if asked.

    Raises:
        AntiphonError: invalid_params naming file and line of a bad recording.
    """
    return Models.from_recordings(recordings or (demo_recordings() if demo else ()), speed)


def demo_recordings() -> list[Path]:
    """The recordings that the demo plays, in order."""
    return sorted(Path(recording.__file__).with_name("recordings").glob("demo-*.jsonl"))
