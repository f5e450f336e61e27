"""The Hugging Face hub: where it is, by what way it is asked, and what it lists of a model. What it says is untrusted.

All is asked for by https, but of a hub on this host (tests); the user's token goes to the hub alone, and not to where it redirects to.
"""
import hashlib
import http.client
import json
import os
import re
import stat
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

USAGE, DATA, UNAVAILABLE, IO = 64, 65, 69, 74
PATIENCE = 60  # seconds in which something must come
BLOCK = 1 << 16
TOKEN_BYTES, LIST_BYTES = 1 << 12, 1 << 25
PATH_BYTES, PART_BYTES = 1000, 255
LOOPBACK = r"(127\.0\.0\.1|localhost|\[::1\])"
ADDRESS = re.compile(rf"(https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])|http://{LOOPBACK})(:[0-9]+)?(/[A-Za-z0-9._/-]*)?")


class Failure(Exception):
    """One line for the user, and the exit code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def is_plain(path):
    """Whether it can name a file below a folder, there and on a terminal."""
    return (path.isprintable() and len(path.encode()) <= PATH_BYTES
            and all(part not in ("", ".", "..") and len(part.encode()) <= PART_BYTES for part in path.split("/")))


def find_token():
    """The user's token, where huggingface_hub looks for it, too; None: there is none."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    place, token = "HF_TOKEN", os.environ.get("HF_TOKEN")
    if not token:
        place = os.environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")
        try:
            with open(place, encoding="latin-1") as file:
                token = file.read(TOKEN_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Failure(IO, f"cannot read the hub's token {place}: {error.strerror}") from None
    token = token.strip()
    if not re.fullmatch("[!-~]*", token):  # it is not shown
        raise Failure(USAGE, f"{place} has no token of the hub, expected one word")
    return token or None


class Hub(urllib.request.HTTPRedirectHandler):
    """What is asked, and with which token. `asked` is the host that was asked last: the hub's or one that it redirects to."""

    def __init__(self):
        self.root = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        if not ADDRESS.fullmatch(self.root):
            raise Failure(USAGE, f"HF_ENDPOINT is '{self.root}', expected https://HOST")
        address = urllib.parse.urlsplit(self.root)
        self.scheme, self.host = address.scheme, address.netloc
        self.asked = self.host
        self.token = find_token()
        proxies = {} if self.scheme == "http" else None  # None: those of the environment
        self.opener = urllib.request.build_opener(self, urllib.request.ProxyHandler(proxies))

    def admit(self, request):
        """Before a request is sent: whether by this way, and with the token."""
        if request.type != "https" and not (request.type == self.scheme and re.fullmatch(LOOPBACK + "(:[0-9]+)?", request.host)):
            raise Failure(UNAVAILABLE, f"{self.asked} leads to {request.type}://{request.host}, which is not asked: expected https")
        self.asked = request.host
        if self.token and (request.type, request.host) == (self.scheme, self.host):
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")

    def redirect_request(self, *answer):
        request = super().redirect_request(*answer)
        self.admit(request)
        return request

    def open(self, path, model, first=0, file=None):
        """The answer, of its bytes those from `first` on where the other side can do that. `model`: whose it is; `file`: which of its list."""
        request = urllib.request.Request(self.root + path, headers={"User-Agent": "tandem"})
        if first:
            request.add_header("Range", f"bytes={first}-")
        try:
            self.admit(request)
            return self.opener.open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            raise Failure(*self.refusal(error, model, file)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of an address that it leads to
            raise Failure(UNAVAILABLE, f"cannot reach {self.asked}: {why(error)}; expected a network, or a proxy in HTTPS_PROXY") from None

    def blocks(self, answer):
        while True:
            try:
                block = answer.read(BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise Failure(UNAVAILABLE, f"lost the connection to {self.asked}: {why(error)}") from None
            if not block:
                return
            yield block

    def refusal(self, error, model, file):
        """(exit code, line): what an answer that is no success means."""
        code, is_hub = error.code, self.asked == self.host
        wait = error.headers.get("Retry-After", "")
        if code == 429:
            return UNAVAILABLE, f"{self.asked} had too many requests (429): try again {f'in {wait[:9]} s' if wait.isdecimal() else 'later'}"
        if code >= 500:
            return UNAVAILABLE, f"{self.asked} has a fault of its own ({code}): try again later"
        if is_hub and error.headers.get("X-Error-Code") == "GatedRepo":
            account = " by the account of this token" if self.token else ", and a token of that account in HF_TOKEN"
            return UNAVAILABLE, f"{model} is gated ({code}): expected its licence accepted at {self.root}/{model}{account}"
        if is_hub and code in (401, 403):
            expected = "OWNER/NAME as the hub has it, or a token in HF_TOKEN that may read it"
            return UNAVAILABLE, f"{model} does not exist or is private ({code}): expected {expected}"
        if is_hub and code == 404 and file:
            return UNAVAILABLE, f"{model} lists {file}, and {self.asked} answers 404 for it: try again later"
        if is_hub and code == 404:
            return USAGE, f"{model} does not exist (404): expected OWNER/NAME, and a revision, as the hub has them"
        if code < 400:
            return UNAVAILABLE, f"{self.asked} leads in a circle or to no web address ({code}): expected https"
        return UNAVAILABLE, f"{self.asked} answers {code}, expected a file of {model}"


def why(error):
    reason = getattr(error, "reason", error)
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return text + ("; Debian's package ca-certificates has what it is checked by" if "CERTIFICATE_VERIFY" in text else "")


@dataclass
class File:
    """A file of a model: its `path` there, its size in bytes, and a digest: SHA-256 or, of small ones, the SHA-1 that git has of them."""
    path: str
    size: int
    digest: str

    def fits(self, place):
        """Whether this is the file at `place`."""
        try:
            about = os.stat(place)
            if not stat.S_ISREG(about.st_mode) or about.st_size != self.size:
                return False
            digest = hashlib.sha256() if len(self.digest) == 64 else hashlib.sha1(b"blob %d\0" % self.size)
            with open(place, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except FileNotFoundError:
            return False
        return digest.hexdigest() == self.digest


def read_file(entry):
    """A File of what the hub says of one."""
    path, size, large = entry["rfilename"], entry["size"], entry.get("lfs")
    digest = large["sha256"] if large else entry["blobId"]
    if not is_plain(path):
        raise ValueError(f"a file's name is '{path[:100]}'")
    if type(size) is not int or size < 0 or not re.fullmatch("[0-9a-f]{64}" if large else "[0-9a-f]{40}", digest):
        raise ValueError(f"no size or checksum of {path}")
    return File(path, size, digest)


def list_files(hub, model, revision):
    """(commit, [File]) of a model."""
    text = bytearray()
    at = f"/revision/{urllib.parse.quote(revision, safe='')}" if revision else ""  # one word there, whatever slashes a branch has
    with hub.open(f"/api/models/{model}{at}?blobs=true", model) as answer:
        promised = answer.headers.get("Content-Length", "")
        for block in hub.blocks(answer):
            text += block
            if len(text) > LIST_BYTES:
                raise Failure(DATA, f"what {hub.asked} lists of {model} is without end, expected {LIST_BYTES} bytes at most")
    if promised.isdecimal() and len(text) < int(promised):
        raise Failure(UNAVAILABLE, f"{hub.asked} ended the connection after {len(text)} of {promised} bytes of what it lists of {model}")
    try:
        said = json.loads(text)
        files = [read_file(entry) for entry in said["siblings"]]
        if not re.fullmatch("[0-9a-f]{40}", said["sha"]):
            raise ValueError("no commit")
        return said["sha"], files
    except KeyError as error:
        reason = f"no {error}"
    except (TypeError, AttributeError):
        reason = "a value of another kind"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise Failure(DATA, f"what {hub.asked} lists of {model} cannot be read: {reason}; expected names, sizes and checksums of files")
