"""Contexts and people beside the document."""
