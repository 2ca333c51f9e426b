"""Pictures of the documents, made anew by `make pictures`."""
