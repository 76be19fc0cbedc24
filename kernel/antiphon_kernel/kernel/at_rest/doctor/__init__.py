"""Checks of everything that must hold for a journal at rest."""
