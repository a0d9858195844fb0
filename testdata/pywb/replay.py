"""Replay captures of a store with pywb.

python replay.py STORE reads lines "TIMESTAMP URL" from standard input. For each line it prints a JSON object with
the status and the body (Base64) that pywb replays for the URL at that time, without rewriting links. pywb's index is
the CDXJ files of the store, sorted together. No server is started: pywb runs in this process.
"""

import base64
import json
import os
import pathlib
import sys
import tempfile

store = pathlib.Path(sys.argv[1]).resolve()
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    pathlib.Path("config.yaml").write_text("{}")  # or pywb complains on standard output
    lines = sorted(line for f in store.glob("warc/**/*.cdxj") for line in f.read_bytes().splitlines(keepends=True))
    pathlib.Path("index.cdxj").write_bytes(b"".join(lines))

    from pywb.apps.frontendapp import FrontEndApp
    from werkzeug.test import Client
    from werkzeug.wrappers import Response

    collection = {"index_paths": folder + "/index.cdxj", "archive_paths": [str(store) + "/"]}
    client = Client(FrontEndApp(custom_config={"collections": {"store": collection}, "debug": False}), Response)
    for line in sys.stdin:
        timestamp, url = line.split()
        answer = client.get(f"/store/{timestamp}id_/{url}")
        print(json.dumps({"at": timestamp, "url": url, "status": answer.status_code, "location": answer.headers.get("Location", ""),
                          "body": base64.b64encode(answer.get_data()).decode()}), flush=True)
