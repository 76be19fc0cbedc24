"""Results that show the fields of a record as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from pydantic import create_model

from antiphon_kernel.registry import Result

R = TypeVar("R", bound=Result)


def mirror_fields(record: type[Any], *, but: Collection[str]) -> Callable[[type[R]], type[R]]:
    """Give a result those fields of a dataclass that it does not name itself, with their defaults.

    Args:
        but: fields that are not shown.
    """

    def add(result: type[R]) -> type[R]:
        types = get_type_hints(record)
        added: dict[str, Any] = {
            one.name: (types[one.name], one)
            for one in fields(record)
            if one.name not in but and one.name not in result.model_fields
        }
        shown = create_model(
            result.__name__,
            __base__=result,
            __module__=result.__module__,
            __doc__=result.__doc__,
            **added,
        )
        shown.record = record
        return shown

    return add
