"""Widgets of the document screen."""
