"""Turns: models that answer submissions, and the shell commands that they and people run."""
