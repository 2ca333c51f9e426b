"""The embedded model: repairs failing Python tests by rules, without a network or a key."""
