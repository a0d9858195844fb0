"""Writes the files of this folder with Spark: a small index with the flat schema of Common Crawl's
cc-index, and Spark's answers to conditions on it.

    pip install pyspark==3.5.3    # needs java
    python write.py .

CC-MAIN-2017-51 has the columns of that time, snappy and Spark's old timestamps (INT96).
CC-MAIN-2026-43 has all columns, zstd and timestamps in milliseconds. Dictionaries, pages and row groups
are small, so that a column has pages with and without a dictionary.
"""

import datetime
import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import types as t

ROWS = 700

# Name, type, nullable, and the first crawl with the column.
COLUMNS = [
    ("url_surtkey", t.StringType(), False, ""),
    ("url", t.StringType(), False, ""),
    ("url_host_name", t.StringType(), False, ""),
    ("url_host_tld", t.StringType(), True, ""),
    ("url_host_2nd_last_part", t.StringType(), True, ""),
    ("url_host_3rd_last_part", t.StringType(), True, ""),
    ("url_host_4th_last_part", t.StringType(), True, ""),
    ("url_host_5th_last_part", t.StringType(), True, ""),
    ("url_host_registry_suffix", t.StringType(), True, ""),
    ("url_host_registered_domain", t.StringType(), True, ""),
    ("url_host_private_suffix", t.StringType(), True, ""),
    ("url_host_private_domain", t.StringType(), True, ""),
    ("url_host_name_reversed", t.StringType(), True, "CC-MAIN-2018"),
    ("url_protocol", t.StringType(), False, ""),
    ("url_port", t.IntegerType(), True, ""),
    ("url_path", t.StringType(), False, ""),
    ("url_query", t.StringType(), True, ""),
    ("fetch_time", t.TimestampType(), False, ""),
    ("fetch_status", t.ShortType(), False, ""),
    ("fetch_redirect", t.StringType(), True, "CC-MAIN-2019"),
    ("content_digest", t.StringType(), True, ""),
    ("content_mime_type", t.StringType(), True, ""),
    ("content_mime_detected", t.StringType(), True, ""),
    ("content_charset", t.StringType(), True, "CC-MAIN-2018"),
    ("content_languages", t.StringType(), True, "CC-MAIN-2018"),
    ("content_truncated", t.StringType(), True, "CC-MAIN-2019"),
    ("warc_record_id", t.BinaryType(), False, "CC-MAIN-2026"),
    ("warc_filename", t.StringType(), False, ""),
    ("warc_record_offset", t.IntegerType(), False, ""),
    ("warc_record_length", t.IntegerType(), False, ""),
    ("warc_segment", t.StringType(), False, ""),
    ("crawl", t.StringType(), False, ""),
    ("subset", t.StringType(), False, ""),
]

CONDITIONS = [
    "fetch_status = 200 AND content_mime_detected = 'text/html'",
    "content_mime_detected = 'application/xhtml+xml' AND fetch_status = 200",
    "content_mime_detected LIKE 'text/%' AND fetch_status IN (200, 304)",
    "content_mime_detected != 'text/html' AND fetch_status != 200",
    "fetch_time >= '2026-10-11 00:00:00' AND fetch_time < '2026-10-11 06:30:00' AND fetch_status = 200",
    "url_host_registered_domain = 'site11.example' AND fetch_status = 200 AND content_mime_detected = 'text/html'",
    "url_port = 8443",
    "url_query LIKE 'q=%' AND fetch_status < 400",
]


def row(crawl, i):
    """Returns row i of a crawl, in the order of SURT keys."""
    domain, page = i // 35, i % 35
    host = ["", "www."][domain % 2] + "site%02d.example" % domain
    parts = host.split(".")[::-1]
    port = 8443 if page % 17 == 5 else None
    query = "q=%d" % i if page % 5 == 0 else None
    path = "/p%02d" % page
    status = [200, 200, 200, 304, 301, 404, 200, 503][i * 7 % 8]
    mime = [None, "text/html", "text/html", "application/xhtml+xml", "application/pdf", "text/plain"][i * 11 % 6]
    segment = "1505818689752.%d" % (domain % 3)
    values = {
        "url_surtkey": "example,site%02d)%s%s" % (domain, path, "?" + query if query else ""),
        "url": "https://%s%s%s%s" % (host, ":%d" % port if port else "", path, "?" + query if query else ""),
        "url_host_name": host,
        "url_host_tld": parts[0],
        "url_host_2nd_last_part": parts[1],
        "url_host_3rd_last_part": parts[2] if len(parts) > 2 else None,
        "url_host_registry_suffix": "example",
        "url_host_registered_domain": "site%02d.example" % domain,
        "url_host_private_suffix": "example",
        "url_host_private_domain": "site%02d.example" % domain,
        "url_host_name_reversed": ".".join(parts),
        "url_protocol": "https",
        "url_port": port,
        "url_path": path,
        "url_query": query,
        "fetch_time": datetime.datetime(2026, 10, 10, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=i * 389 % 4000),
        "fetch_status": status,
        "fetch_redirect": "https://%s/" % host if status == 301 else None,
        "content_digest": None if status == 304 else "%032d" % (i * 7919 % 100000),
        "content_mime_type": "text/html" if mime else "unk",
        "content_mime_detected": mime,
        "content_charset": "UTF-8" if mime == "text/html" else None,
        "content_languages": [None, "eng", "fra,eng"][i % 3],
        "content_truncated": "length" if i % 50 == 0 else None,
        "warc_record_id": i.to_bytes(16, "big"),
        "warc_filename": "crawl-data/%s/segments/%s/warc/%s-%05d.warc.gz" % (crawl, segment, crawl, i % 7),
        "warc_record_offset": i * 24662,
        "warc_record_length": 20000 + i % 999,
        "warc_segment": segment,
        "crawl": crawl,
        "subset": "warc" if status == 200 else "crawldiagnostics",
    }
    return values


def main(out):
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.sources.partitionOverwriteMode", "dynamic")
        .getOrCreate()
    )
    answers = []
    for crawl, codec, times in [("CC-MAIN-2017-51", "snappy", "INT96"), ("CC-MAIN-2026-43", "zstd", "TIMESTAMP_MILLIS")]:
        columns = [c for c in COLUMNS if c[3] <= crawl]
        schema = t.StructType([t.StructField(name, kind, nullable) for name, kind, nullable, _ in columns])
        rows = [row(crawl, i) for i in range(ROWS)]
        table = spark.createDataFrame([tuple(r.get(c[0]) for c in columns) for r in rows], schema).coalesce(1)
        spark.conf.set("spark.sql.parquet.outputTimestampType", times)
        writer = table.write.partitionBy("crawl", "subset").mode("overwrite").option("compression", codec)
        for key, value in {
            "parquet.block.size": 24000,
            "parquet.page.size": 1500,
            "parquet.page.row.count.limit": 60,
            "parquet.page.size.row.check.min": 20,
            "parquet.block.size.row.check.min": 100,
            "parquet.dictionary.page.size": 2500,
            "parquet.enable.dictionary": "true",
        }.items():
            writer = writer.option(key, value)
        writer.parquet(out)
        table.createOrReplaceTempView("ccindex")
        answers.append({})
        for condition in CONDITIONS:
            found = spark.sql("SELECT url FROM ccindex WHERE " + condition + " ORDER BY url").collect()
            answers[-1][condition] = [r.url for r in found]
    assert answers[0] == answers[1]
    with open(out + "/answers.json", "w") as f:
        json.dump(answers[0], f, indent=1)
        f.write("\n")


main(sys.argv[1])
