"""A style sheet that parses a source once; Textual's parses all of them three times in a start.

`Stylesheet.reparse` begins with an empty cache, and `App.refresh_css`, which calls it, sets the
same variables again, which empties the other one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

THEMES_KEPT: Final = 4
"""As many themes are parsed no more when they are shown again: somebody looks through them."""

_Rules = dict[Hashable, list[RuleSet]]

_parsed: Final[LRUCache[frozenset[tuple[str, str]], _Rules]] = LRUCache(THEMES_KEPT)
"""Rules by source, by the variables with which they were parsed. Nothing changes a rule."""


class ParsedOnceStylesheet(Stylesheet):
    """Style sheet whose rules are shared by all in this process that have the same variables."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._known = _rules_with(variables or {})

    def set_variables(self, variables: dict[str, str]) -> None:
        if variables != self._variables:
            super().set_variables(variables)
            self._known = _rules_with(variables)

    def reparse(self) -> None:
        self.parse()

    def _parse_rules(
        self,
        css: str,
        read_from: CSSLocation,
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        source = (css, read_from, is_default_rules, tie_breaker, scope)
        if (rules := self._known.get(source)) is None:
            rules = self._known[source] = super()._parse_rules(*source)
        return rules


def _rules_with(variables: dict[str, str]) -> _Rules:
    key = frozenset(variables.items())
    if (rules := _parsed.get(key)) is None:
        rules = _parsed[key] = {}
    return rules
