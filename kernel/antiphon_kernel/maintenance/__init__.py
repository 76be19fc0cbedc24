"""Work on the files of a kernel: the audit log, restoring a backup, the doctor's checks."""

from antiphon_kernel.maintenance.audit_log import AuditEvent, AuditKind, survey
