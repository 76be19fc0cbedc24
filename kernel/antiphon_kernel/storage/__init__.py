"""SQLite: every committed transaction, and what has to be found again without replaying them."""
