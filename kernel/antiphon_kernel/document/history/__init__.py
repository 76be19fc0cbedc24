"""What each character of a text has been through: who wrote it, who removed it, where it is."""
