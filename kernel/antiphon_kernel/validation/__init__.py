"""Validation of raw updates before they reach the document."""
