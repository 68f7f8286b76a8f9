"""What the parts of testk8s share."""
import os
import pathlib
import signal
import subprocess
import time

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"


class CannotBeHad(Exception):
    """There can be no Kubernetes here, and why."""


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise CannotBeHad(f"{what} has not come about within {seconds} s")
        time.sleep(0.05)


def call(*words, check=True, seconds=120, **more):
    done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=seconds, env={**os.environ, "PATH": PATH}, **more)
    if check and done.returncode != 0:
        raise CannotBeHad(f"{' '.join(map(str, words[:4]))}: {done.stderr.strip()[-500:] or done.returncode}")
    return done


def processes_with(variable):
    """Processes that have this (NAME=VALUE) in their environment, by their numbers outside of any namespace."""
    wanted, found = variable.encode(), []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pids, number=signal.SIGKILL):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
