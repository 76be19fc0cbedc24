"""Plain typed values: ids, enums, records and the error catalogue. Imports nothing of ours."""
