"""JSON-RPC of one connection: messages, errors, requests in both directions, and the adapter to pygls."""
