"""A hub as fetch_hub.sh needs one, and the other host that it redirects large files to. Both listen on ports of 127.0.0.1 that are free.

python3 -I played_hub.py FOLDER

FOLDER/models/OWNER/NAME has the files of a model; FOLDER/does says what to do with the next requests, and FOLDER/log gets a line for each: whose it was,
path, answer, Range ("-": none), bytes sent, Authorization. FOLDER/ports gets both ports once they listen.
"""
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

FOLDER = sys.argv[1]
COMMIT = "c0ffee" * 6 + "abcd"
LARGE = 20000  # bytes; a file of more is one of the other host
# What the hub answers instead: by word of `does`, whether a list or a file is asked for, the code and a header.
REFUSALS = {
    "gated": ("file", 401, ("X-Error-Code", "GatedRepo")), "gated-403": ("file", 403, ("X-Error-Code", "GatedRepo")),
    "private": ("list", 401, ("X-Error-Code", "RepoNotFound")), "forbidden": ("list", 403, ("X-None", "")),
    "many": ("file", 429, ("Retry-After", "30")), "many-silent": ("list", 429, ("Retry-After", "a\x1b[2J")), "fault": ("list", 503, ("X-None", "")),
    "to-http": ("file", 302, ("Location", "http://example.invalid/x")), "to-file": ("file", 302, ("Location", "file:///etc/passwd")),
    "to-ftp": ("file", 302, ("Location", "ftp://127.0.0.1/x")), "to-no-address": ("file", 302, ("Location", "http://[::1")),
}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def does():
    return read(f"{FOLDER}/does").decode().strip()


def entry(folder, path):
    """What the hub lists of a file."""
    data = read(f"{folder}/{path}")
    said = {"rfilename": path, "size": len(data), "blobId": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
    if len(data) > LARGE:
        said["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return said


def listing(folder):
    paths = sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)
    entries = [entry(folder, path) for path in paths]
    largest = max(entries, key=lambda said: said["size"])
    what = does()
    if what == "hostile":
        entries.append(dict(largest, rfilename="../../../escaped.safetensors"))
    elif what == "absolute":
        entries.append(dict(largest, rfilename="/tmp/escaped.safetensors"))
    elif what == "control":
        entries.append(dict(largest, rfilename="a\x1b[2Jb"))
    elif what == "huge":
        largest["size"] = 10**17
    elif what == "unknown":
        del largest["size"]
    elif what == "longer":
        largest["size"] += 1000
    elif what == "shorter":
        largest["size"] -= 1000
    return json.dumps({"id": "of a model", "sha": COMMIT, "siblings": entries}).encode()


class Host(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, headers=(), data=b"", part=None):
        """`part`: how many bytes of the data are sent, without a word that there are fewer."""
        self.send_response(code)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        sent = data[:part]
        self.log(code, len(sent))
        self.close_connection = True
        try:
            self.wfile.write(sent)
        except ConnectionError:  # it was enough
            pass

    def log(self, code, sent):
        with open(f"{FOLDER}/log", "a") as file:
            print(self.name, self.path, code, self.headers.get("Range", "-"), sent, self.headers.get("Authorization", "-"), file=file)

    def send_file(self, data):
        first = 0
        if self.headers.get("Range") and does() != "whole":
            first = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        headers = [("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")] if first else []
        self.answer(206 if first else 200, headers, data[first:], len(data) // 2 - first if does() in ("cut", "hang") else None)
        while does() == "hang":
            time.sleep(0.02)


class PlayedHub(Host):
    name = "hub"

    def do_GET(self):
        path = unquote(self.path.partition("?")[0])
        is_list = path.startswith("/api/models/")
        kind, code, header = REFUSALS.get(does(), ("", 0, ()))
        if kind == ("list" if is_list else "file"):
            self.answer(code, [header])
        elif does() == "circle":
            self.answer(302, [("Location", self.path)])
        elif is_list:
            model, _, revision = self.path.partition("?")[0].removeprefix("/api/models/").partition("/revision/")
            self.list_model(unquote(model), revision)
        else:
            self.resolve(*path[1:].split(f"/resolve/{COMMIT}/"))

    def list_model(self, model, revision):
        if revision not in ("", "v1", "team%2Fnext%2Ftry"):
            self.answer(404, [("X-Error-Code", "RevisionNotFound")])
        elif not os.path.isdir(f"{FOLDER}/models/{model}"):
            self.answer(404, [("X-Error-Code", "RepoNotFound")])
        elif does() == "nonsense":
            self.answer(200, (), b"<html>")
        elif does() == "list":
            self.answer(200, (), b'[{"siblings": []}]')
        elif does() == "names":
            self.answer(200, (), b'{"sha": "0", "siblings": ["model.gguf"]}')
        elif does() == "cutlist":
            self.answer(200, (), listing(f"{FOLDER}/models/{model}"), 14)
        elif does() == "endless":
            self.answer(200, (), b" " * (1 << 26))
        elif does() == "moved" and not self.path.endswith("&now"):
            self.answer(307, [("Location", self.path + "&now")])
        else:
            self.answer(200, (), listing(f"{FOLDER}/models/{model}"))

    def resolve(self, model, path):
        place = f"{FOLDER}/models/{model}/{path}"
        if does() == "gone":
            self.answer(404, [("X-Error-Code", "EntryNotFound")])
        elif os.path.getsize(place) > LARGE:
            self.answer(302, [("Location", f"http://127.0.0.1:{OTHER.server_port}/{model}/{path}")])
        else:
            self.send_file(read(place))


class OtherHost(Host):
    name = "other"

    def do_GET(self):
        data = read(f"{FOLDER}/models{unquote(self.path)}")
        if does() == "altered":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if does() == "denied":
            self.answer(403)
        else:
            self.send_file(data)


HUB, OTHER = ThreadingHTTPServer(("127.0.0.1", 0), PlayedHub), ThreadingHTTPServer(("127.0.0.1", 0), OtherHost)
threading.Thread(target=OTHER.serve_forever, daemon=True).start()
with open(f"{FOLDER}/ports.new", "w") as ports:
    print(HUB.server_port, OTHER.server_port, file=ports)
os.rename(f"{FOLDER}/ports.new", f"{FOLDER}/ports")
HUB.serve_forever()
