"""The Agent Client Protocol (ACP): sessions of the agent for editors that speak it."""
