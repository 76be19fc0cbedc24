"""The tools of the kernel, one file each, named after the tool."""
