"""The LSP front end: one hardened connection per editor, and the features spoken over it."""
