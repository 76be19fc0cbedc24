"""Work on the files of a kernel that is not running: examining, telling, restoring."""
