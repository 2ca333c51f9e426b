"""The front ends of Tiller: connections of the core to editors, terminals and review bots."""

VERSION = "0.1.0"
