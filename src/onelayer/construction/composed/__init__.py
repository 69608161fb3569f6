"""Composed layers: attention for inner functions, the feed-forward network for outer ones."""
