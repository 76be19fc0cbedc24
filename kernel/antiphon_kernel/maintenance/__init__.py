"""Work on the files of a kernel: the audit log, restoring a backup, the doctor's checks."""
