"""Server limits on one connection, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.constants import CALL_BYTES


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Sizes in bytes, times in seconds."""

    frame: int = CALL_BYTES
    """One WebSocket message; a client that was offline sends everything that it wrote in one."""
    awareness: int = 64 * 2**10
    """One awareness message; Yjs clients also repeat the states of others in it."""
    awareness_state: int = 8 * 2**10
    """The state of one client, as JSON."""
    awareness_depth: int = 16
    """How deep that state may be nested."""
    presence_expiry: float = 30.0
    """Seconds after which a client that has not renewed its state is not shown any more."""
    state_part: int = 4 * 2**20
    """Most bytes of a document in one message to a client that lacks them; more come in smaller
    parts. The time to apply them is the longest that the client's user waits for a key."""
    state_vector: int = 2**20
    """The state vector of a sync step 1."""
    request: int = 8 * 2**20
    """The body of one tool call."""
    unread: int = 4 * 2**20
    """Bytes that wait for a slow reader before it gets a resync in their place."""
    handshake: float = 10.0
    """Time after which a connection without a session is closed."""
    body: float = 60.0
    """How long the body of a request may take."""
    greeting: float = 30.0
    """How long a client of a room may take to send its state vector."""
    strangers: int = 64
    """Connections without a session on TCP; if there are more, the oldest idle one is dropped."""
    connections: int = 800
    """Connections with a session on TCP; the unix socket takes any number."""
    connections_each: int = 100
    """Connections of one principal who was invited."""
    calls_per_second: float = 1_000.0
    """Calls that one principal who was invited may make, on average."""
    calls_at_once: float = 5_000.0
    """Calls that they may make at once after a pause."""
    connects_per_second: float = 30.0
    """How often one principal may connect, on average."""
    connects_at_once: float = 300.0
    """How often it may connect at once after a pause."""
    messages_per_second: float = 2_000.0
    """Messages that one connection may send, on average."""
    messages_at_once: float = 20_000.0
    """Messages that it may send at once after a pause."""
    bytes_per_second: float = 8 * 2**20
    """Bytes that one connection may send, on average."""
    bytes_at_once: float = 64 * 2**20
    """Bytes that it may send at once after a pause."""
    overload_grace: float = 30.0
    """Time after which a connection is closed that has been slowed down without a break."""
    uncommitted_updates: int = 256
    """Updates of one connection on their way to disk; more are read when these are written."""
    time_slice: float = 0.002
    """How long one connection may keep the event loop busy."""
    read_tick: float = 0.005
    """Longest pause before a fast writer is read again."""
    broadcast_tick: float = 0.001
    """Longest pause after a broadcast of several changes. It is short, since some clients wait for
    a change to arrive before they go on."""
    presence_tick: float = 0.04
    """Pause between two broadcasts of who is where; the first is sent at once."""
    merged_updates: int = 100
    """Updates in one broadcast."""
    stalled: float = 60.0
    """Time after which a connection that reads nothing is cut off."""
    mcp_idle: float = 300.0
    """Time without a request over MCP after which a program is not present any more."""
    heartbeat: float = 12.0
    """Time between two heartbeats; Yjs clients drop a connection that is silent for 30 s."""


DEFAULT_SERVER_LIMITS: Final = ServerLimits()
