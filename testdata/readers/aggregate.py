"""aggregate.py READER JOB prints aggregates of every column of the tables in JOB.

In: the name of a reader, and a JSON file: {"tables": [{"name", "folder", "columns":
[{"name", "type"}]}]}. A folder holds the Parquet files of one table and nothing else.
Types are those of crawlbatch's catalogue.

Out: {table: {column: [numbers and texts]}} as JSON. Each list says, of
  text        rows, nulls, least, greatest, bytes of UTF-8, digest
  booleans    rows, nulls, how many are true
  numbers     rows, nulls, least, greatest, sum; times as microseconds
  lists       rows, elements, then bytes and digest, or sum, of the elements
The digest is the sum of the first 8 hexadecimal digits of each text's MD5. Two readers
that give the same lists have read the same values, in whatever order.

Readers: pyarrow, polars, fastparquet, fastparquet-objects (which keeps text as Python
objects, not as Arrow's), duckdb; spark; trino, at CRAWLBATCH_TRINO, an
HTTP address whose catalog hive may read the folder's files.
"""

import glob
import hashlib
import json
import math
import os
import sys


def text(value):
    """A least or greatest text, shortened: documents are texts too."""
    return value if value is None or len(value) <= 64 else "md5 " + hashlib.md5(value.encode()).hexdigest()


def number(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return "%.9g" % value
    return str(value)


def digest(values):
    return sum(int(hashlib.md5(v.encode()).hexdigest()[:8], 16) for v in values)


def of_values(kind, values):
    """The aggregates of a column whose values a reader has handed over."""
    there = [v for v in values if v is not None]
    head = [len(values), len(values) - len(there)]
    if kind.startswith("list of "):
        elements = [e for v in there for e in v]
        head = [len(values), len(elements)]
        if kind == "list of string":
            return head + [sum(len(e.encode()) for e in elements), digest(elements)]
        return head + [number(sum(int(e) for e in elements))]
    if kind == "string":
        return head + [text(min(there, default=None)), text(max(there, default=None)), sum(len(v.encode()) for v in there), digest(there)]
    if kind == "boolean":
        return head + [sum(bool(v) for v in there)]
    if kind == "float64":
        return head + [number(float(min(there))) if there else None, number(float(max(there))) if there else None, number(math.fsum(there)) if there else None]
    there = [int(v) for v in there]
    return head + [number(min(there, default=None)), number(max(there, default=None)), number(sum(there)) if there else None]


def by_values(column):
    """A reader that hands over columns: column(files, name, type) gives its values."""

    def read(job):
        out = {}
        for t in job["tables"]:
            files = sorted(glob.glob(t["folder"] + "/*.parquet"))
            out[t["name"]] = {c["name"]: of_values(c["type"], column(files, c["name"], c["type"])) for c in t["columns"]}
        return out

    return read


def pyarrow_column(files, name, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = []
    for f in files:
        c = pq.ParquetFile(f).read(columns=[name]).column(0)
        if kind == "timestamp":
            c = c.cast(pa.int64())
        values += c.to_pylist()
    return values


def polars_column(files, name, kind):
    import polars as pl

    values = []
    for f in files:
        c = pl.read_parquet(f, columns=[name])[name]
        if kind == "timestamp":
            c = c.dt.epoch("us")
        values += c.to_list()
    return values


def fastparquet_objects_column(files, name, kind):
    import pandas as pd

    pd.options.future.infer_string = False  # must be set before fastparquet is imported
    return fastparquet_column(files, name, kind)


def fastparquet_column(files, name, kind):
    import fastparquet
    import pandas as pd

    values = []
    for f in files:
        c = fastparquet.ParquetFile(f).to_pandas(columns=[name])[name]
        if kind == "timestamp":
            if c.dt.tz is not None:
                c = c.dt.tz_convert(None)
            epoch, us = pd.Timestamp(0), pd.Timedelta(microseconds=1)
            values += [None if pd.isna(v) else (v - epoch) // us for v in c]
        elif kind.startswith("list of "):
            values += [list(v) if hasattr(v, "__iter__") else [] for v in c]  # an empty list is None, or NaN
        else:
            values += [None if v is None or pd.isna(v) else v for v in c]
    return values


class SQL:
    """The words in which an engine says what every engine knows."""

    def __init__(self, column, size, prefix, total, micros, unnest):
        self.column, self.size, self.prefix, self.total, self.micros, self.unnest = column, size, prefix, total, micros, unnest

    def query(self, kind, name, table):
        c = self.column(name)
        if kind.startswith("list of "):
            e = self.unnest(table, c)
            inner = [f"sum({self.size('e')})", f"sum({self.prefix('e')})"] if kind == "list of string" else [self.total("e")]
            return f"SELECT (SELECT count(*) FROM {table}), count(*), {', '.join(inner)} FROM {e}"
        head = f"SELECT count(*), count(*) - count({c}), "
        if kind == "string":
            return head + f"min({c}), max({c}), sum({self.size(c)}), sum({self.prefix(c)}) FROM {table}"
        if kind == "boolean":
            return head + f"count(CASE WHEN {c} THEN 1 END) FROM {table}"
        if kind == "timestamp":
            c = self.micros(c)
        total = f"sum({c})" if kind == "float64" else self.total(c)
        return head + f"min({c}), max({c}), {total} FROM {table}"

    def shape(self, kind, row):
        row = list(row)
        if kind.startswith("list of ") or kind == "boolean":
            rest = [int(v or 0) for v in row[2:]]
            return [int(row[0]), int(row[1])] + (rest if kind != "list of int32" else [str(rest[0])])
        head = [int(row[0]), int(row[1])]
        if kind == "string":
            return head + [text(row[2]), text(row[3]), int(row[4] or 0), int(row[5] or 0)]
        if kind == "float64":
            return head + [None if v is None else number(float(v)) for v in row[2:]]
        return head + [None if v is None else str(int(v)) for v in row[2:]]


def by_sql(words, job, table, ask):
    return {
        t["name"]: {c["name"]: words.shape(c["type"], ask(words.query(c["type"], c["name"], table(t)))) for c in t["columns"]}
        for t in job["tables"]
    }


def duckdb_all(job):
    import duckdb

    db = duckdb.connect()
    words = SQL(
        column=lambda n: f'"{n}"',
        size=lambda c: f"strlen({c})",
        prefix=lambda c: f"CAST('0x' || substr(md5({c}), 1, 8) AS BIGINT)",
        total=lambda c: f"sum(CAST({c} AS HUGEINT))",
        micros=lambda c: f"epoch_us({c})",
        unnest=lambda t, c: f"(SELECT unnest({c}) AS e FROM {t})",
    )
    return by_sql(words, job, lambda t: f"read_parquet('{t['folder']}/*.parquet')", lambda q: db.execute(q).fetchone())


def spark_session():
    from pyspark.sql import SparkSession

    # The test looks for a bug of Spark's vectorized reader. By default, Spark does not use
    # this reader for tables with lists.
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.files.maxPartitionBytes", "1g")
        .config("spark.sql.parquet.enableVectorizedReader", "true")
        .config("spark.sql.parquet.enableNestedColumnVectorizedReader", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def spark_all(job):
    spark = spark_session()
    words = SQL(
        column=lambda n: f"`{n}`",
        size=lambda c: f"octet_length({c})",
        prefix=lambda c: f"CAST(conv(substr(md5({c}), 1, 8), 16, 10) AS BIGINT)",
        total=lambda c: f"sum(CAST({c} AS DECIMAL(25, 0)))",
        micros=lambda c: f"unix_micros({c})",
        unnest=lambda t, c: f"(SELECT explode({c}) AS e FROM {t})",
    )
    out = {}
    for t in job["tables"]:
        spark.read.parquet(t["folder"]).createOrReplaceTempView("t")
        # One statement with all columns of a table, so that the test takes only a minute.
        one = []
        for c in t["columns"]:
            if not c["type"].startswith("list of "):
                one.append((c, words.query(c["type"], c["name"], "t")))
        selected = ", ".join(f"struct({q[len('SELECT '):-len(' FROM t')]}) AS `{c['name']}`" for c, q in one)
        row = spark.sql(f"SELECT {selected} FROM t").collect()[0]
        found = {c["name"]: words.shape(c["type"], row[c["name"]]) for c, _ in one}
        for c in t["columns"]:
            if c["type"].startswith("list of "):
                found[c["name"]] = words.shape(c["type"], spark.sql(words.query(c["type"], c["name"], "t")).collect()[0])
        out[t["name"]] = found
    spark.stop()
    return out


TRINO = {
    "string": "varchar", "boolean": "boolean", "int16": "smallint", "int32": "integer", "int64": "bigint", "float64": "double",
    "timestamp": "timestamp(3)", "list of string": "array(varchar)", "list of int32": "array(integer)",
}


def trino_all(job):
    import trino
    from urllib.parse import urlparse

    at = urlparse(os.environ["CRAWLBATCH_TRINO"])
    cursor = trino.dbapi.connect(host=at.hostname, port=at.port, user="test", catalog="hive", schema="readers").cursor()

    def ask(q):
        return cursor.execute(q).fetchall()

    ask("CREATE SCHEMA IF NOT EXISTS hive.readers")
    words = SQL(
        column=lambda n: f'"{n}"',
        size=lambda c: f"length(to_utf8({c}))",
        prefix=lambda c: f"from_base(substr(to_hex(md5(to_utf8({c}))), 1, 8), 16)",
        total=lambda c: f"sum(CAST({c} AS DECIMAL(25, 0)))",
        micros=lambda c: f"1000 * date_diff('millisecond', TIMESTAMP '1970-01-01 00:00:00', {c})",
        unnest=lambda t, c: f"{t} CROSS JOIN UNNEST({c}) AS u (e)",
    )
    out = {}
    for t in job["tables"]:
        table = '"' + t["name"] + '"'
        ask(f"DROP TABLE IF EXISTS {table}")
        columns = ", ".join(f'"{c["name"]}" {TRINO[c["type"]]}' for c in t["columns"])
        ask(f"CREATE TABLE {table} ({columns}) WITH (format = 'PARQUET', external_location = 'local://{t['folder']}')")
        found = {}
        for c in t["columns"]:
            found[c["name"]] = words.shape(c["type"], ask(words.query(c["type"], c["name"], table))[0])
        ask(f"DROP TABLE {table}")
        out[t["name"]] = found
    return out


READERS = {
    "pyarrow": by_values(pyarrow_column),
    "polars": by_values(polars_column),
    "fastparquet": by_values(fastparquet_column),
    "fastparquet-objects": by_values(fastparquet_objects_column),
    "duckdb": duckdb_all,
    "spark": spark_all,
    "trino": trino_all,
}

if __name__ == "__main__":
    reader, job = sys.argv[1:]
    with open(job) as f:
        json.dump(READERS[reader](json.load(f)), sys.stdout, ensure_ascii=False)
