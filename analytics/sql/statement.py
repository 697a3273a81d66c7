"""Check SQL statements before Spark sees them: one query over the views, of known parts only. Pure.

A statement is parsed by sqlglot, and every part of the tree must be in a list of what is allowed: kinds of nodes, names
of tables and columns, functions, types. What Spark runs is written anew from the checked tree, never the text that a
user sent: what one parser could overlook in a text (comments, hints, a second statement) does not reach Spark. The new
text is then checked once more, and runs as a subquery, where Spark's own grammar allows nothing but a query.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from analytics.sql.functions import FUNCTIONS
from analytics.sql.views import VIEWS
from brokerapp.errors import RequestRefused

#: Characters of a statement, parts of its tree, and brackets within brackets: enough for any report, and little enough
#: that parsing takes milliseconds and no recursion becomes too deep.
MAX_LENGTH, MAX_NODES, MAX_DEPTH = 20_000, 2_000, 40
#: Characters of a name that a statement gives to a column or a table.
MAX_NAME = 64
#: Wildcards % of a LIKE pattern: each more multiplies the time that a text can take by its length.
MAX_WILDCARDS = 3
DIALECT = "spark"

_NAME = re.compile(r"[^\W\d][\w .%/()-]*")
#: Names that Spark takes for functions without brackets, or for hidden columns of files.
RESERVED = frozenset(
    {"user", "current_user", "session_user", "current_date", "current_timestamp", "current_time", "localtimestamp",
     "current_catalog", "current_database", "current_schema", "_metadata", "grouping__id"}
)  # fmt: skip
#: Parts of a statement beside functions, which FUNCTIONS lists.
_STRUCTURE = frozenset(
    {exp.Select, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Qualify,
     exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Union, exp.Intersect, exp.Except, exp.Distinct, exp.Alias,
     exp.Table, exp.TableAlias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren,
     exp.Tuple, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is,
     exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod,
     exp.Neg, exp.DPipe, exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval,
     exp.IntervalSpan, exp.Var, exp.Window, exp.WindowSpec, exp.Filter, exp.Bracket, exp.Cube, exp.Rollup,
     exp.GroupingSets}
)  # fmt: skip
#: Parts of a table in FROM: joins and the sampling of rows, for example, are nodes of their own.
_TABLE_PARTS = frozenset({"this", "alias", "joins"})
_TYPES = frozenset(
    {exp.DataType.Type[name] for name in
     ("TEXT", "VARCHAR", "INT", "BIGINT", "SMALLINT", "TINYINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN", "DATE",
      "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ")}
)  # fmt: skip
#: Words before an opening bracket that are no functions.
_KEYWORDS = frozenset(
    {"AS", "IN", "OVER", "FROM", "JOIN", "FILTER", "EXISTS", "AND", "OR", "NOT", "WHERE", "ON", "USING", "SELECT",
     "THEN", "ELSE", "WHEN", "CASE", "BETWEEN", "LIKE", "ILIKE", "BY", "HAVING", "UNION", "ALL", "DISTINCT",
     "INTERSECT", "EXCEPT", "SETS", "CUBE", "ROLLUP", "LIMIT", "QUALIFY", "VARCHAR", "DECIMAL", "INTERVAL", "IS"}
)  # fmt: skip
_QUERY = "One SELECT statement is allowed, which may begin with WITH."

# It would log what it does not understand; the caller gets an error.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class StatementRefused(RequestRefused):
    """A statement that may not run; `line` and `column` count from 1, or are 0 if unknown."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"Line {line}, column {column}: {reason}" if line else reason)
        self.line, self.column = line, column


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement that may run: its tree, and the views that it reads."""

    tree: exp.Query
    views: tuple[str, ...]

    def text(self, names: Mapping[str, str]) -> str:
        """Return the statement in Spark's SQL, with the views under these names. Raises StatementRefused."""
        tree = self.tree.copy()
        for table in list(tree.find_all(exp.Table)):
            view = table.name.lower()
            if view in VIEWS:
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(view)))
                table.set("this", exp.to_identifier(names[view]))
        text = tree.sql(DIALECT, comments=False)
        _check_calls(text)
        return text


def check(text: str) -> CheckedStatement:
    """Return the statement of this text. Raises StatementRefused, which says where and why."""
    tokens = _tokens(text)
    for word, token in _calls(text):
        if word.lower() not in FUNCTIONS and word not in _allowed_calls():
            raise StatementRefused(_unknown_function(token.text), *_place(token))
    tree = _parse(text)
    nodes = list(tree.walk())
    if len(nodes) > MAX_NODES:
        raise StatementRefused(f"The statement is too long: it has {len(nodes):,} parts, {MAX_NODES:,} are allowed.")
    where = _Positions(tokens)
    tables = _check_tables(tree, where)  # first: its errors say most
    for node in nodes:
        _check_node(node, where)
    _check_columns(tree, where)
    statement = CheckedStatement(tree, tables)
    statement.text({name: name for name in VIEWS})
    return statement


class _Positions:
    """Finds where a statement has a node, or else a word."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = list(tokens)

    def refuse(self, reason: str, node: exp.Expr | None = None, word: str = "") -> StatementRefused:
        """Return the error at a node, or at the first occurrence of a word."""
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta] if node is not None else []
        found = next((token for token in self._tokens if starts and token.start == min(starts)), None)
        if found is not None:
            return StatementRefused(reason, *_place(found))
        found = next((token for token in self._tokens if token.text.lower() == word.lower()), None) if word else None
        return StatementRefused(reason, *(_place(found) if found else ()))


def _place(token: Token) -> tuple[int, int]:
    """Return line and column of the first character of a token; the tokenizer counts to its last one."""
    return token.line, max(1, token.col - (token.end - token.start))


def _tokens(text: str) -> list[Token]:
    if not text.strip():
        raise StatementRefused("Enter a statement, such as SELECT destination, count(*) FROM messages GROUP BY ALL.")
    if len(text) > MAX_LENGTH:
        raise StatementRefused(f"The statement has {len(text):,} characters; {MAX_LENGTH:,} are allowed.")
    try:
        tokens = sqlglot.tokenize(text, read=DIALECT)
    except TokenError:
        raise StatementRefused("A quoted text, a quoted name or a comment has no end.") from None
    if tokens and tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise StatementRefused(f"Unexpected {tokens[0].text[:MAX_NAME]!r}. {_QUERY}", *_place(tokens[0]))
    _check_texts(text, tokens)
    depth = 0
    for token in tokens:
        if token.token_type == TokenType.PIPE_GT:
            raise StatementRefused(f"Pipes (|>) are not available. {_QUERY}", *_place(token))
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
        if depth > MAX_DEPTH:
            raise StatementRefused(f"More than {MAX_DEPTH} brackets are open.", *_place(token))
    return tokens


def _check_texts(text: str, tokens: list[Token]) -> None:
    """Refuse quoted texts that Spark's parser and this one could read differently."""
    previous = None
    for token in tokens:
        if token.token_type == TokenType.STRING:
            if "\\" in text[token.start : token.end + 1] or any(ord(each) < 32 for each in token.text):
                raise StatementRefused("A text cannot contain backslashes or line breaks.", *_place(token))
            if previous == TokenType.STRING:
                raise StatementRefused('Write a quote within a text in double quotes: "it\'s".', *_place(token))
        previous = token.token_type


def _parse(text: str) -> exp.Query:
    try:
        trees = [each for each in sqlglot.parse(text, read=DIALECT) if each is not None]
    except ParseError as error:
        first = (error.errors or [{}])[0]
        near = str(first.get("highlight") or "")
        line, column = int(first.get("line") or 0), int(first.get("col") or 0)
        raise StatementRefused(_syntax_error(str(first.get("description")), near), line,
                               max(1, column - len(near) + 1)) from None  # fmt: skip
    except RecursionError:
        raise StatementRefused("The statement is nested too deeply.") from None
    if len(trees) > 1:
        raise StatementRefused(f"There are {len(trees)} statements. {_QUERY}")
    if not trees or not isinstance(trees[0], exp.Select | exp.SetOperation | exp.Subquery):
        raise StatementRefused(_QUERY)
    return trees[0]


def _syntax_error(description: str, near: str) -> str:
    """Return a syntax error in plain words; the parser's own name its classes."""
    at = repr(near[:MAX_NAME])
    if description.startswith("Required keyword"):
        return f"Something is missing at {at}."
    if found := re.match(r"Expect(?:ing|ed) (.{1,20})$", description):
        return f"{found[1]} is missing at {at}."
    return f"Unexpected {at}." if near else "This is not SQL."


@cache
def _allowed_nodes() -> frozenset[type[exp.Expr]]:
    """Return the kinds of nodes that statements may have: the structure, and what examples of functions consist of."""
    found = {type(node) for each in FUNCTIONS.values() for node in _example(each.example).walk()}
    return frozenset(found | _STRUCTURE) - {exp.Anonymous}


@cache
def _allowed_calls() -> frozenset[str]:
    """Return the words that may stand before an opening bracket in the text for Spark."""
    texts = (_example(each.example).sql(DIALECT) for each in FUNCTIONS.values())
    return frozenset({word for text in texts for word, _ in _calls(text)} | _KEYWORDS)


def _example(text: str) -> exp.Expr:
    return sqlglot.parse_one(f"SELECT {text}", read=DIALECT)


def _calls(text: str) -> Iterable[tuple[str, Token]]:
    tokens = sqlglot.tokenize(text, read=DIALECT)
    for token, following in pairwise(tokens):
        is_word = token.token_type == TokenType.IDENTIFIER or re.fullmatch(r"\w+", token.text)
        is_value = token.token_type in (TokenType.STRING, TokenType.NUMBER)
        if following.token_type == TokenType.L_PAREN and is_word and not is_value:
            yield token.text.upper(), token


def _check_calls(text: str) -> None:
    """Check the text for Spark once more, by its words and not by the tree."""
    for word, token in _calls(text):
        # After AS, a WITH or an alias names what has columns in brackets.
        if token.token_type == TokenType.IDENTIFIER or word not in _allowed_calls():
            raise StatementRefused(f"{token.text[:MAX_NAME]!r} cannot be used here.")


def _check_node(node: exp.Expr, where: _Positions) -> None:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.Func) and not _is_known(node):
        raise where.refuse(_unknown_function(_called(node)), word=_called(node))
    if type(node) not in _allowed_nodes() and not isinstance(node, exp.Anonymous):
        raise where.refuse(_refusal(node), node, node.key)
    if isinstance(node, exp.Identifier):
        _check_name(node, where)
    elif isinstance(node, exp.Like | exp.ILike):
        _check_pattern(node, where)
    elif reason := next((reason for kind, is_wrong, reason in _RULES if isinstance(node, kind) and is_wrong(node)), ""):
        raise where.refuse(reason, node)


#: What nodes of these kinds must not be, although their kind is allowed.
_RULES: tuple[tuple[type[exp.Expr], Callable[[Any], Any], str], ...] = (
    (exp.With, lambda node: node.args.get("recursive"), "WITH RECURSIVE is not available."),
    (exp.TableAlias, lambda node: node.args.get("columns"), "Name columns with AS in SELECT."),
    (exp.Select, lambda node: any(map(node.args.get, ("kind", "into", "hint"))), "Only a plain SELECT is allowed."),
    (exp.Join, lambda node: node.args.get("method") not in (None, "", "NATURAL"), "This join is not available."),
    (exp.DataType, lambda node: node.this not in _TYPES and not isinstance(node.parent, exp.Interval),
     "This type is not available."),
)  # fmt: skip


def _is_known(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return isinstance(node.this, str) and node.name.lower() in FUNCTIONS
    return type(node) in _allowed_nodes()


def _called(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name
    return str(node.meta.get("name") or node.sql_name())  # type: ignore[attr-defined]


def _unknown_function(name: str) -> str:
    near = get_close_matches(name.lower(), FUNCTIONS, 1)
    return f"The function {name[:MAX_NAME]} is not available.{f' Did you mean {near[0]}?' if near else ''}"


def _refusal(node: exp.Expr) -> str:
    said = {
        exp.Hint: "Hints are not available.",
        exp.Placeholder: "Parameters are not available.",
        exp.Parameter: "Variables are not available.",
        exp.QueryTransform: "TRANSFORM is not available.",
        exp.Values: "VALUES is not available.",
        exp.Lateral: "LATERAL VIEW is not available. Use explode(...) in SELECT.",
        exp.TableSample: "TABLESAMPLE is not available.",
    }
    return said.get(type(node), f"{node.key.upper()} is not available. {_QUERY}")


def _check_name(node: exp.Identifier, where: _Positions) -> None:
    name = node.name
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise where.refuse(
            f"{name[:MAX_NAME]!r} is not a name: begin with a letter or _, and use at most {MAX_NAME} letters, digits,"
            " blanks and . % / ( ) - _.",
            node,
        )
    if name.lower() in RESERVED:
        raise where.refuse(f"{name} is a name of Spark itself and not available.", node)


def _check_pattern(node: exp.Like | exp.ILike, where: _Positions) -> None:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or isinstance(node.parent, exp.Escape):
        raise where.refuse("The pattern of LIKE must be a text in quotes, without ESCAPE.", node)
    if pattern.name.count("%") > MAX_WILDCARDS:
        raise where.refuse(f"The pattern of LIKE may have at most {MAX_WILDCARDS} signs %.", node)


def _check_tables(tree: exp.Query, where: _Positions) -> tuple[str, ...]:
    """Return the views that the statement reads. Raises StatementRefused for any other table."""
    named = {}
    for cte in tree.find_all(exp.CTE):
        name = cte.alias.lower()
        if name in VIEWS:
            raise where.refuse(f"{cte.alias} is a view: choose another name after WITH.", cte.args.get("alias"))
        named[name] = cte
    found = []
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if {key for key, value in table.args.items() if value} - _TABLE_PARTS:
            raise where.refuse(f"{table.sql(DIALECT)[:MAX_NAME]} is not available: FROM takes views only.", table)
        if not isinstance(table.this, exp.Identifier) or name not in {*VIEWS, *named}:
            known = ", ".join(VIEWS)
            raise where.refuse(f"Unknown view {table.name[:MAX_NAME]!r}. The views are {known}.", table)
        if name in VIEWS:
            found.append(name)
    return tuple(dict.fromkeys(found))


def _check_columns(tree: exp.Query, where: _Positions) -> None:
    """Refuse names that neither a view has nor the statement gives: typing errors, and what only Spark itself knows."""
    given = {column.name for view in VIEWS.values() for column in view.columns}
    for node in tree.find_all(exp.Alias, exp.TableAlias):
        given.add(node.alias.lower() if isinstance(node, exp.Alias) else node.name.lower())
    tables = {*VIEWS, *(each.alias_or_name.lower() for each in tree.find_all(exp.Table, exp.Subquery, exp.CTE))}
    for column in tree.find_all(exp.Column):
        if any(column.args.get(part) for part in ("db", "catalog")):
            raise where.refuse("Names have at most two parts, such as messages.size.", column)
        if column.table and column.table.lower() not in tables:
            raise where.refuse(f"Unknown table {column.table!r}.", column.args["table"])
        if isinstance(column.this, exp.Identifier) and column.name.lower() not in given:
            near = get_close_matches(column.name.lower(), given, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise where.refuse(f"Unknown column {column.name!r}.{hint}", column.this)
