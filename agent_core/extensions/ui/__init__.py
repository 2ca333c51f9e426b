"""Dialogs and views of extensions, and their offers to clients."""
