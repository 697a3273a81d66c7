"""Runs a checked SQL statement over the views of recorded traffic."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from analytics.model.wording import join_names, pluralize
from analytics.requests.errors import AnalysisFailed
from analytics.requests.question import RunQuestion
from analytics.results.query_charts import ChartChoice, draw
from analytics.results.storage import JobResult, ResultColumn, ResultTable
from analytics.sql.statement import CheckedStatement, check
from analytics.sql.views import SCHEMA_VERSION
from analytics.transforms.sql.views import view_frames
from brokerapp.errors import RequestRefused

STEPS = 1
#: Rows of a result: what a spreadsheet takes, and pages sort in a fraction of a second.
MAX_ROWS = 100_000
#: Bytes of a result in memory: the worker holds it two or three times.
MAX_BYTES = 64 * 1024 * 1024
#: Days of a time range.
MAX_DAYS = 31
#: Columns of a result: a page shows them side by side.
MAX_COLUMNS = 100

#: Spark would read `parquet.`/path`` as a table; no statement with such a name passes the check, either.
_SQL_ON_FILES = "spark.sql.runSQLOnFiles"
#: The class of SQLSTATE for values with which a statement cannot be computed: 1 / 0, a text that is no number.
_DATA_EXCEPTION = "22"
#: Spark's advice to change its settings, which no statement can.
_SETTINGS_ADVICE = re.compile(r"\s*If necessary set .*$")
#: Operators of analysed plans that queries over views consist of. Others, above all ScriptTransformation, never run.
PLAN_OPERATORS = frozenset(
    {"Aggregate", "CTE", "CTERelationDef", "CTERelationRef", "Deduplicate", "Distinct", "Except", "Expand", "Filter",
     "Generate", "GlobalLimit", "Intersect", "Join", "LocalLimit", "LocalRelation", "LogicalRDD", "Offset",
     "OneRowRelation", "Project", "Relation", "Repartition", "Sort", "SubqueryAlias", "Union", "View", "Window",
     "WithCTE"}
)  # fmt: skip
#: Functions that run code or tell of the host, as a plan names them; FUNCTIONS has none of them.
_FORBIDDEN_CALLS = re.compile(r"\b(reflect|try_reflect|java_method|input_file_\w+|current_\w+|session_user)\(")
_ANALYSED, _OPTIMISED = "== Analyzed Logical Plan ==", "== Optimized Logical Plan =="
_OPERATOR = re.compile(r"[\s:|+\-]*'?!?(\w*)")
_SUBQUERY = re.compile(r"[\s:|+\-]*(?:scalar-subquery|exists|list|lateral-subquery)#\d+")
#: What columns of a result are about, by name: pages link them.
_ABOUT = {"destination": "destination", "sent_to": "destination", "message_id": "message", "consumer": "client",
          "producer": "client", "client": "client"}  # fmt: skip

CollectWithin = Callable[..., pa.Table]


def run(question: RunQuestion, collect: CollectWithin) -> JobResult:
    """Run the statement of the request with the access that it carries."""
    if question.access is None:
        raise AnalysisFailed("The request does not say what its user may see.")
    if question.window.seconds > MAX_DAYS * 86_400:
        raise AnalysisFailed(f"The time range is longer than {MAX_DAYS} days. Choose a shorter one.")
    statement = check(question.parameters["statement"])
    events = question.events
    session = events.sparkSession
    names = {view: f"sluice_{secrets.token_hex(8)}_{view}" for view in statement.views}
    for view, frame in view_frames(events, question.access, statement.views).items():
        frame.createOrReplaceTempView(names[view])
    before = session.conf.get(_SQL_ON_FILES)
    session.conf.set(_SQL_ON_FILES, "false")
    try:
        frame = _plain(_frame(session, statement, names))
        found = collect("rows of the result", frame, max_bytes=MAX_BYTES)
    except PySparkException as error:
        if (error.getSqlState() or "").startswith(_DATA_EXCEPTION):
            raise AnalysisFailed(_in_words(error, names)) from None
        raise
    finally:
        session.conf.set(_SQL_ON_FILES, before)
        for name in names.values():
            session.catalog.dropTempView(name)
    return _result(question, statement, found)


def _frame(session: Any, statement: CheckedStatement, names: Mapping[str, str]) -> DataFrame:
    """Return the frame of a statement, after Spark's own analysis of it was checked, too."""
    text = statement.text(names)
    try:
        # In brackets Spark's grammar allows a query only.
        frame = session.sql(f"SELECT * FROM (\n{text}\n) AS result LIMIT {MAX_ROWS + 1}")
        columns = frame.columns
    except AnalysisException as error:
        raise AnalysisFailed(_in_words(error, names)) from None
    if repeated := sorted({each for each in columns if columns.count(each) > 1}):
        raise AnalysisFailed(f"Several columns are called {repeated[0]}: give them names with AS.")
    if len(columns) > MAX_COLUMNS:
        raise AnalysisFailed(f"The result has {len(columns)} columns; {MAX_COLUMNS} are allowed.")
    if unknown := unknown_operators(_analysed_plan(frame)):
        raise AnalysisFailed(f"Spark would run {unknown[0]} for this statement, which is not allowed.")
    return frame


def _analysed_plan(frame: DataFrame) -> str:
    """Return Spark's plans of a frame as text: of a session of Connect, or of one in this process."""
    if hasattr(frame, "_explain_string"):
        return frame._explain_string(extended=True)
    return frame._jdf.queryExecution().toString()  # type: ignore[operator]


def unknown_operators(plan: str) -> list[str]:
    """Return the operators of the analysed plan in this text that PLAN_OPERATORS does not name. Pure."""
    if plan.count(_ANALYSED) != 1 or plan.count(_OPTIMISED) != 1:  # a text in the statement pretends to be a plan
        return ["more than one plan"]
    lines = plan.partition(_ANALYSED)[2].partition(_OPTIMISED)[0].strip().splitlines()[1:]
    if call := _FORBIDDEN_CALLS.search("\n".join(lines)):
        return [call[1]]
    found = [_OPERATOR.match(line)[1] for line in lines if not _SUBQUERY.match(line)]  # type: ignore[index]
    return [each for each in found if each not in PLAN_OPERATORS]


def _in_words(error: PySparkException, names: Mapping[str, str]) -> str:
    """Return Spark's error about a statement without codes, and names and places that only its own text has."""
    message = (error.getMessage() or str(error)).partition("SQLSTATE")[0].strip()
    message = re.sub(r"^\[[A-Z_.\d]+\]\s*", "", message).partition("\n")[0].partition(";")[0]
    message = _SETTINGS_ADVICE.sub("", message)
    for view, name in names.items():
        message = message.replace(name, view)
    return message.rstrip(". ") + "."


def _plain(frame: DataFrame) -> DataFrame:
    """Convert columns to types that pages and files have: texts, numbers, times."""
    return frame.select(*(_plain_column(each.name, each.dataType) for each in frame.schema.fields))


def _plain_column(name: str, type: DataType) -> Any:
    column = F.col(f"`{name.replace('`', '``')}`")
    if isinstance(type, MapType | ArrayType | StructType):
        return F.to_json(column).alias(name)
    if isinstance(type, DecimalType):
        return column.cast("double").alias(name)
    if isinstance(type, BinaryType):
        return F.hex(column).alias(name)
    is_plain = isinstance(type, NumericType | StringType) or type.typeName() in ("date", "timestamp", "timestamp_ntz")
    return column if is_plain else column.cast("string").alias(name)


def _result(question: RunQuestion, statement: CheckedStatement, found: pa.Table) -> JobResult:
    notes, figures = [], ()
    is_cut = found.num_rows > MAX_ROWS
    rows = found.slice(0, MAX_ROWS)
    if is_cut:
        notes.append(f"The result has more than {MAX_ROWS:,} rows. The first {MAX_ROWS:,} are kept.")
    choice = ChartChoice.from_parameters(question.parameters)
    if choice is not None and rows.num_rows:
        try:
            figures = ((choice.title, draw(choice, rows)),)
        except RequestRefused as error:
            notes.append(f"The chart was not drawn: {error}.")
    if question.access is not None and not question.access.is_unrestricted:
        notes.append(_restriction(question))
    columns = tuple(_column(each) for each in rows.schema)
    sentence = f"{pluralize(rows.num_rows, 'row')} of {pluralize(len(columns), 'column')}"
    read = f", from {join_names(statement.views, len(statement.views))}" if statement.views else ""
    return JobResult(
        f"{sentence}{read}.",
        question.rows,
        figures,
        (ResultTable("result", "Result", columns, rows),),
        notes=tuple(notes),
        about={"schema": SCHEMA_VERSION, "statement": question.parameters["statement"], "views": list(statement.views)},
    )


def _restriction(question: RunQuestion) -> str:
    access = question.access
    assert access is not None
    said = []
    if access.destinations:
        said.append("destinations that the user cannot view are left out")
    if access.properties is None:
        said.append("properties are hidden without permission to browse messages")
    elif access.properties:
        said.append("properties are shown only where the user may browse messages")
    if access.masks or access.masks_reasons:
        said.append("masking rules apply to properties")
    return f"{'; '.join(said)}.".capitalize()


def _column(field: pa.Field) -> ResultColumn:
    if pa.types.is_timestamp(field.type):
        return ResultColumn(field.name, field.name, "time")
    if pa.types.is_integer(field.type):
        return ResultColumn(field.name, field.name, "count")
    if pa.types.is_floating(field.type):
        return ResultColumn(field.name, field.name, "number")
    return ResultColumn(field.name, field.name, "", _ABOUT.get(field.name, ""))
