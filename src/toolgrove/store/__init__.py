"""Where commits, idempotency records and audit records are kept."""
