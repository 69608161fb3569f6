"""What every package uses: errors, tables, files that are complete or absent, the machine, time, progress."""
