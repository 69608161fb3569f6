"""Python's reading of one expression, as data; all its complaints become InputError.

`ast.parse` builds syntax nodes and executes nothing. Its recursion and memory errors on long text are caught here; the
nesting of brackets is bounded before (`screen`).
"""

import ast
import warnings

from .screen import clip, refuse

_FOREIGN = {  # syntax that has an everyday name
    ast.Attribute: "attribute access",
    ast.Subscript: "a subscript",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "an f-string",
    ast.IfExp: "an if-expression (write where(condition, a, b))",
    ast.Tuple: "a list of values (separate outputs with ;)",
    ast.ListComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
}


def python_syntax(source: str) -> ast.expr:
    """The syntax tree of one expression."""
    if not source:
        raise refuse("an empty output beside ;", "write a formula on both sides of ; or leave it out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except (RecursionError, MemoryError):
        raise refuse(
            f"too many operations in a row in {clip(source)}", "bracket long sums in groups, or shorten"
        ) from None
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise refuse(f"{clip(source)}, not an expression: {clip(reason)}") from None


def piece(source: str, syntax: ast.AST) -> str:
    """The part of the source that a syntax node covers, in one quoted line."""
    return clip(segment(source, syntax) or type(syntax).__name__)


def segment(source: str, syntax: ast.AST) -> str:
    """The part of a source of one line that a syntax node covers; `ast.get_source_segment` would split it every time."""
    start, end = getattr(syntax, "col_offset", 0), getattr(syntax, "end_col_offset", 0)  # in bytes
    return source.encode()[start:end].decode()


def foreign(syntax: ast.AST) -> str:
    """What to call syntax that is not part of the language."""
    return _FOREIGN.get(type(syntax), type(syntax).__name__)
