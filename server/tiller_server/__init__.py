"""The front ends of Tiller: what stands between the core and the editors, terminals and bots."""

VERSION = "0.1.0"
