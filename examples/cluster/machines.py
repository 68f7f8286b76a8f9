#!/usr/bin/env python3
"""A provider for `provider: {type: command}`: its "machines" are processes on this machine.

It shows the whole protocol (docs/cluster.md, "Machines from a program of your own"). Replace the three places marked
HERE with calls of your cloud's command line. The state is one JSON file, so that a repeated create finds its machine.
"""
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import uuid

state_file = pathlib.Path(os.environ.get("MACHINES_STATE", os.path.expanduser("~/.cache/hypertune-machines.json")))
request = json.load(sys.stdin)


def answer(**fields):
    json.dump(fields, sys.stdout)
    sys.exit(0)


state_file.parent.mkdir(parents=True, exist_ok=True)
with open(state_file.with_suffix(".lock"), "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)  # calls may overlap
    machines = json.loads(state_file.read_text()) if state_file.exists() else {}

    def save():
        temporary = state_file.with_suffix(".new")
        temporary.write_text(json.dumps(machines))
        temporary.replace(state_file)

    def show(machine):
        return {key: machine[key] for key in ("id", "state", "address", "port", "host_keys", "tags") if key in machine}

    def launch(machine):  # HERE: start a machine, and save at once how to find it
        process = subprocess.Popen(["sleep", "1000000"], start_new_session=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        machine.update(pid=process.pid, state="running", address="127.0.0.1")

    def end(machine):  # HERE: end the machine; a machine that is already gone is not an error
        if machine.get("pid"):
            try:
                os.kill(machine["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        machine["pid"] = None

    verb = request["verb"]
    if verb == "list":  # HERE: list the machines with the tag hypertune-cluster=request["cluster"]
        answer(machines=[show(m) for m in machines.values() if m["tags"]["hypertune-cluster"] == request["cluster"]])
    elif verb == "create":
        for machine in machines.values():
            if machine["tags"]["hypertune-token"] == request["token"]:
                answer(machine=show(machine))
        limit = int(os.environ.get("MACHINES_LIMIT", "100"))
        if len(machines) >= limit:
            answer(error={"kind": "capacity", "message": f"there are {limit} machines already"})
        machine = {"id": "m-" + uuid.uuid4().hex[:12], "tags": request["tags"], "state": "pending", "address": ""}
        launch(machine)
        machines[machine["id"]] = machine
        save()
        answer(machine=show(machine))
    elif verb in ("terminate", "stop", "start"):
        for ident in request["ids"]:
            machine = machines.get(ident)
            if machine is None:
                continue
            if verb == "start":
                launch(machine)
            else:
                end(machine)
                machine["state"] = "stopped"
                if verb == "terminate":
                    del machines[ident]
            save()
        answer()
    else:
        answer(error={"kind": "unsupported", "message": f"there is no verb '{verb}' here"})
