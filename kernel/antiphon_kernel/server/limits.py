"""Server limits on one connection, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.constants import CALL_BYTES


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Sizes in bytes, times in seconds."""

    frame: int = CALL_BYTES
    """One WebSocket message; a client that was offline for long sends all it wrote in one."""
    awareness: int = 64 * 2**10
    """One awareness message; Yjs clients repeat in it what they have heard of others."""
    awareness_state: int = 8 * 2**10
    """The state of one client, as JSON."""
    awareness_depth: int = 16
    """How deep that may be nested."""
    presence_expiry: float = 30.0
    """Seconds after which a client that has not renewed its state is not shown any more."""
    state_part: int = 4 * 2**20
    """Bytes of a document that are sent in one message to a client that has not seen them, more or
    less: receivers take as long to apply them as their users should wait for a key at most."""
    state_vector: int = 2**20
    """The state vector of a sync step 1."""
    request: int = 8 * 2**20
    """The body of one tool call."""
    unread: int = 4 * 2**20
    """Bytes that wait for a slow reader before it gets a resync in their place."""
    handshake: float = 10.0
    """A connection without a session is closed after so long."""
    body: float = 60.0
    """How long the body of a request may take."""
    greeting: float = 30.0
    """How long a client of a room may take to say what it has."""
    strangers: int = 64
    """Connections without a session on TCP; of more the oldest idle one is dropped."""
    connections: int = 800
    """Connections with a session on TCP; the unix socket takes any number."""
    connections_each: int = 100
    """The same for one principal who was invited."""
    calls_per_second: float = 1_000.0
    """How many calls one principal who was invited may make in the long run."""
    calls_at_once: float = 5_000.0
    """How many it may make after a rest."""
    connects_per_second: float = 30.0
    """How often one principal may connect in the long run."""
    connects_at_once: float = 300.0
    """How often it may connect after a rest."""
    messages_per_second: float = 2_000.0
    """Messages that one connection may send in the long run."""
    messages_at_once: float = 20_000.0
    """Messages that it may send after a rest."""
    bytes_per_second: float = 8 * 2**20
    """Bytes that one connection may send in the long run."""
    bytes_at_once: float = 64 * 2**20
    """Bytes that it may send after a rest."""
    overload_grace: float = 30.0
    """A connection that has been slowed down without a break for so long is closed."""
    uncommitted_updates: int = 256
    """Updates of one connection on their way to disk; more are read when these have arrived."""
    time_slice: float = 0.002
    """How long one connection may keep the event loop busy."""
    read_tick: float = 0.005
    """Longest pause before a fast writer is read again."""
    broadcast_tick: float = 0.001
    """Longest pause after a broadcast of several changes. Short: it holds up whoever waits for a
    change to arrive before writing on."""
    presence_tick: float = 0.04
    """Pause between two broadcasts of who is where; the first is sent at once."""
    merged_updates: int = 100
    """Updates in one broadcast."""
    stalled: float = 60.0
    """A connection that has read nothing for so long is cut off."""
    mcp_idle: float = 300.0
    """A program that has asked for nothing over MCP for so long is not present any more."""
    heartbeat: float = 12.0
    """Pause between two signs of life; Yjs clients drop a connection that is silent for 30."""


DEFAULT_SERVER_LIMITS: Final = ServerLimits()
