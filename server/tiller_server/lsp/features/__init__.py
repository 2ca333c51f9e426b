"""Handlers of the methods: one file each, independent of one another."""
