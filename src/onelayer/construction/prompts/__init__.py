"""Prompts: one frozen layer, and tokens that make it compute a given function, or one that is known by samples."""
