"""Settings of a person: `settings.toml` in their config folder, and choices made in the app.

The app never writes into the file. A choice made in the app is kept in the state folder, and counts
until the file says something else than it said then.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from antiphon.keymap import check_keys
from antiphon_kernel.client.ownership import write_private
from antiphon_kernel.text.toml_lines import ConfigSyntaxError, TomlFile, parse_toml
from antiphon_kernel.types.quoting import quote

SETTINGS_FILE: Final = "settings.toml"

CHOICES_FILE: Final = "choices.json"


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Part of a file that cannot be used."""

    path: Path
    line: int | None
    """The line at fault, from 1; None if it is the file as a whole."""
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


def read_toml(path: Path) -> TomlFile | FileProblem | None:
    """Return the content of a file, or why it cannot be used; None if there is no such file."""
    try:
        return parse_toml(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return FileProblem(path, None, f"cannot be read: {error.strerror or error}")
    except ConfigSyntaxError as error:
        return FileProblem(path, error.line, error.message)


class Settings(BaseModel):
    """Settings of the app, of which each has a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    theme: str | None = None
    """Name of the theme; chosen by the terminal if absent."""
    ink: bool = True
    """Whether new text of others glows in their colour for a moment."""
    notifications: bool = True
    """Whether a person who looks elsewhere is called when a model ends or asks."""
    title: bool = True
    """Whether the terminal's window is named after the context and what happens in it."""
    gutter: Literal["auto", "narrow", "wide"] = "auto"
    """Width of the column left of the text; names of authors stand in a wide one."""
    sidebar: bool | None = None
    """Whether contexts and people are beside the text; the width decides if absent."""
    outline: bool = True
    """Whether the outline is beside the text where there is room for it."""
    keys: Mapping[str, tuple[str, ...]] = {}
    """Keys of actions, by name, in the place of those that are built in."""


_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "string_pattern_mismatch": "a word in lower case",
    "literal_error": "{expected}",
    "value_error": "{error}",
    "list_type": "a list",
    "too_short": "a list of {min_length}",
    "too_long": "a list of {max_length}",
    "mapping_type": "a table",
    "dict_type": "a table",
    "model_type": "a table",
}


class Choice(BaseModel):
    """A setting that was chosen in the app."""

    value: Any
    instead_of: Any
    """Value of the settings file then."""


_Choices = TypeAdapter(dict[str, Choice])


class SettingsStore:
    """The settings file and the remembered choices of a person."""

    def __init__(self, config: Path, state: Path) -> None:
        """Take the folders of the user's configuration and state."""
        self._file = config / SETTINGS_FILE
        self._choices_file = state / CHOICES_FILE
        self._from_file = Settings()
        self.problems: tuple[FileProblem, ...] = ()
        """Parts of both files that cannot be used, after `read`."""

    def read(self) -> Settings:
        """Return the settings; what is wrong is a problem, and the rest counts."""
        file = read_toml(self._file)
        if isinstance(file, FileProblem):
            self.problems = (file,)
            file = None
        if file is not None:
            self._from_file, self.problems = _checked(self._file, file)
        try:
            choices = self._read_choices()
        except (OSError, ValidationError):
            reason = "cannot be read: what you choose next is written anew"
            self.problems += (FileProblem(self._choices_file, None, reason),)
            return self._from_file
        settings = self._from_file
        for name, choice in choices.items():
            if getattr(self._from_file, name, choice) == choice.instead_of:
                # Of an earlier version of the app it may not fit any more.
                with suppress(ValidationError):
                    chosen = {**settings.model_dump(), name: choice.value}
                    settings = Settings.model_validate(chosen)
        return settings

    def remember(self, settings: Settings, name: str, value: Any) -> Settings:
        """Return `settings` with another value of one, and keep this choice for the next start.

        Raises:
            ValueError: if the setting takes no such value.
            OSError: if the choice cannot be written; `settings` with it are not returned then.
        """
        chosen = Settings.model_validate({**settings.model_dump(), name: value})
        try:
            choices = self._read_choices()
        except ValidationError:
            choices = {}
        choices[name] = Choice(value=value, instead_of=getattr(self._from_file, name))
        self._choices_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._choices_file, _Choices.dump_json(choices).decode())
        return chosen

    def _read_choices(self) -> dict[str, Choice]:
        try:
            return _Choices.validate_json(self._choices_file.read_bytes())
        except FileNotFoundError:
            return {}


def _checked(path: Path, file: TomlFile) -> tuple[Settings, tuple[FileProblem, ...]]:
    """Return the settings of a file without those that are wrong, and what is wrong with them."""
    fields, problems = dict(file.tables), list[FileProblem]()
    if isinstance(table := fields.get("keys"), dict):
        fields["keys"], wrong_keys = check_keys(table)
        problems += [
            FileProblem(path, file.line_of("keys", name), reason)
            for name, reason in wrong_keys.items()
        ]
    try:
        return Settings.model_validate(fields), tuple(problems)
    except ValidationError as error:
        invalid = error
    problems += problems_of(path, file, Settings, invalid)
    bad = {one["loc"][0] for one in invalid.errors()}
    rest = {name: value for name, value in fields.items() if name not in bad}
    return Settings.model_validate(rest), tuple(problems)


def problems_of(
    path: Path, file: TomlFile, model: type[BaseModel], invalid: ValidationError
) -> list[FileProblem]:
    """Return what is wrong with the values of a file, which are those of a model."""
    return [
        FileProblem(path, file.line_of(*map(str, error["loc"])), _reason(model, error))
        for error in invalid.errors(include_url=False)
    ]


def _reason(model: Any, error: Any) -> str:
    *around, last = (str(one) for one in error["loc"] if one != "[key]")
    name = quote(".".join([*around, last]))
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        for table in around:
            model = model.model_fields[table].annotation
        return f"there is no setting {name}; known: {', '.join(model.model_fields)}"
    expected = _EXPECTED[error["type"]].format(**error.get("ctx", {}))
    return f"{name} has to be {expected}, found {quote(str(error['input']))}"
