// Durations.
