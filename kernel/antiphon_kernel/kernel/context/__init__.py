"""One open context: its document, its undo and histories, and the way of a change to disk."""
