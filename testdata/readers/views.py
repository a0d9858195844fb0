"""views.py READER FOLDER QUESTIONS runs the SQL of crawlbatch views, then asks questions.

In: spark or trino (see aggregate.py); a folder with one statement a file, in the order
of their names; a JSON file {name: query}.

Out: {name: [row]} as JSON, the values of a row joined by bars: null is <nil>, times are
UTC to the second, booleans are true or false, numbers with a fraction have one digit of it.
"""

import datetime
import decimal
import glob
import json
import os
import sys
from urllib.parse import urlparse


def spell(value):
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (float, decimal.Decimal)):
        return "%.1f" % value
    return str(value)


def spark():
    from aggregate import spark_session

    os.environ["TZ"] = "UTC"  # time zone of Python's datetimes
    session = spark_session()
    return lambda q: [tuple(r) for r in session.sql(q).collect()]


def trino_cursor():
    import trino as client

    at = urlparse(os.environ["CRAWLBATCH_TRINO"])
    return client.dbapi.connect(host=at.hostname, port=at.port, user="test", catalog="hive", schema="crawlbatch").cursor()


def trino():
    cursor = trino_cursor()
    return lambda q: cursor.execute(q).fetchall()


if __name__ == "__main__":
    reader, folder, questions = sys.argv[1:]
    ask = {"spark": spark, "trino": trino}[reader]()
    for name in sorted(glob.glob(folder + "/*.sql")):
        with open(name) as f:
            ask(f.read().rstrip().rstrip(";"))
    with open(questions) as f:
        queries = json.load(f)
    json.dump({n: ["|".join(spell(v) for v in row) for row in ask(q.rstrip().rstrip(";"))] for n, q in queries.items()}, sys.stdout)
