"""The durable engine that brings jobs to workers."""
