"""What every room may use and what knows no room: errors, tables, complete files, the machine, budgets, progress, checks."""
