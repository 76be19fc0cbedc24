"""JSON Schemas of requests and results, with the docstrings of the fields as descriptions.

Docstrings under fields are not there at run time, so they are read from the source, and only when
somebody asks: no kernel starts later for them.
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

COMMON: Final[dict[str, str]] = {
    "block_id": "The block: full id, `context.name.number`, either with the parts cut short, or a"
    " path that `context.layout` shows.",
    "name": "The block by the names of its parts, like `default.aria.12`.",
    "parent_name": "The parent by the names of its parts.",
    "result_name": "The result by the names of its parts.",
    **dict.fromkeys(("next_name", "message_name"), "The same block by the names of its parts."),
    **dict.fromkeys(
        ("undone_names", "blocks_names", "created_names", "deleted_names"),
        "The same blocks by the names of their parts.",
    ),
    "context": "Label or id of the context; the default context if absent.",
    "context_id": "Id of the context.",
    "context_version": "The version of the context after this: the journal's `seq`.",
    "version": "The version of the block: how often it has changed, 1 at creation.",
    "principal": "Id of the principal.",
    "username": "Name of the principal.",
    "label": "Name of the context.",
    "created": "When it was made: ISO 8601, UTC, milliseconds.",
    "time": "When it happened: ISO 8601, UTC, milliseconds.",
    "role": "The part it plays in the conversation.",
    "kind": "The kind of block.",
    "status": "The status of the block: `done` and `error` are final.",
    "truncated": "Whether there is more than this.",
    "exit_code": "How the command ended: 0 well, else not.",
    "is_error": "Whether what it says is an error.",
    "stop_reason": "Why it ended, `interrupted` for one.",
    "stopped_by": "Username of whoever stopped it.",
    "expected_text": "What the lines must say for this to happen; whatever they say if absent.",
    "section": "The text of the block: path of a section or of a text field; its only one if"
    " absent.",
    "undone": "Ids of the blocks whose text changed.",
    "session": "Id of the session.",
    "expires": "When it stops to let anybody in; absent: never.",
    "op": "Kind of the operation.",
    "operation": "Operation: create, append, edit, splice, sync (typed by a connected client), ...",
    "after_block": "Go on after this block: the `next` of the previous answer.",
    "after_version": "Go on after this version: the `next` of the previous answer.",
}
"""The meaning of a field of this name wherever no docstring says it more exactly."""


@cache
def described_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema of a model; where its source is not at hand, without the descriptions."""
    return model.model_json_schema(schema_generator=_DescribedSchema)


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return each field's meaning as one line: its docstring, or what its name means everywhere."""
    docs = dict(COMMON)
    record: type | None = getattr(model, "record", None)
    bases = [one for one in model.__mro__ if issubclass(one, BaseModel) and one is not BaseModel]
    for one in (record, *reversed(bases)):
        if one is not None:
            docs |= own_field_docs(one)
    return {name: doc for name, doc in docs.items() if name in model.model_fields}


def own_field_docs(record: type) -> dict[str, str]:
    """Return the docstrings of the fields that a class names itself, each as one line."""
    return _class_docs(record.__module__).get(record.__qualname__, {})


class _DescribedSchema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for field, doc in field_docs(model).items():
            name = model.model_fields[field].alias or field
            if name in generated.get("properties", {}):
                generated["properties"][name].setdefault("description", doc)
        return generated

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        generated = super().dataclass_schema(schema)
        for field, doc in (COMMON | own_field_docs(schema["cls"])).items():
            if field in generated.get("properties", {}):
                generated["properties"][field].setdefault("description", doc)
        return generated


_PARSING: Final = threading.Lock()
"""Held while a syntax tree is made: Python 3.11 fails if two threads make one at the same time."""


@cache
def _class_docs(module: str) -> Mapping[str, dict[str, str]]:
    """By class, by field."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    with _PARSING:
        tree = ast.parse(source)
    return {
        node.name: _field_docs(node.body) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _field_docs(body: list[ast.stmt]) -> dict[str, str]:
    docs = {}
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            if isinstance(below.value.value, str):
                docs[field.target.id] = " ".join(below.value.value.split())
    return docs
