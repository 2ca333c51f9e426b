"""State that one client has open: documents, positions in them, URIs and workspace folders."""
