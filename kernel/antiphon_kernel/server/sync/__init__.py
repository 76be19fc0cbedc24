"""The sync door: rooms that speak the Yjs sync and awareness protocols."""
