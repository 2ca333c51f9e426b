"""Edits of documents that are open in an editor: overlays, preconditions, rebase, batches and undo tracking."""
