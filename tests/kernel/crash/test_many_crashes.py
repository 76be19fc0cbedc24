"""A folder in which one kernel after the other has died is as good as any."""

from __future__ import annotations

import shutil
from pathlib import Path

from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import PrincipalKind
from tests.kernel.crash.faults import open_kernel

CRASHES = 60


async def test_folder_opens_however_often_its_kernel_has_died(tmp_path: Path) -> None:
    data = tmp_path / "0"
    answers: list[str] = []
    prompt, typed = "", ""
    for crash in range(CRASHES):
        kernel = await open_kernel(data)
        amy = kernel.open_session(kernel.owner, "test")
        model = await kernel.principal(f"aria-{crash % 3}", PrincipalKind.MODEL)
        aria = kernel.open_session(model, "turn")
        if not prompt:
            new = {"role": "user", "kind": "text", "content": "go on", "status": "done"}
            prompt = (await kernel.call(amy, "block.create", new))["block_id"]
        answer = {"role": "model", "kind": "text", "parent_id": prompt, "content": "I was "}
        answers.append((await kernel.call(aria, "block.create", answer))["block_id"])
        await kernel.call(aria, "block.append", {"block_id": answers[-1], "text": f"here {crash}"})
        typed = f"{crash} " + typed
        insert = {"block_id": prompt, "offset": 0, "insert": f"{crash} "}
        await kernel.call(amy, "block.splice", insert)
        died_of_it = tmp_path / str(crash + 1)
        # What is on disk when the machine stops now.
        shutil.copytree(data, died_of_it, ignore=shutil.ignore_patterns("*-shm"))
        await kernel.close()
        shutil.rmtree(data)
        data = died_of_it
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    kernel = await open_kernel(data)
    document = (await kernel.context()).document
    assert document.text(prompt) == typed + "go on"
    assert [document.text(one) for one in answers] == [f"I was here {n}" for n in range(CRASHES)]
    headers = [document.header(one) for one in answers]
    assert {(one.status, one.stop_reason) for one in headers} == {("error", "interrupted")}
    assert list(document.block_ids()) == [prompt, *answers]
    assert all(kernel.members[f"aria-{n}"].kind is PrincipalKind.MODEL for n in range(3))
    amy = kernel.open_session(kernel.owner, "test")
    for _ in range(3):
        await kernel.call(amy, "block.undo", {"block_id": prompt})
    undone = " ".join(map(str, reversed(range(CRASHES - 3))))
    assert document.text(prompt) == f"{undone} go on"
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
