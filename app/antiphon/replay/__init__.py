"""Replays: a run as it was, read from its lines, played forwards and backwards in the app."""
