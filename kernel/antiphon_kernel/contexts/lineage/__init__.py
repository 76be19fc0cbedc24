"""Forks of contexts, and drift between them."""
