"""Commands of `workspace/executeCommand` for clients without an extension."""
