"""Findings of a review: verification, deduplication, fingerprints, baseline and relocation."""
