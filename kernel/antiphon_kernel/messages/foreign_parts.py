"""Parts of messages in the shapes of OpenAI and Anthropic, read as content blocks.

The types of parts say whose shape it is, so one reader takes all of them. A part that has no
content block of its own becomes an unknown one and keeps everything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from antiphon_kernel.messages.errors import MessageError, MessageProblem
from antiphon_kernel.messages.message import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    Thinking,
    ToolUse,
    UnknownBlock,
    require_visible,
)
from antiphon_kernel.messages.normal_form import (
    freeze_object,
    parse_arguments,
    parse_block,
    require_fields,
)
from antiphon_kernel.types.media_types import is_of_type, media_type_of

STATED_TYPE: Final = "media_type"
"""Extra field of a file: the media type that was stated of it, if that is not what it is."""

Fields: TypeAlias = Mapping[str, Any]

Part: TypeAlias = tuple[ContentBlock, dict[str, Any]]
"""A content block, and the fields that have no place in it."""

_DATA_URL: Final = re.compile(r"data:([^,]*);base64,(.*)", re.DOTALL)


class PartReader:
    """Reads parts, and collects the bytes of images and documents in them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, value: object) -> Part:
        """Read a part.

        Raises:
            MessageError: if it is none, with the path of what is wrong.
        """
        fields = require_fields(value, "")
        read = _READERS.get(fields.get("type", ""))
        found = read(self, fields) if read else None
        if found:
            return found
        if fields.get("type") in _OWN and not (fields.keys() & _FOREIGN_FIELDS):
            return parse_block(fields), {}
        return keep_whole(fields), {}

    def read_call(self, value: object) -> Part:
        """Read an item of `tool_calls`: of a function, or of a tool that takes a text.

        Raises:
            MessageError: if it is none, with the path of what is wrong.
        """
        fields = require_fields(value, "")
        kind = "custom" if fields.get("type") == "custom" else "function"
        given = "input" if kind == "custom" else "arguments"
        called = require_fields(fields.get(kind), kind)
        require_visible(fields.get("id"), "id", MessageProblem.BLANK_CALL_ID)
        with MessageError.located(path=kind):
            require_visible(called.get("name"), "name", MessageProblem.BLANK_TOOL_NAME)
            call_id, name, arguments = fields["id"], called["name"], called.get(given)
            if kind == "custom":
                arguments = {given: arguments}
            use = ToolUse(call_id, name, parse_arguments(call_id, name, arguments))
        rest = without(called, "name", given)
        extra = without(fields, "id", kind) | ({kind: rest} if rest else {})
        return use, without(extra, "type") if extra.get("type") == "function" else extra

    def read_text(self, fields: Fields) -> Part:
        return TextBlock(fields.get("text")), without(fields, "type", "text")  # type: ignore[arg-type]

    def read_tool_use(self, fields: Fields) -> Part:
        call_id, name = fields.get("id"), fields.get("name")
        require_visible(call_id, "id", MessageProblem.BLANK_CALL_ID)
        require_visible(name, "name", MessageProblem.BLANK_TOOL_NAME)
        parameters = parse_arguments(str(call_id), str(name), fields.get("input"))
        return ToolUse(str(call_id), str(name), parameters), without(
            fields, "type", "id", "name", "input"
        )

    def read_thinking(self, fields: Fields) -> Part | None:
        if "thinking" not in fields:
            return None
        block = Thinking(fields["thinking"], fields.get("signature"))
        return block, without(fields, "type", "thinking", "signature")

    def read_image_url(self, fields: Fields) -> Part | None:
        image = fields.get("image_url")
        if not isinstance(image, Mapping) or not (data := _DATA_URL.fullmatch(_text(image, "url"))):
            return None
        rest = without(image, "url")
        extra = without(fields, "type", "image_url") | ({"image_url": rest} if rest else {})
        return self._keep(data[1], data[2], extra)

    def read_file(self, fields: Fields) -> Part | None:
        file = fields.get("file")
        if not isinstance(file, Mapping):
            return None
        if not (data := _DATA_URL.fullmatch(_text(file, "file_data"))):
            return None
        rest = without(file, "file_data")
        extra = without(fields, "type", "file") | ({"file": rest} if rest else {})
        return self._keep(data[1], data[2], extra)

    def read_source(self, fields: Fields) -> Part | None:
        source = fields.get("source")
        if not isinstance(source, Mapping) or source.keys() != {"type", "media_type", "data"}:
            return None
        data, media_type = _text(source, "data"), _text(source, "media_type")
        if source["type"] == "text":
            data = base64.b64encode(data.encode("utf-8", "surrogatepass")).decode()
        elif source["type"] != "base64":
            return None
        return self._keep(media_type, data, without(fields, "type", "source"))

    def _keep(self, stated: str, data: str, extra: dict[str, Any]) -> Part | None:
        """Make a part of a file's bytes, of the type that they have.

        None if they cannot be read, or are of no type that can be attached.
        """
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:
            return None
        found = media_type_of(content) if content else None
        if found is None:
            return None
        wanted = stated.partition(";")[0].strip().lower()
        media_type = wanted if is_of_type(content, wanted) else found
        digest = hashlib.sha256(content).hexdigest()
        self.files[digest] = content
        made = ImageBlock if media_type.startswith("image/") else DocumentBlock
        if media_type != stated:
            extra = {STATED_TYPE: stated, **extra}
        return made(media_type, digest), extra


_READERS: Final[Mapping[str, Callable[[PartReader, Fields], Part | None]]] = {
    "text": PartReader.read_text,
    "input_text": PartReader.read_text,
    "output_text": PartReader.read_text,
    "tool_use": PartReader.read_tool_use,
    "thinking": PartReader.read_thinking,
    "image_url": PartReader.read_image_url,
    "file": PartReader.read_file,
    "image": PartReader.read_source,
    "document": PartReader.read_source,
}
_OWN: Final = frozenset({"tool-use", "thinking", "image", "document", "unknown"})
_FOREIGN_FIELDS: Final = frozenset({"source"})


def without(fields: Fields, *names: str) -> dict[str, Any]:
    """Return all fields but these."""
    return {name: value for name, value in fields.items() if name not in names}


def keep_whole(fields: Fields) -> UnknownBlock:
    """Keep a JSON object that has no content block of its own.

    Raises:
        MessageError: if something in it has no place in JSON.
    """
    return UnknownBlock(freeze_object(fields, ""))


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
