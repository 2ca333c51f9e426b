"""Feishu and Lark: the adapter of the port of chat platforms, over the long connection and the REST API."""
