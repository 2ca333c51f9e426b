"""External agents: programs that speak the Agent Client Protocol, version 1, and work on tasks; Tiller is their client."""
