"""Review jobs of many repositories, on one machine or many (decision 0123)."""
