"""Edits of everything in a structured block that is no text, and the tools that they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pycrdt import Array, Map, Text

Change = Callable[[Any], None]
"""Change of a client to the content of a block of the schema `peers.SCHEMA`."""

INSERT: Final = "call block.push_item or block.insert_item."
DELETE: Final = "call block.delete_item."
APPEND: Final = "call block.append_log."
SET: Final = "call block.set_field."
COUNT: Final = "call block.increment."
WHOLE: Final = "call block.import."


def _in_list(name: str, path: str, tools: tuple[str, str]) -> dict[str, tuple[Change, str]]:
    def array(content: Any) -> Any:
        for one in path.split("/"):
            content = content[one]
        return content

    def delete(content: Any) -> None:
        del array(content)[0]

    def replace(content: Any) -> None:
        array(content)[0] = 7.0

    def move(content: Any) -> None:
        delete(content)
        array(content).append(1.0)

    def take_back(content: Any) -> None:
        array(content).append(7.0)
        del array(content)[len(array(content)) - 1]

    insert, remove = tools
    return {
        f"insert into {name}": (lambda content: array(content).insert(0, 7.0), insert),
        f"append to {name}": (lambda content: array(content).append(7.0), insert),
        f"delete from {name}": (delete, remove),
        f"replace in {name}": (replace, insert),
        f"move in {name}": (move, insert),
        f"append to {name} and take back": (take_back, insert),
    }


def _in_map(
    name: str, path: str, key: Callable[[Any], str], tool: str
) -> dict[str, tuple[Change, str]]:
    def values(content: Any) -> Any:
        for one in path.split("/"):
            content = content[one]
        return content

    def overwrite(content: Any) -> None:
        values(content)[key(values(content))] = "7"

    def add(content: Any) -> None:
        values(content)["added"] = "7"

    def delete(content: Any) -> None:
        del values(content)[key(values(content))]

    def both(content: Any) -> None:
        overwrite(content)
        delete(content)

    return {
        f"add to {name}": (add, tool),
        f"overwrite in {name}": (overwrite, tool),
        f"delete from {name}": (delete, tool),
        f"overwrite and delete in {name}": (both, tool),
    }


def _container(
    name: str, parent: str, key: str, kind: type[Any], tool: str
) -> dict[str, tuple[Change, str]]:
    def held(content: Any) -> Any:
        return content[parent] if parent else content

    def overwrite(content: Any) -> None:
        held(content)[key] = kind()

    def overwrite_by_a_value(content: Any) -> None:
        held(content)[key] = 7.0

    def delete(content: Any) -> None:
        del held(content)[key]

    return {
        f"overwrite {name}": (overwrite, tool),
        f"overwrite {name} by a value": (overwrite_by_a_value, tool),
        f"delete {name}": (delete, tool),
    }


def _add_section(content: Any) -> None:
    content["more"] = Text()


def _text_and_list(content: Any) -> None:
    content["state"]["title"].insert(0, "typed")
    content["things"].append(7.0)


EDITS: Final[dict[str, tuple[Change, str]]] = {
    **_in_list("list", "things", (INSERT, DELETE)),
    **_in_list("list field", "state/few", (INSERT, DELETE)),
    **_in_list("log", "log", (APPEND, APPEND)),
    **_in_map("map", "state", lambda _: "must", SET),
    **_in_map("counter", "state/count", lambda sums: str(next(iter(sums))), COUNT),
    **_container("list field", "state", "few", Array, SET),
    **_container("counter", "state", "count", Map, SET),
    **_container("text field", "state", "title", Text, SET),
    **_container("list", "", "things", Array, WHOLE),
    **_container("log", "", "log", Array, WHOLE),
    **_container("map", "", "state", Map, WHOLE),
    **_container("text section", "", "notes", Text, WHOLE),
    "add to composite": (_add_section, WHOLE),
    "shared type in list": (lambda content: content["things"].append(Map()), INSERT),
    "text and list": (_text_and_list, INSERT),
}
"""By name what a client does, and what the error says is to be done instead."""
