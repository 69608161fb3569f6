"""Python's reading of one expression, as data; all its complaints become InputError.

`ast.parse` builds syntax nodes and executes nothing. Its recursion and memory errors on long text are caught here; the
nesting of brackets is bounded before (`screen`).
"""

import ast
import keyword
import re
import warnings

from .screen import clip, refuse
from .vocabulary import ALLOWED

_USE = f"use {ALLOWED}"
_FOREIGN = {  # syntax that has an everyday name, and what to write instead
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
}
_SYMBOL = {ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@", ast.Invert: "~", ast.BitAnd: "&", ast.BitOr: "|"}


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


def piece(source: str, syntax: ast.AST) -> str:
    """The part of the source that a syntax node covers, in one quoted line."""
    return clip(segment(source, syntax) or type(syntax).__name__)


def segment(source: str, syntax: ast.AST) -> str:
    """The part of a source of one line that a syntax node covers; `ast.get_source_segment` would split it every time."""
    start, end = getattr(syntax, "col_offset", 0), getattr(syntax, "end_col_offset", 0)  # in bytes
    return source.encode()[start:end].decode()


def foreign(syntax: ast.AST) -> tuple[str, str]:
    """What to call syntax that is not part of the language, and what to do about it."""
    return _FOREIGN.get(type(syntax), (type(syntax).__name__, _USE))


def symbol(operator: ast.AST) -> str:
    """An operator that is not part of the language, as it is typed."""
    return _SYMBOL.get(type(operator), type(operator).__name__)
