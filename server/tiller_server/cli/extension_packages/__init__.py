"""Extension packages of `tiller ext`: their template, check, wheel, sources and installation."""
