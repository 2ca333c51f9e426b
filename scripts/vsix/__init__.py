"""Builds the VS Code extension as one file that installs without a network."""
