"""The fewest units: keys and offsets are optimised too."""
