"""Tools of a session: their registry, the context of a call, processes and shell commands of the user."""
