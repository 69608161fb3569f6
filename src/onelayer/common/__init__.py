"""What every room may use, and what knows no room: errors, tables, numbers, complete files, the machine, budgets, checks."""
