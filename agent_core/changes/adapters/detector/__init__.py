"""Detection of file changes made by commands, by scans of the disk and the data of git."""
