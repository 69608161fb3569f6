"""Formulas from text."""
from .parser import parse, parse_condition
from .text import to_text
