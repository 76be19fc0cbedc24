"""antiphon's terminal app: people and language models writing in one document."""
