"""A server of models on this machine: downloads, uploads and faults."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import time
import types
from pathlib import Path
from urllib.parse import unquote

import huggingface_hub
from huggingface_hub import constants, file_download

_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/?]+).*")
_INFO = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/?]+))?")


@contextlib.contextmanager
def running(monkeypatch, directory, handler=None):
    """Runs a server that huggingface_hub takes for the Hub, with a cache in a directory."""
    with HubServer(handler) as server:
        server.home = directory / "hub"
        for name, value in {
                "ENDPOINT": server.endpoint, "HF_HUB_OFFLINE": False,
                "HUGGINGFACE_CO_URL_TEMPLATE":
                    f"{server.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
                "HF_HUB_CACHE": str(directory / "cache"), "HF_HUB_DISABLE_XET": True,
                "HF_HUB_DOWNLOAD_TIMEOUT": 5, "HF_HUB_ETAG_TIMEOUT": 5}.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setattr(file_download, "time", types.SimpleNamespace(
            sleep=lambda seconds: None, time=time.time))
        huggingface_hub.close_session()
        monkeypatch.chdir(directory)
        yield server
        huggingface_hub.close_session()
        server.shutdown()


class HubServer(http.server.ThreadingHTTPServer):
    """Serves directories as models; every revision of a model has the same files."""

    daemon_threads = True

    def __init__(self, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.models: dict[str, Path] = {}
        self.revisions = {"main"}
        self.gated: dict[str, int] = {}
        """Model -> status of its refusals; 403 without the Hub's word for it."""
        self.cut: set[str] = set()
        """Names of files whose download breaks off and can't be resumed."""
        self.requests: list[str] = []
        self.etags = git_hash
        """Content -> ETag."""
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01},
                         daemon=True).start()

    def fetched(self):
        """Returns the names of the files that were downloaded, with their models."""
        return sorted(f"{match[1]}/{match[3]}" for line in self.requests
                      if (match := re.match(f"GET {_FILE.pattern}$", line)))


def git_hash(content):
    """Returns the hash of a file in Git, which the Hub gives for small files."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def commit(model):
    """Returns the hash that a model's revisions have."""
    return hashlib.sha1(model.encode()).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer()

    do_HEAD = do_GET

    def do_POST(self):
        """Creates repositories and takes commits, whose files all come within the request."""
        path, length = unquote(self.path), int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        self.server.requests.append(f"POST {path}")
        if self.headers["Authorization"] != "Bearer hf_test":
            return self._refuse(401, "")
        if path == "/api/repos/create":
            content = json.loads(body)
            model = "/".join(filter(None, (content.get("organization"), content["name"])))
            self.server.models[model] = self.server.home / model
            return self._json({"url": f"{self.server.endpoint}/{model}"})
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        model, action = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", path
                                     ).groups()
        if action == "preupload":
            return self._json({"files": [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]]})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                target = self.server.models[model] / line["value"]["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(base64.b64decode(line["value"]["content"]))
        return self._json({"commitUrl": f"{self.server.endpoint}/{model}/commit/{commit(model)}",
                           "commitOid": commit(model)})

    def _answer(self):
        path = unquote(self.path)
        self.server.requests.append(f"{self.command} {path}")
        for pattern, answer in ((_FILE, self._file), (_TREE, self._tree), (_INFO, self._info)):
            if match := pattern.fullmatch(path):
                model, revision = match[1], match[2]
                if model not in self.server.models:
                    return self._refuse(401, "RepoNotFound")
                if status := self.server.gated.get(model):
                    return self._refuse(status, "GatedRepo" if status == 401 else "")
                if revision not in (None, commit(model), *self.server.revisions):
                    return self._refuse(404, "RevisionNotFound")
                return answer(match)
        return self._refuse(404, "")

    def _info(self, match):
        self._json({"id": match[1], "sha": commit(match[1]), "siblings": [], "tags": []})

    def _tree(self, match):
        root = self.server.models[match[1]]
        files = sorted(path for path in root.rglob("*") if path.is_file())
        self._json([{"type": "file", "path": path.relative_to(root).as_posix(),
                     "size": path.stat().st_size,
                     "oid": hashlib.sha1(path.read_bytes()).hexdigest()} for path in files])

    def _file(self, match):
        path = self.server.models[match[1]] / match[3]
        if not path.exists():
            return self._refuse(404, "EntryNotFound")
        if match[3] in self.server.cut and self.headers["Range"]:
            return self._refuse(500, "")
        return self._content(path.read_bytes(), commit(match[1]), match[3] in self.server.cut)

    def _content(self, content, revision, cut=False):
        etag = self.server.etags(content)
        self._send(200, content, {"X-Repo-Commit": revision, "ETag": f'"{etag}"'}, cut)

    def _json(self, value):
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status, code):
        self._send(status, b"", {"X-Error-Code": code} if code else {})

    def _send(self, status, content, headers, cut=False):
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:len(content) // 2] if cut else content)
            self.close_connection |= cut
