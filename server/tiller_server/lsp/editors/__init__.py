"""One attached editor: capabilities, quirks, settings, context, requests, and verified edits of one document."""
