"""Wire formats that several adapters share, one package per format."""
