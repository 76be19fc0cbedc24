"""Fields of objects with slots that are made when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class LazyFields:
    """Base of classes with slots that lack the values of some of them at first.

    The method `_make_NAME` returns the value of the field NAME. `cached_property` needs a dict,
    which takes 270 bytes for each object.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # types are checked as those of the fields

        def __getattr__(self, name: str) -> Any:
            """Make a field; called only while its slot is empty."""
            make = getattr(type(self), f"_make_{name}", None)
            if make is None:
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value = make(self)
            object.__setattr__(self, name, value)
            return value
