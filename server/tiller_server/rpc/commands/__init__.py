"""Commands of pi's RPC mode as requests of `agent/*`: one function each."""
