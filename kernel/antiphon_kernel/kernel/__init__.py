"""Contexts, sessions, presence and the tools: puts document and journal together."""
