"""What every room may use and what knows no room: errors, tables and numbers as text, complete files, the machine, budgets, progress, checks."""
