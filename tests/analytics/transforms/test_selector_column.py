"""Test that Spark's column agrees with the broker's selector, on the table of cases and on random ones."""

from random import Random

import pyarrow as pa
import pytest

from analytics.whatif.answer_encoding import AnswerEncoding
from analytics.whatif.conditions import SelectorCondition
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.selector_prefixes import CONVERT
from brokerapp.selectors import Selector, compile_selector, parse_number
from brokerapp.selectors.render import render
from tests.brokerapp.selectors.cases import CASES
from tests.brokerapp.selectors.test_typed_selectors import CASES as TYPED_CASES
from tests.brokerapp.selectors.trees import random_condition, random_headers
from tests.brokerapp.selectors.typed_messages import jms_headers, random_jms_headers, random_types

pytestmark = pytest.mark.spark


def recorded(session, messages):
    """Messages as the archive has them: the text of every property, and the numbers among them."""
    numbers = [
        [(name, float(value)) for name, text in each.items() if (value := parse_number(text)) is not None]
        for each in messages
    ]
    table = pa.table(
        {
            "id": pa.array(range(len(messages))),
            "ps": pa.array([list(each.items()) for each in messages], pa.map_(pa.string(), pa.string())),
            "pn": pa.array(numbers, pa.map_(pa.string(), pa.float64())),
        }
    )
    return session.createDataFrame(table)


def values(frame, selectors, forms=()):
    """For each message, what each selector comes to."""
    from analytics.transforms.selector_column import to_column

    selectors = list(selectors)
    columns = [to_column(selector, forms=forms).alias(f"c{i}") for i, selector in enumerate(selectors)]
    rows = frame.select("id", *columns).toArrow().to_pylist()
    return [[row[f"c{i}"] for i in range(len(selectors))] for row in sorted(rows, key=lambda row: row["id"])]


FACTORY = "spark.sql.codegen.factoryMode"


@pytest.fixture
def factory(spark, request):
    """How Spark evaluates what it is asked: compiled to Java, or as it is."""
    spark.conf.set(FACTORY, request.param)
    yield request.param
    spark.conf.unset(FACTORY)


# Those of typed properties, of which there are fewer, are compiled in each run.
@pytest.mark.parametrize("factory", ["NO_CODEGEN", pytest.param("FALLBACK", marks=pytest.mark.long)], indirect=True)
def test_the_table_of_cases(spark, factory):
    selectors = sorted({text for text, _, _ in CASES})
    headers = [headers for _, headers, _ in CASES]
    frame = recorded(spark, headers).cache()
    found = {}
    for start in range(0, len(selectors), 40):
        part = selectors[start : start + 40]
        for message, row in enumerate(values(frame, [compile_selector(text) for text in part])):
            found |= {(text, message): value for text, value in zip(part, row, strict=True)}
    frame.unpersist()
    wrong = [
        (text, headers[message], value)
        for (text, message), value in found.items()
        if value is not compile_selector(text).evaluate(headers[message])
    ]
    assert wrong == []
    assert [found[text, message] for message, (text, _, _) in enumerate(CASES)] == [value for _, _, value in CASES]


def test_the_table_of_cases_of_typed_properties(spark):
    texts = [text for text, _, _ in TYPED_CASES]
    messages = [jms_headers({"p": value}) for _, value, _ in TYPED_CASES]
    forms = {each[JMS_HEADER] for each in messages}
    found = [row[i] for i, row in enumerate(values(recorded(spark, messages), map(compile_selector, texts), forms))]
    wrong = [(*case, value) for case, value in zip(TYPED_CASES, found, strict=True) if value is not case[2]]
    assert wrong == []


def test_what_asks_for_bodies_cannot_be_a_column(spark):
    from analytics.transforms.selector_column import NotRecorded, to_column

    with pytest.raises(NotRecorded, match="XPATH '//a' asks for bodies"):
        to_column(compile_selector("n = 1 OR NOT XPATH '//a'"))


#: Selectors of one job: deep ones, which Spark compiles to Java, and many simpler ones, which it reads as they are.
COMPILED, INTERPRETED = 60, 90
#: Types of properties that messages of JMS clients have in one job.
FORMS = 3


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(0, COMPILED, marks=pytest.mark.long),
        (1, INTERPRETED // 3),
        *(pytest.param(seed, INTERPRETED, marks=pytest.mark.long) for seed in range(1, 8)),
    ],
)
def test_random_selectors_on_random_messages(spark, seed, count):
    random = Random(seed)
    trees = [random_condition(random, 3 if count == COMPILED else 2) for _ in range(count)]
    selectors = [Selector(random.choice(["", CONVERT]), tree) for tree in trees]
    typed = [random_types(random) for _ in range(FORMS)]
    headers = [random_headers(random) for _ in range(100)]
    headers += [random_jms_headers(random, random.choice(typed)) for _ in range(60)]
    forms = {each[JMS_HEADER] for each in headers if JMS_HEADER in each}
    spark.conf.set(FACTORY, "FALLBACK" if count == COMPILED else "NO_CODEGEN")
    try:
        found = values(recorded(spark, headers), selectors, forms)
    finally:
        spark.conf.unset(FACTORY)
    expected = [[selector.evaluate(each) for selector in selectors] for each in headers]
    wrong = [
        (selectors[j].text + render(tree), headers[i], found[i][j], expected[i][j])
        for i in range(len(headers))
        for j, tree in enumerate(trees)
        if found[i][j] is not expected[i][j]
    ]
    assert wrong == []
    assert {value for row in expected for value in row} == {True, False, None}


def test_300_alternatives_are_planned(spark):
    selector = compile_selector(" OR ".join(f"n = {i}" for i in range(300)))
    assert values(recorded(spark, [{"n": "299"}, {"n": "300"}, {}]), [selector]) == [[True], [False], [None]]


def test_divisions_within_divisions_are_planned(spark):
    selector = compile_selector("n / (" * 15 + "2" + ")" * 15 + " > 0")
    assert values(recorded(spark, [{"n": "3"}, {"n": "0"}]), [selector]) == [[True], [None]]


def test_a_what_if_looks_each_property_up_once_for_a_message_whatever_the_number_of_conditions(spark, capsys):
    from analytics.transforms.schemas import EVENTS
    from analytics.transforms.whatif import classes

    asked = [SelectorCondition(f"n > {number} AND region = 'r{number}'") for number in range(10)]
    frame = classes(spark.createDataFrame([], EVENTS), AnswerEncoding.of({"queue://orders": asked}), 60)
    frame.explain()
    plan = capsys.readouterr().out
    assert (plan.count("element_at(pn"), plan.count("element_at(ps")) == (1, 2), plan  # of `n`; of `n` and `region`
