"""File changes of a session: their record, review, revert and detection."""
