"""Chat platforms as front ends: the bridge between chats and sessions of the daemon, and an adapter for each platform."""
