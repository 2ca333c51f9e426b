"""Process services of the server, with or without LSP: configuration, logs, garbage collection, process watches."""
