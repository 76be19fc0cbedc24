"""Sessions of guests on the kernel's machine: the app or a command, in a confined process each."""
