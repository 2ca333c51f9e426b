"""Names and places in the workspace and the home folder that a sandbox protects."""
