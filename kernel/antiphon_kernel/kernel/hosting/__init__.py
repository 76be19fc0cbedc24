"""The contexts of a kernel: found, opened, kept, forked."""
