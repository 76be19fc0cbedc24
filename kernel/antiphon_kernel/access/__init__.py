"""Principals, sessions, invitations and permissions."""
