"""Rules of the policy: their values, files, validation and matching."""
