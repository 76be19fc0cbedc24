"""Whatever is printed for an id is accepted back; what could mean several is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import resolve
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make


def _is_part(identity: str, reference: str) -> bool:
    return identity.startswith(reference) or identity.endswith(reference)


def oracle(reference: str, names: dict[str, str]) -> set[str]:
    """Everything that a reference could mean, best first: a full id, a name, a part of an id."""
    if reference in names.values():
        return {reference}
    if reference in names:
        return {names[reference]}
    hexadecimal = reference and not set(reference) - set("0123456789abcdef")
    return {one for one in names.values() if hexadecimal and _is_part(one, reference)}


def test_reference_means_one_thing_or_is_refused() -> None:
    rng = random.Random(9)
    codes = {ErrorCode.AMBIGUOUS_ID: 0, ErrorCode.CONTEXT_NOT_FOUND: 0}
    for _ in range(3_000):
        names: dict[str, str] = {}
        for _ in range(rng.randint(1, 5)):
            identity = "".join(rng.choice("ab") for _ in range(6)) + "0" * 20
            identity += "".join(rng.choice("ab") for _ in range(6))
            if identity not in names.values():
                names[rng.choice(("a", "ab", "b", "b0", "zoe", identity, "a" * 32))] = identity
        some = rng.choice(list(names.values()))
        references = (
            some[rng.randint(0, 32) :],
            some[: rng.randint(0, 32)],
            "zoe",
            "a" * 32,
            "ab",
            "b0",
            "Zoe",
            some + "0",
        )
        reference = rng.choice(references)
        meant = oracle(reference, names)
        if len(meant) == 1:
            found = resolve(reference, names, what="context", missing=ErrorCode.CONTEXT_NOT_FOUND)
            assert {found} == meant
            continue
        with pytest.raises(AntiphonError) as caught:
            resolve(reference, names, what="context", missing=ErrorCode.CONTEXT_NOT_FOUND)
        code = ErrorCode.AMBIGUOUS_ID if meant else ErrorCode.CONTEXT_NOT_FOUND
        assert caught.value.code is code
        assert set(caught.value.details.get("candidates", ())) == meant
        codes[code] += 1
    assert all(codes.values())


async def test_every_part_of_a_block_id_may_be_a_name_or_a_part_of_an_id(
    kernel: Kernel, call: Caller, bo: Actor, make: Make
) -> None:
    await kernel.create_context("other")
    block = await make("x", context="other")
    context, principal, seq = block.split(".")
    contexts = [row.id for row in kernel.contexts.rows()]
    people = [one.id for one in kernel.members]

    def shortest(identity: str, all_ids: Sequence[str]) -> str:
        return next(
            identity[:size]
            for size in range(1, 33)
            if sum(one.startswith(identity[:size]) for one in all_ids) == 1
        )

    for first in ("other", context, shortest(context, contexts), context[-12:]):
        for second in ("amy", principal, shortest(principal, people), principal[-20:]):
            reference = f"{first}.{second}.{seq}"
            found = await call("block.read", block_id=reference)
            assert found["block_id"] == block


UNKNOWN_FORMS = (
    *("", ".", "..", "default.amy", "default.amy.1.1", "default.amy.01", "default.amy.-1"),
    *("default.amy.x", "default.amy. 1", "default.amy.1\n", "default.AMY.1", "default..1"),
    *("default.amy.99999999999999999999", "default#amy#1"),
)


async def test_block_reference_in_unknown_form_is_not_found(call: Caller, make: Make) -> None:
    await make("x")
    for reference in UNKNOWN_FORMS:
        with raises(ErrorCode.BLOCK_NOT_FOUND) as caught:
            await call("block.read", block_id=reference)
        assert caught.value.details["reference"] in reference
