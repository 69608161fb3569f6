"""Known to every room, and knows none: errors, tables, files that are complete or absent, the machine, time, progress."""
