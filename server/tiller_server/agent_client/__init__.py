"""A client of the methods `agent/*`, for front ends that are not language servers themselves: chat, ACP, RPC."""
