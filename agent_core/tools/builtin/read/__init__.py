"""The tool `read` and its pages, notebooks and images."""
