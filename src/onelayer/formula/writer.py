"""Canonical text, written lexeme by lexeme: what is not written is added, what has two readings becomes a fault."""

from dataclasses import replace
from itertools import pairwise

from .screen import Fault, add_fault, clip
from .vocabulary import CONSTANTS, FIRST, INSTEAD, LETTERS, ORDERED, PAGE, RESERVED, SYNONYMS
from .words import INDEXED, Lexeme, function_like, in_order, number_inside, strange_letter, taken_apart

_READINGS = {"/": "divisor", "**": "exponent"}
_USE = f"see {PAGE} for the functions that there are"


class CanonicalWriter:
    """Writes lexeme after lexeme, and knows what stands before: an operand or not, and after which operator."""

    def __init__(
        self, lexemes: list[Lexeme], names: tuple[str, ...] | None, faults: list[Fault], own: frozenset[str]
    ) -> None:
        self.lexemes, self.names, self.faults, self.own = lexemes, names, faults, own
        self.known = frozenset(names or ())
        self.pieces: list[str] = []
        self.last: Lexeme | None = None  # that ended an operand; None where one may begin
        self.lead = ""  # the operator before the present factor
        self.base_lead = ""  # after **: the operator before the base
        self.open: list[tuple[str, str, str]] = []  # brackets: "(" or "|", the operator before, what closes it
        self.free: dict[str, list[int]] = {}  # variables without a declaration → their places among the pieces
        called = {id(lexeme) for lexeme, after in pairwise(lexemes) if after.text == "("}
        self.alone = {lexeme.text for lexeme in lexemes if lexeme.kind == "word" and id(lexeme) not in called}
        single = frozenset(FIRST) | {word for word in self.alone if len(word) == 1}
        self.factors = CONSTANTS | (single if names is None else self.known)  # what a longer word may be made of

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    def fault(self, found: str, change: str, repair: bool = True, instead: str = "") -> None:
        add_fault(self.faults, found, change, repair, instead)

    def write(self) -> None:
        i = 0
        while i < len(self.lexemes):
            i = self.step(i)
        if any(bracket == "|" for bracket, _, _ in self.open):
            self.fault("a | without a partner", "write abs(…)", repair=False)

    def step(self, i: int) -> int:
        """Write the lexeme at i; the place of the next one."""
        lexeme = self.lexemes[i]
        if lexeme.kind == "word":
            return self.word(i)
        if lexeme.kind == "number":
            self.join(lexeme)
            self.put(lexeme)
            self.last = lexeme
        elif lexeme.kind == "power":
            self.power(lexeme)
        elif lexeme.text in "(|)":
            self.bracket(lexeme)
        else:
            self.operator(lexeme)
        return i + 1

    def put(self, lexeme: Lexeme, text: str | None = None) -> None:
        """The lexeme in canonical words, with the blanks that were before it unless a product was written there."""
        joined = self.pieces and self.pieces[-1] == "*" and self.last is not None
        self.pieces.append(("" if joined else lexeme.gap) + (lexeme.text if text is None else text))

    def join(self, lexeme: Lexeme) -> None:
        """Write the product that is not written, before an operand right after another one."""
        last = self.last
        if last is None:
            return
        pair = f"{last.typed}{lexeme.gap}{lexeme.typed}"
        if self.lead in _READINGS:
            whole = f"with the whole {_READINGS[self.lead]} in brackets"
            found = f"{clip(pair)} after {self.lead.replace('**', '^')}, which has two readings"
            self.fault(found, "write * and brackets", instead=whole)
            self.lead = "*"
        elif last.kind == "number" and lexeme.kind == "number":
            self.fault(f"no operator between {last.typed} and {lexeme.typed}", "write one", repair=False)
        elif lexeme.kind == "number" or last.text == "|" or (last.kind == "word" and last.text != "π"):
            self.fault(f"no operator in {clip(pair)}", "write one")
        self.pieces.append("*")

    def operator(self, lexeme: Lexeme) -> None:
        if lexeme.text == "**" and self.last is not None and self.last.kind == "power":
            self.fault(f"{clip(self.last.typed + lexeme.typed)}, a power of a power", "use brackets", repair=False)
        if lexeme.text == "**" and self.lead != "**":
            self.base_lead = self.lead
        unary = lexeme.text in "+-" and self.last is None
        self.lead = self.lead if unary else lexeme.text if lexeme.text in ("+", "-", "*", "/", "**") else ""
        self.last = None
        self.put(lexeme)

    def power(self, lexeme: Lexeme) -> None:
        if self.last is None or self.last.kind == "power":
            self.fault(f"{lexeme.typed} without a base", "write what is raised to it", repair=False)
        self.put(lexeme)
        self.last = lexeme

    def bracket(self, lexeme: Lexeme) -> None:
        if lexeme.text == "(":
            self.join(lexeme)
            self.lead = self.base_lead if self.lead == "**" else self.lead  # an exponent in brackets ends with them
            self.enter(lexeme, "(", ")")
        elif lexeme.text == "|" and not (self.last and self.open and self.open[-1][0] == "|"):
            self.join(lexeme)
            self.enter(lexeme, "abs(", ")")
        elif self.open and (self.open[-1][0] == "|") == (lexeme.text == "|"):
            _, self.lead, closing = self.open.pop()
            self.put(lexeme, closing)
            self.last = lexeme
        else:
            self.put(lexeme)
            self.last = lexeme
            if self.open:
                self.fault("| and ) that cross", "write abs(…)", repair=False)

    def enter(self, lexeme: Lexeme, text: str, closing: str) -> None:
        self.put(lexeme, text)
        self.open.append((lexeme.text, self.lead, closing))
        self.lead, self.last = "", None

    def word(self, i: int) -> int:
        lexeme = self.lexemes[i]
        after = self.lexemes[i + 1] if i + 1 < len(self.lexemes) else None
        calls = after is not None and after.text == "("
        if lexeme.text in ("and", "or", "not"):
            self.operator(lexeme)
            return i + 1
        self.join(lexeme)
        word = lexeme.text if lexeme.text in self.known else SYNONYMS.get(lexeme.text, lexeme.text)
        letter = calls and word in LETTERS | ORDERED.keys() and not (self.names is None and word in self.alone)
        if word not in self.known and (word in RESERVED or letter or (calls and word in self.own)):
            return self.ordered(i, word) if word in ORDERED else self.function(i, word)
        if calls and not self.is_variable(word):
            return self.strange_function(i)
        self.variable(lexeme, word)
        self.last = lexeme
        return i + 1

    def function(self, i: int, word: str) -> int:
        """A function and the bracket after it; brackets that are missing or come after a power are faults."""
        lexeme, rest = self.lexemes[i], self.lexemes[i + 1 : i + 5]
        texts = [other.text for other in rest]
        if texts[:2] == ["**", "-"] and texts[3:] == ["("] and rest[2].kind == "number":  # sin^-1(x) is sin⁻¹(x)
            inverse = Lexeme("power", f"**-{texts[2]}", "", f"^-{texts[2]}")
            self.lexemes[i + 1 : i + 4] = [inverse]
            return self.function(i, word)
        if texts[:1] == ["("]:
            self.put(lexeme, word)
            self.enter(rest[0], "(", ")")
            return i + 2
        exponent = 1 if rest and rest[0].kind == "power" else 2 if len(rest) > 1 and texts[0] == "**" else 0
        if exponent and texts[exponent : exponent + 1] == ["("] and rest[exponent - 1].kind in ("power", "number"):
            power = "**" + rest[exponent - 1].text.removeprefix("**")
            change = f"write {word}(…){power}" if "-" not in power else f"write 1/{word}(…), or a{word}(…)"
            self.fault(f"a power between {word} and its argument", change, "-" not in power)
            self.put(lexeme, word)
            self.enter(rest[exponent], "(", ")" + power)
            return i + exponent + 2
        simple = rest and (rest[0].kind == "number" or texts[0] in self.alone - RESERVED - set(SYNONYMS))
        if simple and (len(rest) < 2 or texts[1] in (")", ",", ";", "+", "-", "*", "/", "<", ">", "<=", ">=", "and")):
            self.fault(f"{clip(lexeme.typed)} without brackets", f"write {word}(…)")
            self.put(lexeme, word)
            self.lexemes[i + 1] = replace(rest[0], gap="")
            self.enter(Lexeme("sign", "(", "", "("), "(", ")")
            self.step(i + 1)
            self.bracket(Lexeme("sign", ")", "", ")"))
            return i + 2
        missing = "brackets" if rest and (rest[0].kind in ("word", "number") or texts[0] == "|") else "arguments"
        self.fault(f"{word!r} without {missing}", f"write {word}(…)", repair=False)
        self.put(lexeme, word)
        return i + 1

    def ordered(self, i: int, word: str) -> int:
        """j(2, …) as j2(…): the order is a whole number."""
        name, most, _ = ORDERED[word]
        comma, depth = i + 2, 0
        while comma < len(self.lexemes) and (depth or self.lexemes[comma].text not in (",", ")", ";")):
            depth += (self.lexemes[comma].text == "(") - (self.lexemes[comma].text == ")")
            comma += 1
        found = comma < len(self.lexemes) and self.lexemes[comma].text == ","
        order = "".join(lexeme.typed for lexeme in self.lexemes[i + 2 : comma]) if found else ""
        if not (order.isdecimal() and int(order) <= most):
            said = f"the order {clip(order)} of {word}" if order else f"{word!r} without its order"
            self.fault(said, f"write {word}(2, …), of a whole order from 0 to {most}", repair=False)
            order = "2"
        self.put(self.lexemes[i], "digamma" if word == "polygamma" and not int(order) else f"{name}{int(order)}")
        self.enter(self.lexemes[i + 1], "(", ")")
        if not found:
            return i + 2
        if comma + 1 < len(self.lexemes):
            self.lexemes[comma + 1] = replace(self.lexemes[comma + 1], gap="")
        return comma + 1

    def is_variable(self, word: str) -> bool:
        if word in self.known or word in CONSTANTS:
            return True
        return self.names is None and (word in FIRST or word in self.alone or bool(INDEXED.fullmatch(word)))

    def strange_function(self, i: int) -> int:
        lexeme = self.lexemes[i]
        known = INSTEAD.get(lexeme.text.lower())
        if known is not None:
            return self.known_function(i, known)
        apart = taken_apart(lexeme.text, self.factors, calls=True)
        meant = apart or function_like(lexeme.text)
        change = f"did you mean {meant}?" if meant else _USE
        likely = meant is not None and (
            apart or (abs(len(meant) - len(lexeme.text)) < 2 and meant[0] == lexeme.text[0].lower())
        )
        self.fault(f"the unknown function {clip(lexeme.text)}", change, repair=bool(likely))
        self.put(lexeme, meant or lexeme.text)
        self.enter(self.lexemes[i + 1], "(", ")")
        return i + 2

    def known_function(self, i: int, instead: str) -> int:
        """A function of mathematics that is not in the language, and what to write: repaired where its argument stands once."""
        lexeme, once = self.lexemes[i], instead.count("…") == 1
        change = f"write {instead}" if instead else _USE
        self.fault(f"the unknown function {clip(lexeme.text)}", change, repair=once)
        before, _, after = instead.partition("…") if once else ("(", "", ")")
        self.put(lexeme, "" if once else lexeme.text)
        self.enter(self.lexemes[i + 1], before, after)
        return i + 2

    def variable(self, lexeme: Lexeme, word: str) -> None:
        """A name: of a variable or a constant, or the answer that it is neither."""
        if word in self.known or word in CONSTANTS:
            self.put(lexeme, word)
            return
        apart = None
        if word not in self.free:
            apart = taken_apart(word, self.factors, calls=False) or number_inside(word, self.factors)
        if self.names is None and (word.lower() in CONSTANTS or word.lower() in RESERVED):
            apart = word.lower()
        if apart:
            self.fault(f"the name {clip(word)}", f"write {apart}", instead=f"with {word} named in the domain")
            self.put(lexeme, apart)
        elif self.names is None and word[0] == "x" and word[1:].isdecimal() and not INDEXED.fullmatch(word):
            self.fault(f"the variable {clip(word)}", "count variables from x1", repair=False)
        elif self.names is None and (strange := strange_letter(word)):
            change = f"name it in the domain, or use other letters than {strange}"
            self.fault(f"the name {clip(word)}", change, repair=False)
        else:
            self.put(lexeme, word)
            self.free.setdefault(word, []).append(len(self.pieces) - 1)

    def variables(self) -> tuple[str, ...] | None:
        """The free names in order; None for x1, x2, …. A mixture of both is a fault."""
        indexed = {name for name in self.free if INDEXED.fullmatch(name)}
        named = in_order(set(self.free) - indexed)
        if not (named and indexed):
            return named or None
        spare = (f"x{i}" for i in range(1, len(self.free) + len(indexed) + 1) if f"x{i}" not in indexed)
        for name, new in zip(named, spare, strict=False):
            self.fault(f"{clip(name)} beside {min(indexed)} (did you mean {new}?)", f"write {new}")
            for place in self.free[name]:
                self.pieces[place] = self.pieces[place].replace(name, new)
        return None
