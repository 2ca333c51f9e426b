"""Permissions of a session: the permission broker, pending prompts and questions, rules, trust and guarded files."""
