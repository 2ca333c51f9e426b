"""What every process of the server needs, with or without LSP: configuration, logs, garbage collection, process watches."""
