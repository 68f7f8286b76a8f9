#!/usr/bin/env python3
"""A provider whose machines are real test hosts: made by `create`, killed and wiped by `terminate`.

Arguments: the folder of the hosts, and the process with which they go. `settings` may limit how many spot machines there
are at once (`spot`), and how many of the first machines never answer (`deaf`). Each change is a line of events.jsonl.
"""
import fcntl
import json
import pathlib
import subprocess
import sys
import time

state = pathlib.Path(sys.argv[1])
testhosts = pathlib.Path(__file__).resolve().parents[1] / "support/hosts/testhosts"
request = json.load(sys.stdin)


def answer(**fields):
    json.dump(fields, sys.stdout)
    sys.exit(0)


def hosts(*words):
    done = subprocess.run([testhosts, state / "hosts", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        answer(error={"kind": "failed", "message": done.stderr.strip() or f"testhosts {words} failed"})
    return done.stdout


with open(state / "lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    file = state / "machines.json"
    machines = json.loads(file.read_text()) if file.exists() else {}

    def save(event, ident):
        file.with_suffix(".new").write_text(json.dumps(machines))
        file.with_suffix(".new").replace(file)
        with open(state / "events.jsonl", "a") as events:
            events.write(json.dumps({"time": time.time(), "event": event, "id": ident, "there": len(machines),
                                     "spot": request.get("spot")}) + "\n")

    if request["verb"] == "list":
        answer(machines=list(machines.values()))
    elif request["verb"] == "create":
        for machine in machines.values():
            if machine["tags"]["hypertune-token"] == request["token"]:
                answer(machine=machine)
        spot = sum(machine["tags"]["hypertune-market"] == "spot" for machine in machines.values())
        if request["spot"] and spot >= request["settings"].get("spot", 100):
            answer(error={"kind": "capacity", "message": "no more spot machines here"})
        events = state / "events.jsonl"
        made = sum('"create"' in line for line in events.read_text().splitlines()) if events.exists() else 0
        if made < request["settings"].get("deaf", 0):
            name = f"deaf{made}"
            machines[name] = {"id": name, "state": "running", "address": "127.0.0.1", "port": 1, "tags": request["tags"],
                              "host_keys": []}
            save("create", name)
            answer(machine=machines[name])
        name = hosts("add").split()[-1]
        for line in (state / "hosts/known_hosts").read_text().splitlines():
            names, key = line.split(" ", 1)
            if name in names.split(","):
                address = names.split(",")[0]
                break
        machines[name] = {"id": name, "state": "running", "address": address, "tags": request["tags"], "host_keys": [key]}
        save("create", name)
        answer(machine=machines[name])
    elif request["verb"] == "terminate":
        for ident in request["ids"]:
            if ident in machines:
                if not ident.startswith("deaf"):
                    hosts("kill", ident.removeprefix("host"), "--wipe")
                del machines[ident]
                save("terminate", ident)
        answer()
    else:
        answer(error={"kind": "unsupported", "message": request["verb"]})
