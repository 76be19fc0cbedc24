"""One module for each step from one version of the tables to the next."""
