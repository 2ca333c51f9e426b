"""Measures Tiller against floors and peers that run beside it: `python -m bench`."""
