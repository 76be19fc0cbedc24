"""Subscriptions to the blocks of a context."""
