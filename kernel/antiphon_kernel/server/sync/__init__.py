"""The sync endpoint: rooms that speak the Yjs sync and awareness protocols."""
