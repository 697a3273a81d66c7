"""Merge rows of a table: equal keys of the same hour, and hours into days. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.tables.definitions import DAY_US, HIGHEST, LOWEST, NEWEST, SLOT, SUM, MeasureTable

_AGGREGATES = {SUM: "sum", HIGHEST: "max", LOWEST: "min", NEWEST: "last"}
#: The newest row counts also where its value is null.
_WITH_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)


def merge(table: MeasureTable, rows: pa.Table) -> pa.Table:
    """Merge rows with equal slot and keys; return rows with the table's schema, in the order of their keys."""
    keys = [SLOT, *table.keys]
    if any(rule == NEWEST for _, rule in table.values.values()):
        rows = rows.sort_by([(name, "ascending") for name in (*keys, "last")])
    rules = [
        (name, _AGGREGATES[rule], _WITH_NULLS if rule == NEWEST else None) for name, (_, rule) in table.values.items()
    ]
    merged = rows.group_by(keys, use_threads=False).aggregate(rules)
    names = {f"{name}_{_AGGREGATES[rule]}": name for name, (_, rule) in table.values.items()}
    merged = merged.rename_columns([names.get(name, name) for name in merged.schema.names])
    # Sorted rows make smaller files.
    return merged.select(table.schema.names).cast(table.schema).sort_by([(name, "ascending") for name in keys])


def to_days(table: MeasureTable, rows: pa.Table) -> pa.Table:
    """Merge rows of hours into rows of days."""
    micros = rows[SLOT].cast(pa.int64()).to_numpy()
    days = pa.array(np.asarray(micros) // DAY_US * DAY_US).cast(table.schema.field(SLOT).type)
    return merge(table, rows.set_column(rows.schema.get_field_index(SLOT), SLOT, days))


def without_hours(rows: pa.Table, starts_us: set[int]) -> pa.Table:
    """Return the rows of other hours than those that begin at these times."""
    gone = pa.array(sorted(starts_us), pa.int64())
    return rows.filter(pc.invert(pc.is_in(rows[SLOT].cast(pa.int64()), gone)))
