"""`tiller rpc`: JSON lines over standard input and output, with the commands and events of pi's RPC mode."""
