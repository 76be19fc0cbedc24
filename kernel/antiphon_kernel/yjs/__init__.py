"""Bytes on the wire: Yjs updates, id sets, sync and awareness frames. Pure functions."""
