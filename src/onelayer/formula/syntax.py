"""Python's reading of one expression, as data; all its complaints become InputError.

`ast.parse` builds syntax nodes and executes nothing. Its recursion and memory errors on long text are caught here; the
nesting of brackets is bounded before (`screen`). A literal is read from its source text, so that 0.1 is 1/10 and not the nearest
float.
"""

import ast
import keyword
import re
import warnings
from fractions import Fraction

from .screen import clip, refuse
from .vocabulary import ALLOWED, MAX_DIGITS, MAX_MAGNITUDE

_USE = f"use {ALLOWED}"
_FOREIGN: dict[type[ast.AST], tuple[str, str]] = {  # syntax that has an everyday name, and what to write instead
    ast.Attribute: ("attribute access", _USE),
    ast.Subscript: ("a subscript", "write variables as x1, x2, …"),
    ast.Lambda: ("a lambda", "write the formula alone"),
    ast.NamedExpr: ("an assignment", "write the formula alone"),
    ast.JoinedStr: ("an f-string", "write the formula without quotes"),
    ast.IfExp: ("an if-expression", "write where(condition, a, b)"),
    ast.Tuple: ("a list of values", "separate outputs with ; and write decimals with a point"),
    ast.List: ("square brackets", "use round brackets"),
    ast.Set: ("curly brackets", "use round brackets"),
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp), ("a comprehension", _USE)),
    **{ast.FloorDiv: ("//", _USE), ast.Mod: ("%", _USE), ast.MatMult: ("@", _USE), ast.Invert: ("~", _USE)},
    **{ast.BitAnd: ("&", _USE), ast.BitOr: ("|", _USE)},
}
_LITERAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?", re.ASCII)
DECIMAL = "write numbers in decimal, such as 12, 0.5 or 1e-3"
_LIMIT = 10**MAX_MAGNITUDE


def python_syntax(source: str) -> ast.expr:
    """The syntax tree of one expression."""
    if not source:
        raise refuse("an empty output beside ';'", "write a formula on both sides of ';' or leave it out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except (RecursionError, MemoryError):
        found = f"too many operations in a row in {clip(source)}"
        raise refuse(found, "bracket long sums in groups, or shorten") from None
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        taken = [word for word in re.findall(r"\w+", source) if keyword.iskeyword(word)]
        change = f"use another name than {taken[0]}" if taken else "correct the brackets and operators"
        if "if" in taken or "else" in taken:
            change = "write where(condition, a, b)"
        if "string literal" in reason:
            reason, change = "a quotation mark", "leave quotation marks out"
        raise refuse(f"{clip(source)}, not an expression: {clip(reason)}", change) from None


def segment(source: str, syntax: ast.AST) -> str:
    """The part of a source of one line that a syntax node covers; `ast.get_source_segment` would split it every time."""
    start, end = getattr(syntax, "col_offset", 0), getattr(syntax, "end_col_offset", 0)  # in bytes
    return source.encode()[start:end].decode()


def foreign(syntax: ast.AST) -> tuple[str, str]:
    """What to call syntax, or an operator, that is not part of the language, and what to do about it."""
    return _FOREIGN.get(type(syntax), (type(syntax).__name__, _USE))


def literal(source: str) -> Fraction:
    """The number that decimal text such as 12, .5 or 1e-3 denotes."""
    match = _LITERAL.fullmatch(source)
    if match is None:
        raise refuse(f"the literal {clip(source)}", DECIMAL)
    if len(source) > MAX_DIGITS:
        raise refuse(f"a literal of {len(source)} characters", f"use at most {MAX_DIGITS} characters")
    exponent = match[3] or "0"
    value = Fraction(source) if len(exponent.lstrip("+-0")) <= 4 and abs(int(exponent)) <= 2 * MAX_DIGITS else None
    if value is None or (value != 0 and not Fraction(1, _LIMIT) <= value <= _LIMIT):
        raise refuse(f"the literal {clip(source)}", f"keep numbers between 1e-{MAX_MAGNITUDE} and 1e{MAX_MAGNITUDE}")
    return value
