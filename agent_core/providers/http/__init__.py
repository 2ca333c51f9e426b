"""HTTP requests to providers: client, framing of streams, and errors."""
