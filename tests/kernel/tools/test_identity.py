"""Names for people: of principals beside their usernames, of kernels beside their ids."""

from __future__ import annotations

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel, refused


async def shown(kernel: Kernel, actor: Actor) -> tuple[str, dict[str, str]]:
    label = (await kernel.call(actor, "kernel.info", {}))["label"]
    members = (await kernel.call(actor, "kernel.members", {}))["members"]
    return label, {one["username"]: one["display_name"] for one in members}


async def test_names_of_kernel_and_principals_are_stored(
    kernel: Kernel, amy: Actor, bo: Actor, open_kernel: OpenKernel
) -> None:
    names = {"system": "system", "amy": "amy", "bo": "bo"}
    assert await shown(kernel, bo) == (kernel.project.name, names)
    await kernel.call(amy, "kernel.label", {"label": "The reading room"})
    await kernel.call(bo, "session.name", {"display_name": "Bo 漢"})
    for _ in range(2):
        assert await shown(kernel, bo) == ("The reading room", names | {"bo": "Bo 漢"})
        whoami = await kernel.call(bo, "session.whoami", {})
        assert (whoami["username"], whoami["display_name"]) == ("bo", "Bo 漢")
        await kernel.close()
        kernel = await open_kernel()
        bo = kernel.open_session(kernel.members["bo"], "test")


async def test_name_that_cannot_be_shown_in_a_line_is_rejected(kernel: Kernel, amy: Actor) -> None:
    for name in ("", "a\nb", "a\x1b[31m", "\x85", "x" * 65):
        for tool, field in (("kernel.label", "label"), ("session.name", "display_name")):
            error = await refused(kernel, amy, tool, {field: name})
            assert error.code is ErrorCode.INVALID_PARAMS
            assert field in error.message
