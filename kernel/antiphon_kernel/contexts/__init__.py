"""Contexts: how each is opened, written to, kept on disk, forked and searched."""
