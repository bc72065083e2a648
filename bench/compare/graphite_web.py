"""graphite-web over the files that carbon-cache wrote.

usage: graphite_web.py DIRECTORY PORT
"""

import os
import sys
import types
from wsgiref.simple_server import WSGIRequestHandler, make_server

directory, port = sys.argv[1], int(sys.argv[2])

settings = types.ModuleType("web_settings")
settings.__dict__.update(
    SECRET_KEY="bench",
    STORAGE_DIR=directory,
    CONF_DIR=directory,
    LOG_DIR=directory,
    LOG_RENDERING_PERFORMANCE=False,
    WHISPER_DIR=os.path.join(directory, "whisper"),
    STANDARD_DIRS=[os.path.join(directory, "whisper")],
    INDEX_FILE=os.path.join(directory, "index"),
    # Everything is in the files.
    CARBONLINK_HOSTS=[],
    REPLICATION_FACTOR=0,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(directory, "graphite.db")}},
)
sys.modules["web_settings"] = settings
os.environ["GRAPHITE_SETTINGS_MODULE"] = "web_settings"
os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"

from graphite.wsgi import application  # noqa: E402, after the settings it reads


class Handler(WSGIRequestHandler):
    def log_message(self, *_):
        pass


make_server("127.0.0.1", port, application, handler_class=Handler).serve_forever()
