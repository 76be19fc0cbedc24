"""Blocks in a CRDT document; the only room that knows pycrdt's shared types."""
