"""Count what DuckDB reads of Parquet files to answer questions.

python skipping.py JOB reads a JSON file, a list of questions. Each has a column, a value and, by the name of a set of
files, the files to ask. DuckDB opens them through a file system that counts, as it would open files in S3: each read is a
request. For each question and set, the script prints a JSON object with the number of rows of the answer, and with the
row groups, reads and bytes that DuckDB read. A row group counts if a byte of its columns was read, other than with
the end of the file. "statistics" is the number of row groups whose least and greatest value allow the value.
"""

import json
import os
import sys

import duckdb
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

reads = []  # (path, offset, length)


class CountedFile:
    def __init__(self, path):
        self.path, self.file = path, open(path, "rb", buffering=0)
        self.seek, self.tell = self.file.seek, self.file.tell

    def read(self, length=-1):
        at = self.tell()
        data = self.file.read(length)
        reads.append((self.path, at, len(data)))
        return data

    def close(self):
        self.file.close()


class Counting(LocalFileSystem):
    protocol = "counted"

    def _open(self, path, mode="rb", **_):
        return CountedFile(path)

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("counted://")


def extents(path, groups={}):
    """The row groups of a file as ranges of bytes."""
    if path not in groups:
        meta, groups[path] = pq.ParquetFile(path).metadata, []
        for g in range(meta.num_row_groups):
            columns = [meta.row_group(g).column(i) for i in range(meta.num_columns)]
            first = min(c.dictionary_page_offset or c.data_page_offset for c in columns)
            groups[path].append((first, first + sum(c.total_compressed_size for c in columns)))
    return groups[path]


def allowed(path, column, value):
    """The number of row groups of a file whose statistics allow a value."""
    meta = pq.ParquetFile(path).metadata
    n = 0
    for g in range(meta.num_row_groups):
        row_group = meta.row_group(g)
        for i in range(meta.num_columns):
            c = row_group.column(i)
            if c.path_in_schema == column:
                n += c.statistics is None or not c.statistics.has_min_max or c.statistics.min <= value <= c.statistics.max
    return n


with open(sys.argv[1]) as f:
    job = json.load(f)
for question in job:
    for name, files in question["files"].items():
        reads.clear()
        db = duckdb.connect()
        db.register_filesystem(Counting())
        db.execute("SET threads = 1")
        names = ", ".join("'counted://%s'" % f for f in files)
        db.execute(f"CREATE TABLE answer AS SELECT * FROM read_parquet([{names}], hive_partitioning = false) WHERE {question['column']} = ?", [question["value"]])
        rows = db.execute("SELECT count(*) FROM answer").fetchone()[0]
        db.close()
        touched = {(p, g) for p, at, n in reads if at + n < os.path.getsize(p) for g, (a, b) in enumerate(extents(p)) if at < b and at + n > a}
        print(json.dumps({
            "question": question["name"], "set": name, "rows": rows, "groups": len(touched),
            "statistics": sum(allowed(p, question["column"], question["value"]) for p in files), "of": sum(len(extents(p)) for p in files), "reads": len(reads), "bytes": sum(n for _, _, n in reads),
        }), flush=True)
