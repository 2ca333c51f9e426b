"""Events of the platform as values of the port."""
