"""What a connected client may write into the content of a block."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from antiphon_kernel.document.conformity import Rule, Violation, joined, violations
from antiphon_kernel.document.content import refuse_violations
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    TEXT,
    CompositeSchema,
    FieldSchema,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Schema,
    TextSchema,
    inner_part,
    is_counter,
    is_single,
    is_text,
    part_at,
    path_of,
)
from antiphon_kernel.document.schema import Part as SchemaPart
from antiphon_kernel.kernel.access.permissions import check_draft
from antiphon_kernel.kernel.admission.part_rules import (
    FieldRule,
    ListRule,
    LogRule,
    Part,
    PartRule,
    SumRule,
    TextRule,
)
from antiphon_kernel.kernel.admission.placement import Container, Place, Placement
from antiphon_kernel.kernel.admission.refusals import denied
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.kernel.read_only import refuse_read_only
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, SharedType, Struct

_VALUES: Final = (ContentKind.ANY, ContentKind.DELETED)
_ALLOWED: Final = {
    SharedType.TEXT: (ContentKind.STRING, ContentKind.FORMAT, ContentKind.DELETED),
    SharedType.ARRAY: _VALUES,
    SharedType.MAP: _VALUES,
}


class ContentRules:
    """Characters into texts, JSON values into lists and fields, and nothing that is read-only."""

    def __init__(
        self, document: Document, actor: Actor, placement: Placement, limits: Limits
    ) -> None:
        """`placement`: where everything is that the document holds."""
        self._document = document
        self._actor = actor
        self._placement = placement
        self._limits = limits
        self._rules: dict[Place, PartRule | None] = {}
        self._sums: dict[Container, dict[str, list[Decimal]]] = {}

    def check_item(self, item: Struct, place: Place, begin: int) -> None:
        """Raises if a new item may not be written there; new of it is what is from `begin` on."""
        container = place.container
        shared = container.shared
        if shared is None or item.kind not in _ALLOWED.get(shared, ()):
            raise denied(
                f"An update puts {item.kind.name.lower()} into block {container.block},"
                " which takes characters in texts and JSON values elsewhere."
            )
        rule = self._rule(place)
        if rule is None:
            self._refuse_place(place)
        else:
            rule.insert(item, begin)

    def check_deletion(self, ids: IdRange, place: Place) -> None:
        """Raises if what is there may not be deleted; called after every `check_item`."""
        rule = self._rule(place)
        if rule is not None:
            rule.delete(ids, own=ids.start >= self._placement.end(ids.client))

    def confirm(self) -> None:
        """Raises if all of it together may not be written into what is there now."""
        for rule in self._rules.values():
            if rule is not None:
                rule.confirm()

    def _rule(self, place: Place) -> PartRule | None:
        """The rule of a place, None where nothing may be written; raises if it is read-only."""
        if place not in self._rules:
            self._rules[place] = self._new_rule(place)
        return self._rules[place]

    def _new_rule(self, place: Place) -> PartRule | None:
        container, key = place.container, place.key
        names = container.path or ()
        path = path_of(names)
        if container.block is not None and container.block in self._document:
            check_draft(self._document, container.block, self._actor.principal)
        schema = self._schema(container.block)
        held: SchemaPart | None = schema
        if path is not None or not isinstance(schema, TextSchema):
            keyed = names if key is None else (*names, key)
            refuse_read_only(self._actor, str(container.block), schema, keyed)
            held = part_at(schema, path)
        if container.shared is SharedType.MAP:
            return self._keyed_rule(place, path, held)
        if key is not None:
            return None
        part = self._part(container, path)
        if container.shared is SharedType.TEXT:
            return TextRule(part, container) if is_text(held) else None
        if isinstance(held, LogSchema):
            return LogRule(part)
        if isinstance(held, ListSchema):
            return ListRule(part, held)
        if isinstance(held, FieldSchema) and held.field_type is FieldType.LIST:
            return ListRule(part, held)
        return None

    def _keyed_rule(
        self, place: Place, path: str | None, held: SchemaPart | None
    ) -> PartRule | None:
        container, key = place.container, place.key
        if key is None or held is None:
            return None
        if isinstance(held, FieldSchema) and is_counter(held):
            written = self._sums.setdefault(container, {})
            return SumRule(self._part(container, path), held, place, written)
        field = inner_part(held, key)
        if isinstance(field, FieldSchema) and is_single(field):
            return FieldRule(self._part(container, joined(path, key)), field, place)
        return None

    def _part(self, container: Container, path: str | None) -> Part:
        return Part(self._document, str(container.block), path, self._placement, self._limits)

    def _schema(self, block: str | None) -> Schema:
        document = self._document
        return document.schema(block) if block is not None and block in document else TEXT

    def _refuse_place(self, place: Place) -> None:
        """Raises: there is no rule for the place."""
        block, key = place.container.block, place.key
        path = path_of(place.container.path or ())
        held = part_at(self._schema(block), path)
        if key is not None and isinstance(held, MapSchema | CompositeSchema):
            if inner_part(held, key) is None:
                refuse_violations(str(block), violations(held, {key: None}, path))
            path = joined(path, key)
        expected = "what was made with the block, which is changed inside and never replaced"
        refuse_violations(str(block), [Violation(path, Rule.TYPE, expected, "something else")])
