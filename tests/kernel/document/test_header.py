"""A header reads back as it was written, whatever its fields hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon_kernel.document.header import ENUMS, FIELDS, Form
from antiphon_kernel.types.records import BlockHeader
from tests.kernel.document.structured import BLOCK, founded, replica_of

WORDS = st.text(min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from((0, -1, 2**53, 10**20, 0.5, -1e300)) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
OF_FORMS: dict[Form, st.SearchStrategy[Any]] = {
    Form.STRING: WORDS,
    Form.FLAG: st.booleans(),
    Form.NUMBER: st.sampled_from((0, 1, -15, 350, 2**31, 2**53 - 1)),
    Form.OBJECT: st.dictionaries(WORDS, JSON, max_size=3),
}


def values(name: str) -> st.SearchStrategy[Any]:
    """Values of a field: of a closed set also one that only a later version knows."""
    if name in ENUMS:
        return st.sampled_from((*ENUMS[name], "of a later version"))
    set_values = OF_FORMS[FIELDS[name]]
    return (
        set_values | st.none() if BlockHeader._field_defaults.get(name, "") is None else set_values
    )


HEADERS = st.fixed_dictionaries({name: values(name) for name in FIELDS}).map(
    lambda fields: BlockHeader(BLOCK, **fields)
)


def test_every_field_but_the_id_is_stored() -> None:
    assert {"id", *FIELDS} == set(BlockHeader._fields)


@settings(max_examples=40, deadline=None)
@given(HEADERS)
def test_header_of_any_fields_reads_back_on_another_replica(header: BlockHeader) -> None:
    document = founded()
    document.create_block(header, "x")
    assert document.header(BLOCK) == replica_of(document).header(BLOCK) == header
