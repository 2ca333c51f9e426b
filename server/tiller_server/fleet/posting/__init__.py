"""Posts results on forges: one post per key, whatever is killed on the way."""
