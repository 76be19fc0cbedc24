"""Contexts as files: out of one kernel, into another."""
