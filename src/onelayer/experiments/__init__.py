"""Many layers side by side: comparisons, peers, studies."""
