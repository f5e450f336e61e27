"""Running programs under deadlines, alone or taking turns, and reading the figures that they print: lines "figure,rows,context,value,unit"."""
import os
import queue
import signal
import subprocess
import threading
import time


class Failure(Exception):
    """What a part has to say in one line when it did not work, and all that the program said."""

    def __init__(self, text, said=""):
        super().__init__(text)
        self.said = said


class Skip(Exception):
    """Why a part could not be run here."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def end(process):
    """Ends a program with all that it started: each has a group of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
            return
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def call(words, deadline, accept=(0,), **options):
    """What a program printed. Failure when it ends otherwise than `accept` allows or has not ended at the deadline (of time.monotonic)."""
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=True, **options)
    except OSError as error:
        raise Failure(f"{words[0]}: {error.strerror}") from error
    try:
        text, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end(process)
        text, _ = process.communicate()
        raise Failure(f"{os.path.basename(words[0])} was cut off: its time was over", text) from None
    if process.returncode not in accept:
        raise Failure(f"{os.path.basename(words[0])} ended with {process.returncode}: {last_line(text)}", text)
    return text


def figures(text):
    """[(figure, rows, context, value, unit)] of the lines that are figures."""
    found = []
    for line in text.splitlines():
        words = line.split(",")
        if line.startswith("#") or len(words) != 5:
            continue
        try:
            found.append((words[0], words[1], words[2], float(words[3]), words[4]))
        except ValueError:
            continue
    return found


class Turn:
    """A program that is ready for measurements and makes one for each line that it is sent."""

    def __init__(self, name, words, **options):
        self.name, self.lines, self.remarks, self.last = name, queue.Queue(), [], "it said nothing"
        try:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                bufsize=1, start_new_session=True, **options)
        except OSError as error:
            raise Failure(f"{words[0]}: {error.strerror}") from error
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def until(self, word, deadline):
        """The lines before one that is `word`."""
        lines = []
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failure(f"{self.name} was cut off: its time was over") from None
            if line is None:
                raise Failure(f"{self.name} ended with {self.process.wait()}: {self.last}", "\n".join(lines))
            if line == word:
                return "\n".join(lines)
            lines.append(line)
            self.last = line.strip() or self.last
            if line.startswith("#"):
                self.remarks.append(line[1:].strip())

    def measure(self, deadline):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended; why, reading tells
        return figures(self.until("done", deadline))

    def close(self):
        if self.process.poll() is None:
            end(self.process)


def take_turns(turns, repetitions, deadline, while_warming=None):
    """Measures A B A B. Returns {name: [figures of a repetition]}, and {name: why} for those that failed, which are left out from then on.
    The first round is not counted; `while_warming` is called in it."""
    failed, results = {}, {turn.name: [] for turn in turns}

    def each(action):
        for turn in turns:
            if turn.name not in failed:
                try:
                    action(turn)
                except Failure as failure:
                    failed[turn.name] = str(failure)
                    turn.close()

    def count(turn):
        results[turn.name].append(turn.measure(deadline))

    each(lambda turn: turn.until("ready", deadline))
    timer = threading.Timer(0.2, while_warming) if while_warming else None
    if timer:
        timer.start()
    each(lambda turn: turn.measure(deadline))
    if timer:
        timer.join()
    for _ in range(repetitions):
        each(count)
    for turn in turns:
        turn.close()
    return results, failed
