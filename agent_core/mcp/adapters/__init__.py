"""How servers are reached: the library that speaks the protocol, over programs and over HTTP."""
