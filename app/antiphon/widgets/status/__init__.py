"""The single lines around the document: who is here, what works now, what has happened."""
