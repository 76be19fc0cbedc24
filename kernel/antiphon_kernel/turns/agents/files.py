"""Files as agents read and write them: the live text of what is open, edits by the agent."""

from __future__ import annotations

from antiphon_kernel.turns.agents.agent_turn import AgentTurn


async def read_file(turn: AgentTurn, path: str, line: int | None, limit: int | None) -> str:
    """Return the text of a file as it is now, unsaved edits included.

    Args:
        path: absolute.
        line: the first one, counted from 1.
        limit: number of lines.

    Raises:
        AntiphonError: if there is no such file, or the agent may not see it.
    """
    raise NotImplementedError


async def write_file(turn: AgentTurn, path: str, content: str) -> None:
    """Change a file to `content`, as an edit of what the agent has read last; make it if need be.

    Raises:
        AntiphonError: if it may not be written, or a person has said no.
    """
    raise NotImplementedError
