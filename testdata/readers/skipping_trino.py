"""Measure what Trino reads of Parquet files to answer questions.

python skipping_trino.py JOB reads a JSON file with statements to run first, and questions with a name, the name of a set
of tables and a query. For each question it prints a JSON object with the number of rows of the answer, and with the
bytes that Trino read from files and the rows that it decoded, as Trino's statistics of the query count them. They do
not count footers, page indexes and Bloom filters.
"""

import json
import sys

from views import trino_cursor

cursor = trino_cursor()
with open(sys.argv[1]) as f:
    job = json.load(f)
for statement in job["statements"]:
    cursor.execute(statement.rstrip().rstrip(";")).fetchall()
for question in job["questions"]:
    rows = len(cursor.execute(question["query"]).fetchall())
    print(json.dumps({"question": question["name"], "set": question["set"], "rows": rows, "bytes": cursor.stats["physicalInputBytes"], "scanned": cursor.stats["processedRows"]}), flush=True)
