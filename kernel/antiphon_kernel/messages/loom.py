"""Conversations of loom: a folder with `roots.json` and one JSON file for each node of a tree.

A root has an id and the system prompt, a node its message and the id of its parent; the file of
the node `root-1/node-2` is `root-1/nodes/node-2.json`. Messages are of our form or the legacy one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from antiphon_kernel.messages.correlation import PathCorrelation
from antiphon_kernel.messages.errors import MessageError, MessageProblem
from antiphon_kernel.messages.foreign_conversations import (
    Fields,
    ForeignMessageReader,
    ImportedConversation,
    ImportedMessage,
    SystemMessage,
    chain_messages,
    without,
)
from antiphon_kernel.messages.message import Message
from antiphon_kernel.messages.normal_form import freeze_object, require_fields, require_list
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.json_validation import read_json, unique_names
from antiphon_kernel.types.quoting import join_names, quote

ROOTS_FILE: Final = "roots.json"

_STRUCTURE: Final = ("child_ids", "parent_id", "root_id")
"""Fields of which the tree is made."""


def read_loom(files: Mapping[str, str]) -> tuple[ImportedConversation, ...]:
    """Read the conversations of a folder, one for each root, as trees.

    Args:
        files: text of `roots.json` and of every node's file, by the path in the folder.

    Raises:
        MessageError: with the file and field of what cannot be read, also if a node descends from
            no root.
    """
    if ROOTS_FILE not in files:
        raise _invalid(f"expected the file {ROOTS_FILE}, found {join_names(files)}", ROOTS_FILE)
    roots: dict[str, Fields] = {}
    with MessageError.located(path=ROOTS_FILE):
        for at, value in enumerate(require_list(_parse(files[ROOTS_FILE]), "")):
            with MessageError.located(path=f"[{at}]"):
                _add_by_id(require_fields(value, ""), roots)
    folder = _Folder({path: text for path, text in files.items() if path != ROOTS_FILE})
    conversations = tuple(folder.read_tree(root) for root in roots.values())
    folder.refuse_rest()
    return conversations


class _Folder:
    """Nodes of a folder, which are taken out as the trees are read."""

    def __init__(self, files: Mapping[str, str]) -> None:
        nodes: dict[str, Fields] = {}
        self._rest: dict[str, tuple[str, Fields]] = {}
        """The path of each node's file, and what it holds."""
        self._children: dict[str, list[str]] = {}
        for path, text in files.items():
            with MessageError.located(path=path):
                fields = require_fields(_parse(text), "")
                node_id = _add_by_id(fields, nodes)
                self._rest[node_id] = path, fields
                self._children.setdefault(_read_id(fields, "parent_id"), []).append(node_id)

    def read_tree(self, root: Fields) -> ImportedConversation:
        """Read the messages below a root, each one behind its parent."""
        reader = ForeignMessageReader()
        correlation = PathCorrelation()
        read = _read_prompt(root, reader)
        path: list[int] = []
        """Indices of the messages from the root to the last one that was read."""
        waiting = self._below(root, len(read) - 1 if read else None)
        while waiting:
            node_id, parent = waiting.pop()
            file, node = self._rest.pop(node_id)
            while path and path[-1] != parent:
                _correlate(correlation.remove_last, read[path.pop()])
            with MessageError.located(path=file):
                found = _read_node(reader, node, parent, len(read))
                for one in found:
                    _correlate(correlation.add, one)
            path += range(len(read), len(read) + len(found))
            read += found
            waiting += self._below(node, path[-1])
        return ImportedConversation(tuple(read), reader.files, _told_of(root))

    def refuse_rest(self) -> None:
        """Refuse nodes that belong to no tree."""
        if self._rest:
            path, _ = next(iter(self._rest.values()))
            raise _invalid(
                f"expected nodes that descend from a root, found {join_names(self._rest)}, which do"
                " not; give the whole folder",
                path,
            )

    def _below(self, parent: Fields, index: int | None) -> list[tuple[str, int | None]]:
        """The children in reverse of the order in which their parent lists them."""
        listed = parent.get("child_ids")
        places = {str(one): at for at, one in enumerate(listed if isinstance(listed, list) else [])}
        found = self._children.get(parent["id"], [])
        found = sorted(found, key=lambda one: (places.get(one, len(places)), one), reverse=True)
        return [(one, index) for one in found]


def _read_prompt(root: Fields, reader: ForeignMessageReader) -> list[ImportedMessage]:
    config = root.get("config")
    if not isinstance(config, Mapping) or not config.get("systemPrompt"):
        return []
    with MessageError.located(path=f"{ROOTS_FILE}.{root['id']}.config.systemPrompt"):
        prompt = {"role": "system", "content": config["systemPrompt"]}
        return chain_messages(reader.read(prompt), None, 0)


def _told_of(root: Fields) -> JsonObject:
    config = root.get("config")
    told = without(root, *_STRUCTURE, "config")
    if isinstance(config, Mapping):
        config = without(config, "systemPrompt") if config.get("systemPrompt") else config
    return freeze_object(told | ({"config": config} if config else {}), ROOTS_FILE)


def _read_node(
    reader: ForeignMessageReader, node: Fields, parent: int | None, first: int
) -> list[ImportedMessage]:
    with MessageError.located(path="message"):
        (message, extra), *rest = reader.read(node.get("message"))
    told = freeze_object({**extra, **without(node, *_STRUCTURE, "message")}, "")
    return chain_messages([(message, told), *rest], parent, first)


def _correlate(change: Callable[[Message], None], read: ImportedMessage) -> None:
    if not isinstance(read.message, SystemMessage):
        change(read.message)


def _add_by_id(fields: Fields, found: dict[str, Fields]) -> str:
    own = _read_id(fields, "id")
    if own in found:
        raise _invalid(f"another one has the id {quote(own)} too", "id")
    found[own] = fields
    return own


def _read_id(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str) and value:
        return value
    raise _invalid(f"expected the id of a node, found {quote(value)}", name)


def _parse(text: str) -> Any:
    try:
        return read_json(text, pairs=unique_names)
    except ValueError as error:
        raise _invalid(f"this is not JSON: {error}", "") from error


def _invalid(reason: str, path: str) -> MessageError:
    return MessageError(MessageProblem.INVALID_VALUE, reason, path=path)
