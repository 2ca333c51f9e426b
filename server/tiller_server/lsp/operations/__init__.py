"""Operations on sessions that the feature handlers and the commands share."""
