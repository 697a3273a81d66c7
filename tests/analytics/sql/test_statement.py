"""Test which SQL statements may run, and what errors say."""

import re
from fnmatch import translate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.jobs.sql_query import unknown_operators
from analytics.sql.access import DataAccess, PropertyMask
from analytics.sql.functions import FUNCTIONS
from analytics.sql.statement import MAX_DEPTH, MAX_LENGTH, StatementRefused, check
from analytics.sql.views import VIEWS

QUERY = "One SELECT statement is allowed, which may begin with WITH."
#: Statements that read files, run code, tell of the host, change anything, or take unlimited time or memory.
ATTACKS = """
select * from parquet.`/etc/passwd`
select * from `parquet`.`/data`
select * from csv.`/etc/passwd`
select * from text.`/etc/passwd`
select * from delta.`x`
select * from `text./etc/passwd`
select * from binaryFile.passwd
select * from spark_catalog.default.messages
select * from information_schema.tables
select * from global_temp.x
select * from other_view
select * from messages version as of 1
select * from messages timestamp as of '2026-01-01'
select transform(size) using 'cat' from messages
select transform(size) using 'sh -c id' as (x) from messages
from messages select transform(size) using 'cat'
map size using 'cat' from messages
reduce size using 'cat' from messages
select reflect('java.lang.System', 'exit', 1)
select java_method('java.lang.Runtime', 'getRuntime')
select try_reflect('java.lang.System', 'getenv')
select system.builtin.reflect('a', 'b')
select `reflect`('java.lang.System', 'exit', 1)
select `java_method` ('a', 'b')
select /* x */ reflect /* y */ ('a', 'b')
select input_file_name() from messages
select input_file_block_start() from messages
select _metadata.file_path from messages
select messages._metadata from messages
select spark_partition_id() from messages
select current_user()
select current_user
select user
select session_user from messages
select current_catalog()
select current_database
select version()
select * from range(10)
select * from python_worker_logs()
select * from sql_keywords()
select * from collations()
select * from values (1), (2)
values (1)
select * from identifier('messages')
select identifier('size') from messages
select * from messages lateral view explode(properties) as k, v
select * from messages, lateral (select 1)
select /*+ broadcast(messages) */ * from messages
select /*+ coalesce(1000) */ * from messages
set spark.sql.ansi.enabled = false
set var x = 1
reset
declare variable x int
execute immediate 'select 1'
begin select 1; end
select 1; drop table messages
select 1; select 2
add jar '/x.jar'
add file '/x'
list jars
create temporary function f as 'x'
create function f as 'x' using jar 'y'
create view x as select 1
create table x as select * from messages
create or replace temp view messages as select 1
insert into messages select * from messages
insert overwrite directory '/x' select * from messages
from messages insert into x select *
merge into a using b on 1 = 1 when matched then delete
update messages set size = 1
delete from messages
truncate table messages
drop view messages
alter table messages add column x int
cache table messages
uncache table messages
refresh '/x'
load data inpath '/x' into table messages
use default
show tables
describe messages
explain select 1
analyze table messages compute statistics
export table x to '/x'
call system.x()
kill 1
copy into x from '/x'
table messages
from messages
from messages |> select size
select size from messages |> where size > 1
select :x
select ?
select ${x}
select @@x
select {messages}
select size from messages tablesample (1 percent)
select size from messages distribute by size
select size from messages cluster by size
select size from messages sort by size
select * from messages pivot (sum(size) for size in (1))
select * from messages unpivot (a for b in (size))
with recursive a as (select 1 as x union all select x + 1 from a) select * from a
with messages as (select 1 as x) select * from messages
with a(x) as (select 1) select x from a
select repeat('x', 2000000000)
select space(2000000000)
select rpad('x', 2000000000)
select sequence(1, 1000000000)
select explode(sequence(1, 1000000000))
select array_repeat(1, 1000000000)
select collect_list(message_id) from messages
select array_agg(message_id) from messages
select listagg(message_id) from messages
select collect_set(message_id) from messages
select percentile(size, 0.5) from messages
select replace(destination, '', destination) from messages
select size from messages where destination rlike '(a+)+$'
select size from messages where destination regexp '(a+)+$'
select regexp_replace(reason, '(a+)+$', '') from deliveries
select regexp_extract(reason, '(a+)+$') from deliveries
select split(reason, '(a+)+$') from deliveries
select size from messages where destination like '%a%a%a%a%b'
select size from messages where destination like concat('%a', '%b')
select size from messages where destination like any ('a', 'b')
select size from messages where destination like 'a!%' escape '!'
select transform(map_keys(properties), x -> reflect('a', 'b')) from messages
select aggregate(map_keys(properties), '', (a, b) -> concat(a, a)) from messages
select named_struct('a', 1).a
select struct(1, 2)
select array(1, 2)
select map('a', 1)
select cast(size as binary) from messages
select cast('1' as interval day) from messages
select from_json('1', 'int')
select schema_of_json('1')
select xpath('<a/>', 'a')
select raise_error('x')
select assert_true(false)
select uuid()
select rand()
select monotonically_increasing_id() from messages
select secret('a', 'b')
select ai_query('a', 'b')
select http_get('http://127.0.0.1')
select read_files('/etc')
select * from read_files('/etc')
select 'a' 'b'
select 'it''s'
select 'a\\'
select r'\\d'
select x'00'
select size into x from messages
select * from messages for update
select properties.region.x.y from messages
select size as `a``b` from messages
select size as `a;drop` from messages
select size as `user` from messages
select secret_column from messages
select other.size from messages
select size from messages where
select size from messages where size in (
select 'abc
select `abc
select /* abc
"""


@pytest.mark.parametrize("text", ATTACKS.strip().splitlines())
def test_what_is_no_plain_query_over_the_views_is_refused(text):
    with pytest.raises(StatementRefused) as caught:
        check(text)
    assert str(caught.value)
    assert "class" not in str(caught.value)


@pytest.mark.parametrize("text", [
    "select date_trunc('hour', sent_at) h, count(*) n from messages group by all order by h",
    "WITH slow AS (SELECT * FROM deliveries WHERE latency_ms > 1000) SELECT s.destination, count(*) FROM slow s JOIN"
    " messages m USING (message_id) GROUP BY 1 ORDER BY 2 DESC LIMIT 10 OFFSET 2",
    "select m.properties['region'] region, sum(m.numbers['amount']) from messages m group by 1 having count(*) > 1",
    "select destination from messages union all select destination from depths except select destination from events",
    "select * from messages a where not exists (select 1 from dead_letters d where d.message_id = a.message_id)",
    "select size::double, case when size > 1 then 'a' else \"it's\" end c from messages -- a comment",
    "select * from (select destination, row_number() over (partition by destination order by size) r from messages)"
    " where r = 1",
    "select destination, rank() over w from messages window w as (order by size)",
    "select * except (size) from messages where sent_at > timestamp '2026-01-01 00:00:00' - interval 1 hour",
    "select destination, size from messages group by grouping sets ((destination), (destination, size))",
    "select count(*) as `mean %` from messages a natural join depths b left join events c on c.message_id is null;",
])  # fmt: skip
def test_queries_over_the_views_may_run(text):
    statement = check(text)
    written = statement.text({view: f"there_{view}" for view in statement.views})
    assert all(f"there_{view} AS " in written for view in statement.views)
    assert "--" not in written


@pytest.mark.parametrize("example", FUNCTIONS.values(), ids=FUNCTIONS)
def test_each_function_may_be_called(example):
    assert check(f"SELECT {example.example} AS x FROM {example.view}").views == (example.view,)


@pytest.mark.parametrize(("text", "said"), [
    ("select siez from messages", "Line 1, column 8: Unknown column 'siez'. Did you mean size?"),
    ("select size,\n  siez\nfrom messages", "Line 2, column 3: Unknown column 'siez'. Did you mean size?"),
    ("select size\nfrom mesages", "Line 2, column 6: Unknown view 'mesages'. The views are messages, deliveries,"
     " dead_letters, depths, events."),
    ("select flor(size)\nfrom messages", "Line 1, column 8: The function flor is not available. Did you mean floor?"),
    ("select size from messages where", "Line 1, column 27: Something is missing at 'where'."),
    ("selct size from messages", f"Line 1, column 1: Unexpected 'selct'. {QUERY}"),
    ("drop table messages", f"Line 1, column 1: Unexpected 'drop'. {QUERY}"),
    ("select 'abc", "A quoted text, a quoted name or a comment has no end."),
])  # fmt: skip
def test_errors_say_where_and_what_is_wrong(text, said):
    with pytest.raises(StatementRefused) as caught:
        check(text)
    assert str(caught.value) == said


def test_statements_are_limited_in_length_parts_and_depth():
    for text, said in (
        ("select 1 -- " + "x" * MAX_LENGTH, "20,000 are allowed"),
        ("select " + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), "brackets are open"),
        ("select " + "+".join(["size"] * 1500) + " from messages", "too long"),
        ("select " + "not " * 4000 + "true", "too"),
    ):
        with pytest.raises(StatementRefused, match=said):
            check(text)


@given(st.text(st.sampled_from("select*from ()`'\"\\;-/,.1abc{}[]:$@|>\n"), max_size=60))
def test_any_text_is_a_query_or_refused_with_a_reason(text):
    try:
        written = check(text).text({view: view for view in VIEWS})
    except StatementRefused:
        return
    assert re.match(r"\(*(SELECT|WITH) ", written)


@given(st.text("abcXY*?[]!-^.\\", max_size=8), st.text("abcXY*?[]!-^.\\", max_size=6))
def test_patterns_of_masking_rules_match_as_in_the_console(pattern, name):
    mine = PropertyMask(pattern, "remove", "").regex
    assert bool(re.match(f"(?is){mine}", name)) == bool(re.compile(translate(pattern), re.IGNORECASE).match(name))


def test_an_operator_of_spark_that_is_not_in_the_list_is_noticed():
    plan = "== Analyzed Logical Plan ==\nx: int\nProject [x#1]\n+- {}\n\n== Optimized Logical Plan ==\nProject"
    assert unknown_operators(plan.format("Relation [x#1] parquet")) == []
    assert unknown_operators(plan.format("ScriptTransformation cat, [x#1]")) == ["ScriptTransformation"]
    assert unknown_operators(plan.format("Range (0, 10)")) == ["Range"]
    assert unknown_operators(plan.format("Relation [== Optimized Logical Plan ==]")) == ["more than one plan"]


ACCESS = st.builds(
    DataAccess,
    st.lists(st.lists(st.sampled_from("abc"), min_size=1).map(tuple), max_size=2).map(tuple),
    st.none() | st.lists(st.lists(st.sampled_from("abc"), min_size=1).map(tuple), max_size=2).map(tuple),
    st.lists(st.builds(PropertyMask, st.sampled_from("ab*"), st.just("remove"), st.just("x")), max_size=2).map(tuple),
    st.booleans(),
    st.lists(st.sampled_from("ab"), unique=True).map(tuple),
)


@given(ACCESS, ACCESS)
def test_what_both_of_two_allow_is_no_more_than_each(one, other):
    both = one.both(other)
    assert set(one.destinations) <= set(both.destinations)
    assert set(other.masks) <= set(both.masks)
    assert (both.properties is None) == (one.properties is None or other.properties is None)
    assert both.masks_reasons >= one.masks_reasons
    assert set(both.spared) <= set(one.spared)
    assert DataAccess.from_json(both.to_json()) == both
    assert DataAccess().covers(both)
    assert both.covers(both)
    assert not one.covers(DataAccess()) or one.is_unrestricted
