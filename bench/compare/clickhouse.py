"""ClickHouse as a server: takes CSV and queries over HTTP, in one process.

usage: clickhouse.py DIRECTORY PORT
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb.session import Session

TABLE = """CREATE TABLE IF NOT EXISTS metrics (
    agent LowCardinality(String),
    metric LowCardinality(String),
    value Int64 CODEC(Delta, ZSTD(1)),
    time DateTime('UTC') CODEC(DoubleDelta, ZSTD(1))
) ENGINE = MergeTree ORDER BY (agent, metric, time)
SETTINGS old_parts_lifetime = 1, cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0,
    merge_tree_clear_old_parts_interval_seconds = 1"""

# An insert has what came within a second, or this many bytes of lines.
LARGE = 16 << 20
# Senders wait while this much is not inserted.
LIMIT = 64 << 20


class Store:
    def __init__(self, directory):
        self.session = Session(directory)
        self.session.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.session.query("USE bench")
        self.session.query(TABLE)
        self.using = threading.Lock()  # a session answers one query at a time
        self.changed = threading.Condition()
        self.waiting = []
        self.size = 0
        self.inserting = False
        self.failed = None
        threading.Thread(target=self.insert_for_ever, daemon=True).start()

    def add(self, lines):
        with self.changed:
            while self.size > LIMIT and not self.failed:
                self.changed.wait()
            if self.failed:
                raise self.failed
            self.waiting.append(lines)
            self.size += len(lines)
            self.changed.notify_all()

    def drain(self):
        with self.changed:
            while (self.waiting or self.inserting) and not self.failed:
                self.changed.wait()
            if self.failed:
                raise self.failed

    def insert_for_ever(self):
        while True:
            with self.changed:
                while not self.waiting:
                    self.changed.wait()
                self.changed.wait_for(lambda: self.size >= LARGE, timeout=1)
                lines, self.waiting, self.size = b"".join(self.waiting), [], 0
                self.inserting = True
                self.changed.notify_all()
            try:
                self.query("INSERT INTO metrics FORMAT CSV\n" + lines.decode())
            except Exception as failure:
                self.failed = failure
            with self.changed:
                self.inserting = False
                self.changed.notify_all()

    def query(self, text):
        with self.using:
            return self.session.query(text).bytes()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # an answer is one write

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_call(self, call):
        try:
            self.answer(200, call() or b"")
        except Exception as failure:
            self.answer(500, str(failure).encode())

    def do_POST(self):
        lines = self.rfile.read(int(self.headers["Content-Length"]))
        self.handle_call(lambda: self.server.store.add(lines))

    def do_GET(self):
        url = urlsplit(self.path)
        store = self.server.store
        if url.path == "/query":
            self.handle_call(lambda: store.query(parse_qs(url.query)["q"][0]))
        elif url.path == "/drain":
            self.handle_call(store.drain)
        else:
            self.answer(200)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
server.daemon_threads = True
server.store = Store(sys.argv[1])
server.serve_forever()
