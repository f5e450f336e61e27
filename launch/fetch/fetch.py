"""What `tandem fetch hf:OWNER/NAME[/FILE]` does (launch/tandem): brings models from the Hugging Face hub, each file whole or not at all.

python3 -I fetch.py FOLDER OWN {hf:OWNER/NAME[@REVISION][/FILE] PLACE}...       a REVISION may have slashes

The hub lists a model's files with sizes and checksums, as of one commit, and that commit's files are fetched. A file comes to OWN, a folder that is
this user's alone, under its checksum as a name: so what an interrupted call left is of the same file, and the next one goes on behind it. When size
and checksum are right it is moved to PLACE or, where that is empty, to FOLDER/hf/OWNER/NAME/FILE.

Exit: 0 all is there, 64 usage, 65 not what was expected, 69 not to be had, 74 the disk, 128 + N ended by signal N.
"""
import difflib
import fcntl
import os
import re
import shutil
import signal
import stat
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which python3 -I leaves out
sys.dont_write_bytecode = True

from hub import DATA, IO, UNAVAILABLE, USAGE, Failure, Hub, is_plain, list_files

WORD = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,95}"
NAME = re.compile(rf"hf:({WORD}/{WORD})(?:@({WORD}))?(?:/(.*))?", re.DOTALL)
# A folder as Tandem and others read it; the weights are one file, or numbered ones.
PARTS = ("generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
         "model.safetensors.index.json")
NUMBERED = re.compile(r"model-[0-9]+-of-[0-9]+\.safetensors")
MOST_SLASHES = 5  # in a revision; each asks the hub once more
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def visible(text):
    """What would move a terminal's cursor stands as an escape that can be read."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def say(text):
    clear = "\r\033[K" if sys.stderr.isatty() else ""  # of the bar
    print(f"{clear}tandem: {visible(text)}", file=sys.stderr, flush=True)


def amount(count):
    for unit, size, digits in (("GB", 1e9, 1), ("MB", 1e6, 0), ("kB", 1e3, 0)):
        if count >= size:
            return f"{count / size:.{digits}f} {unit}"
    return f"{count} bytes"


def size_of(place):
    return os.path.getsize(place) if os.path.exists(place) else 0


class Bar:
    """How far a file is, on a line of a terminal; nothing where stderr is none."""

    def __init__(self, file, first):
        self.file, self.first, self.begun = file, first, time.monotonic()
        self.next = 0 if sys.stderr.isatty() else float("inf")

    def show(self, have):
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + 0.2
        speed = (have - self.first) / max(now - self.begun, 0.001)
        left = f", {(self.file.size - have) / speed:.0f} s left" if speed else ""
        done = "#" * (20 * have // max(self.file.size, 1))
        line = f"{self.file.path[-28:]} [{done:<20}] {amount(have)} of {amount(self.file.size)}, {amount(int(speed))}/s{left}"
        print(f"\r{line[:os.get_terminal_size(2).columns - 1]}\033[K", end="", file=sys.stderr, flush=True)


def list_revision(hub, model, revision, asked):
    """(revision, file, commit, files): a branch may have slashes in its name, and the file stands behind them. git has no branch a beside a/b."""
    words = asked.split("/") if revision and asked else []
    for count in range(min(len(words), MOST_SLASHES) + 1):
        try:
            at = "/".join([revision, *words[:count]]) if revision else None
            return at, "/".join(words[count:]) or (None if revision else asked), *list_files(hub, model, at)
        except Failure as failure:
            first = failure if count == 0 else first
            if failure.code != USAGE:  # but for a revision that there is not
                raise
    raise first


def choose(model, files, path):
    """The files to fetch: the one that was asked for, or those of a folder, config.json last."""
    by_path = {file.path: file for file in files}
    if path is not None:
        if path not in by_path:
            near = difflib.get_close_matches(path, by_path, 3, 0.3) or sorted(by_path)[:3]
            raise Failure(USAGE, f"{model} has no file {path}, expected one as {', '.join(near)}")
        return [by_path[path]]
    weights = ["model.safetensors"] if "model.safetensors" in by_path else sorted(filter(NUMBERED.fullmatch, by_path))
    if not weights:
        raise without_weights(model, files)
    for needed in ("config.json", "tokenizer.json"):
        if needed not in by_path:
            raise Failure(DATA, f"{model} has no {needed}, without which its safetensors cannot be read")
    return [by_path[name] for name in (*PARTS, *weights, "config.json") if name in by_path]


def without_weights(model, files):
    forms = [file for file in files if file.path.endswith(".gguf")]
    if not forms:
        return Failure(DATA, f"{model} has neither model.safetensors nor a GGUF file, expected one of them")
    for file in forms:
        say(f"hf:{model}/{file.path}, {amount(file.size)}")
    return Failure(USAGE, f"{model} has GGUF files alone, expected one of these names")


def download(hub, model, commit, file, partial):
    """Brings what `partial` lacks of the file."""
    have = size_of(partial)
    if have == file.size and have:
        return
    say(f"fetching {file.path}, {amount(file.size)}" + (f", {amount(have)} of it are there" if have else ""))
    with hub.open(f"/{model}/resolve/{commit}/{urllib.parse.quote(file.path)}", model, have, file.path) as answer, open(partial, "ab") as out:
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            out.truncate(0)  # the file is sent from its beginning
            have = 0
        bar = Bar(file, have)
        for block in hub.blocks(answer):
            have += len(block)
            if have > file.size:
                raise Failure(DATA, f"{hub.asked} sends more of {file.path} than {file.size} bytes, which were listed: it is not kept")
            out.write(block)
            bar.show(have)
        out.flush()
        os.fsync(out.fileno())
    if have < file.size:
        raise Failure(UNAVAILABLE, f"{hub.asked} ended the connection after {have} of {file.size} bytes of {file.path}")


def bring(hub, model, commit, file, own, place):
    """The file to its place, whole or not at all. A failure says what is kept."""
    partial = partial_of(file, own)
    try:
        download(hub, model, commit, file, partial)
        if not file.fits(partial):
            raise Failure(DATA, f"{file.path} of {model} has another checksum than {file.digest}: it is not kept")
    except (Failure, OSError) as failure:
        if getattr(failure, "code", None) == DATA:
            os.unlink(partial)
        elif size_of(partial):
            failure.kept = f"; {amount(size_of(partial))} of it are kept, and the same command goes on from there"
        raise
    os.replace(partial, place)
    folder = os.open(os.path.dirname(place), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def partial_of(file, own):
    return os.path.join(own, f"{file.digest}.partial")


def make_folders(folder, path):
    """The folders of FOLDER/`path`, each of them this user's alone, so that nothing is written through what others put there."""
    for part in path.split("/")[:-1]:
        folder = os.path.join(folder, part)
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o755)
        about = os.lstat(folder)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise Failure(IO, f"{folder} is not a folder of this user alone, and nothing is kept there")


def check_room(name, files, folder, own):
    need = sum(file.size - size_of(partial_of(file, own)) for file in files)
    free = shutil.disk_usage(own).free
    if need > free:
        raise Failure(IO, f"{name} needs {amount(need)} more, and {folder} has room for {amount(free)}")


def fetch(hub, name, place, folder, own):
    """All that `name` stands for, to `place`, or to a folder of its name."""
    match = NAME.fullmatch(name)
    if not match or not is_plain(name):
        raise Failure(USAGE, f"'{name[:100]}' names nothing of the hub, expected hf:OWNER/NAME, hf:OWNER/NAME/FILE or hf:OWNER/NAME@REVISION")
    model, revision, asked = match.groups()
    revision, asked, commit, files = list_revision(hub, model, revision, asked)
    wanted = {file.path: file for file in choose(model, files, asked)}
    base = f"hf/{model}{f'@{revision}' if revision else ''}"
    places = {path: place or os.path.join(folder, base, path) for path in wanted}
    missing = [path for path, file in wanted.items() if not file.fits(places[path])]
    check_room(name, [wanted[path] for path in missing], folder, own)
    if not place:
        for path in wanted:
            make_folders(folder, f"{base}/{path}")
    if missing and asked is None:  # without config.json a folder is no model, until the rest of it is there
        if "config.json" not in missing:
            missing.append("config.json")
        if os.path.lexists(places["config.json"]):
            os.unlink(places["config.json"])
    for path in missing:
        bring(hub, model, commit, wanted[path], own, places[path])
    say(f"{place or os.path.join(folder, 'hf', name[3:])} is there")


def end(number, _):
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Failure(128 + number, "ended")


def main(folder, own, *names):
    for number in SIGNALS:
        signal.signal(number, end)
    try:
        with open(os.path.join(own, "lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time
            hub = Hub()
            for name, place in zip(names[::2], names[1::2]):
                fetch(hub, name, place, folder, own)
    except Failure as failure:
        say(f"{failure}{getattr(failure, 'kept', '')}")
        return failure.code
    except OSError as error:
        say(f"cannot write {error.filename or folder}: {error.strerror}{getattr(error, 'kept', '')}")
        return IO
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
