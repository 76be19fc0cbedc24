"""Who may come in, who is in, and what each may do."""
