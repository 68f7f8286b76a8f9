"""Trials of several workers: commands that are begun, trained and ended together."""
import contextlib
import re
import sqlite3

from support import *

# Every rank says what it was given. Rank 0 listens at MASTER_ADDR:MASTER_PORT; at each step all others send a number,
# and get the sum of all. FATE is Python that each rank runs before a step.
GANG = r'''
import json, os, pathlib, signal, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
trial, step = int(os.environ["HYPERTUNE_TRIAL"]), int(os.environ["HYPERTUNE_STEP"])
names = """RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT
HYPERTUNE_RANK HYPERTUNE_WORLD_SIZE HYPERTUNE_CHECKPOINT HYPERTUNE_RESTORE HYPERTUNE_STEP CUDA_VISIBLE_DEVICES""".split()
with open("begun.jsonl", "a") as out:
    out.write(json.dumps({"trial": trial, "pid": os.getpid(), **{name: os.environ.get(name) for name in names}}) + "\n")
def once(name):
    try: return os.close(os.open(f"once-{name}", os.O_CREAT | os.O_EXCL)) is None
    except FileExistsError: return False
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(at)
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    for _ in range(200):
        try: peers = [socket.create_connection(at)]; break
        except ConnectionRefusedError: time.sleep(0.05)
def hear(peer):
    data = peer.recv(8)
    if not data: raise ConnectionError("connection closed by peer")
    return int(data)
def sum_up(number):
    if rank != 0:
        peers[0].sendall(b"%8d" % number)
        return hear(peers[0])
    total = number + sum(hear(peer) for peer in peers)
    for peer in peers: peer.sendall(b"%8d" % total)
    return total
print(f"rank {rank} of {size} is there", flush=True)
while step < int(os.environ.get("STEPS", "4")):
    exec(os.environ.get("FATE", ""))
    report = {"step": step, "accuracy": sum_up(10 ** rank), "pid": os.getpid()}
    if os.environ.get("HYPERTUNE_CHECKPOINT") and os.environ.get("SAVES", "1") == "1":
        (pathlib.Path(os.environ["HYPERTUNE_CHECKPOINT"]) / f"s{step}").mkdir()
        report["checkpoint"] = f"s{step}"
    print(json.dumps(report), flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0")))
    step += 1
exec(os.environ.get("END", ""))
'''

SWEEP = """\
name: gang
trial: {command: [python3, gang.py], stop_grace: 5s}
space: {x: {uniform: [0, 1]}}
metric: accuracy
mode: max
samples: 1
workers: 3
executor: {type: local, cpus: 4}
output: runs/gang
"""


class GangCase(Case):
    def setUp(self):
        super().setUp()
        self.write(GANG, "gang.py")
        for name in ("RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"):
            self.environment.pop(name, None)

    def run_gang(self, *arguments, text=SWEEP, code=0, **environment):
        self.environment.update(environment)
        out, err = self.run_command("run", self.write(text), "--plain", *arguments, code=code)
        self.assert_nothing_left()
        return out, err

    def trial(self, number=0):
        return {**self.results("runs/gang", history=True)[number], "attempts": self.attempts(number)}

    def attempts(self, trial):
        return max(1 + int(b["TORCHELASTIC_RESTART_COUNT"]) for b in self.begun() if b["trial"] == trial)

    def begun(self):
        return [json.loads(line) for line in (self.folder / "begun.jsonl").read_text().splitlines()]

    def log(self, name="log", trial=0):
        return (self.folder / f"runs/gang/trials/{trial}" / name).read_text()


class Gangs(GangCase):
    def test_each_rank_has_its_place_and_rank_0_alone_reports(self):
        for isolation in ("process", "thread"):
            with self.subTest(isolation):
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
                (self.folder / "begun.jsonl").unlink(missing_ok=True)
                _, err = self.run_gang("--set", f"executor.isolation={isolation}")
                self.assertIn(", 3 workers a trial,", err)
                begun = sorted(self.begun(), key=lambda b: b["RANK"])
                self.assertEqual([b["RANK"] for b in begun], ["0", "1", "2"])
                for rank, b in enumerate(begun):
                    self.assertEqual((b["LOCAL_RANK"], b["WORLD_SIZE"], b["LOCAL_WORLD_SIZE"], b["GROUP_RANK"]), (str(rank), "3", "3", "0"))
                    self.assertEqual((b["HYPERTUNE_RANK"], b["HYPERTUNE_WORLD_SIZE"]), (str(rank), "3"))
                    self.assertEqual((b["MASTER_ADDR"], b["MASTER_PORT"]), ("127.0.0.1", begun[0]["MASTER_PORT"]))
                    self.assertEqual((b["TORCHELASTIC_RESTART_COUNT"], b["HYPERTUNE_RESTORE"]), ("0", None))
                    self.assertEqual(b["HYPERTUNE_CHECKPOINT"] is not None, rank == 0)
                trial = self.trial()
                self.assertEqual((trial["state"], trial["steps"], trial["failures"]), ("completed", 4, 0))
                self.assertEqual([r["accuracy"] for r in trial["history"]], [111] * 4)
                self.assertEqual({r["pid"] for r in trial["history"]}, {begun[0]["pid"]})
                self.assertEqual(self.log(), "rank 0 of 3 is there\n")
                for rank in (1, 2):
                    lines = self.log(f"worker-{rank}.log").splitlines()
                    self.assertEqual(lines[0], f"rank {rank} of 3 is there")
                    self.assertEqual([json.loads(line)["step"] for line in lines[1:]], [0, 1, 2, 3])

    def test_gpus_are_shown_as_torchrun_shows_them(self):
        self.run_gang("--set", "resources={gpus: 1, cpus: 1}", CUDA_VISIBLE_DEVICES="4,5,7")
        self.assertEqual(len({b["CUDA_VISIBLE_DEVICES"] for b in self.begun()}), 1)
        self.assertEqual(sorted(self.begun()[0]["CUDA_VISIBLE_DEVICES"].split(",")), ["4", "5", "7"])

    def test_a_rank_that_is_killed_costs_no_failure(self):
        for rank in (0, 2):
            for isolation in ("process", "thread"):
                with self.subTest(rank=rank, isolation=isolation):
                    shutil.rmtree(self.folder / "runs", ignore_errors=True)
                    for file in self.folder.glob("*-*"): file.unlink()
                    (self.folder / "begun.jsonl").unlink(missing_ok=True)
                    _, err = self.run_gang("--set", f"executor.isolation={isolation}",
                                           FATE=f"if step == 2 and rank == {rank} and once('killed-{rank}'): time.sleep(0.5); os.kill(os.getpid(), 9)")
                    self.assertIn(f"trial 0 goes on from its last checkpoint, with what workers there is room for: rank {rank}: the command was killed", err)
                    trial = self.trial()
                    self.assertEqual((trial["state"], trial["steps"], trial["failures"], trial["attempts"]), ("completed", 4, 0, 2))
                    with contextlib.closing(sqlite3.connect(self.folder / "runs/gang/experiment.db")) as database:
                        self.assertEqual(database.execute("SELECT failures, attempts FROM trials").fetchall(), [(0, 2)])
                    again = [b for b in self.begun() if b["TORCHELASTIC_RESTART_COUNT"] == "1"]
                    self.assertEqual(sorted(b["RANK"] for b in again), ["0", "1", "2"])
                    for b in again:
                        self.assertEqual(b["HYPERTUNE_STEP"], "2")
                        self.assertTrue(b["HYPERTUNE_RESTORE"])

    def test_a_worker_process_that_is_killed_takes_its_command_along(self):
        self.run_gang(FATE="if step == 2 and rank == 1 and once('parent'): os.kill(os.getppid(), 9); time.sleep(60)")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["failures"], trial["attempts"]), ("completed", 0, 2))

    def test_a_trial_that_is_lost_again_and_again_has_failed(self):
        _, err = self.run_gang(FATE="if step == 1 and rank == 1: time.sleep(0.5); os.kill(os.getpid(), 9)", code=1)
        trial = self.trial()
        self.assertEqual((trial["state"], trial["attempts"], trial["failures"]), ("failed", 4, 1))

    def test_a_rank_may_end_early_or_late(self):
        begin = time.monotonic()
        self.run_gang(END="if rank == 2: sys.exit(0)\nif rank == 1: time.sleep(1); print('late', flush=True)")
        self.assertEqual(self.trial()["state"], "completed")
        self.assertTrue(self.log("worker-1.log").endswith("\nlate\n"))
        shutil.rmtree(self.folder / "runs")
        self.run_gang(END="if rank == 1: time.sleep(0.3); sys.exit('late and wrong')", code=1)
        self.assertEqual(self.trial()["cause"], "rank 1: the command exited with code 1: late and wrong (rank 2 had ended before)")
        shutil.rmtree(self.folder / "runs")
        self.run_gang("--set", "trial.stop_grace=0.5s", END="if rank == 1: time.sleep(600)")
        self.assertEqual(self.trial()["state"], "completed")
        self.assertLess(time.monotonic() - begin, 300)

    def test_as_many_workers_as_there_is_room_for(self):
        self.run_gang("--set", "workers={min: 2, max: 4}", "--set", "executor.cpus=3")
        self.assertEqual(self.trial()["state"], "completed")
        self.assertEqual({b["WORLD_SIZE"] for b in self.begun()}, {"3"})

    def test_a_request_that_can_never_be_held(self):
        _, err = self.run_command("run", self.write(SWEEP), "--set", "workers=5", code=2)
        self.assertIn("no trial can ever run: needs 5 workers", err)
        self.assertFalse((self.folder / "begun.jsonl").exists())
        for text, words in (("workers: 0", "'workers' must be 1 or more, not 0"), ("workers: {min: 3, max: 2}", "'workers.max' must be"),
                            ("workers: {max: 3, placement: packed}", "did you mean 'pack'?"), ("workers: {placement: pack}", "needs a number"),
                            ("workers: 3\ngroup: {network: everywhere}", "'group.network' must be a network such as 10.1.0.0/16")):
            _, err = self.run_command("run", self.write(SWEEP.replace("workers: 3", text), "bad.yaml"), code=2)
            self.assertRegex(err, r"bad.yaml:[78]: .*" + re.escape(words))

    def test_gangs_larger_than_the_machine_wait_for_each_other(self):
        self.run_gang("--set", "samples=6", STEPS="2", PAUSE="0.05")
        results = self.results("runs/gang")
        self.assertEqual([(r["state"], r["steps"], self.attempts(r["trial"])) for r in results], [("completed", 2, 1)] * 6)
        for trial in range(6):
            self.assertEqual(sorted(b["RANK"] for b in self.begun() if b["trial"] == trial), ["0", "1", "2"])

    def test_paused_gangs_go_on(self):
        for saves in ("1", "0"):
            for isolation in ("process", "thread"):
                with self.subTest(saves=saves, isolation=isolation):
                    shutil.rmtree(self.folder / "runs", ignore_errors=True)
                    text = SWEEP.replace("samples: 1", "samples: 5\nschedule: {type: asha, grace_period: 1, max_steps: 4, reduction_factor: 2, promotion: true}")
                    self.run_gang("--set", f"executor.isolation={isolation}", text=text, SAVES=saves)
                    results = self.results("runs/gang")
                    self.assertTrue(any(r["state"] == "completed" and r["steps"] == 4 for r in results), results)
                    self.assertEqual([r["failures"] for r in results], [0] * 5)
                    self.assert_each_report_once("runs/gang")

    def test_an_interrupted_gang_is_resumed_with_another_number(self):
        self.environment.update(PAUSE="0.1", STEPS="20")
        process = self.start("run", self.write(SWEEP), "--plain")
        wait_until(lambda: (self.folder / "begun.jsonl").exists() and len(self.results("runs/gang", history=True)[0]["history"]) > 2, "reports")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assert_nothing_left()
        self.run_gang("--resume", "--set", "workers=2", PAUSE="0")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["steps"], trial["failures"]), ("completed", 20, 0))
        self.assertEqual(trial["history"][-1]["accuracy"], 11)
        self.assertEqual({b["WORLD_SIZE"] for b in self.begun() if b["TORCHELASTIC_RESTART_COUNT"] != "0"}, {"2"})

    def test_a_person_says_how_many_workers_it_has(self):
        self.environment.update(PAUSE="0.1", STEPS="40")
        text = SWEEP.replace("workers: 3", "workers: {min: 2, max: 4}")
        process = self.start("run", self.write(text), "--plain")
        self.addCleanup(process.kill)
        sizes = lambda: [b["WORLD_SIZE"] for b in self.begun() if b["RANK"] == "0"] if (self.folder / "begun.jsonl").exists() else []
        wait_until(lambda: sizes() and len(self.results("runs/gang", history=True)[0]["history"]) > 2, "reports")
        out, _ = self.run_command("resize", "runs/gang", "0", "--workers", "2")
        self.assertEqual(out, "trial 0 begins again with 2 workers after a report with a checkpoint, as far as there is room\n")
        wait_until(lambda: sizes() == ["4", "2"], "two workers")
        _, err = self.run_command("resize", "runs/gang", "0", "--workers", "5", code=2)
        self.assertIn("a trial has 2 to 4 workers, not 5", err)
        wait_until(lambda: self.trial()["attempts"] == 2, "the second attempt")
        out, _ = self.run_command("resize", "runs/gang", "--workers", "0")
        self.assertRegex(out, "trial 0 .* as many workers as there is room for")
        wait_until(lambda: sizes() == ["4", "2", "4"], "four workers")
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("trial 0 begins again with fewer workers: it was asked for", err)
        self.assertIn("trial 0 begins again with more workers: there is room that no other trial waits for", err)
        trial = self.trial()
        self.assertEqual((trial["state"], trial["steps"], trial["failures"]), ("completed", 40, 0))
        self.assert_each_report_once("runs/gang")
        self.assert_nothing_left()
        _, err = self.run_command("resize", "runs/gang", "0", "--workers", "2", code=2)
        self.assertIn("nobody runs the experiment", err)


class Alone(GangCase):
    """What the load of other tests would change: whose failure is noticed first, and what takes a second at most."""

    def test_a_rank_that_fails_is_named(self):
        self.run_gang(FATE="if step == 1 and rank == 2: sys.exit('no such data')", code=1)
        trial = self.trial()
        self.assertEqual(trial["state"], "failed")
        self.assertEqual(trial["cause"], "rank 2: the command exited with code 1: no such data")
        shutil.rmtree(self.folder / "runs")
        self.run_gang(FATE="if step == 1 and rank == 1: print('the last words', flush=True); os._exit(7)", code=1)
        self.assertEqual(self.trial()["cause"], "rank 1: the command exited with code 7: the last words")
        shutil.rmtree(self.folder / "runs")
        # What is noticed first need not be the reason: one that speaks of a lost connection waits for the others.
        self.run_gang(FATE="if step == 1 and rank == 0: sys.exit('Connection reset by peer')\n"
                           "if step == 1 and rank == 2: time.sleep(0.6); sys.exit('no such data')", code=1)
        self.assertEqual(self.trial()["cause"], "rank 2: the command exited with code 1: no such data")
        shutil.rmtree(self.folder / "runs")
        self.run_gang("--set", "failures.max=1", FATE="if step == 1 and rank == 1 and once('fails'): sys.exit(7)")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["failures"], trial["attempts"]), ("completed", 1, 2))

    def test_a_quiet_rank_does_not_hang_but_rank_0_may(self):
        self.run_gang("--set", "hang_timeout=1s", FATE="if rank: sys.stdout = open(os.devnull, 'w')", PAUSE="0.4", STEPS="6")
        self.assertEqual(self.trial()["state"], "completed")
        shutil.rmtree(self.folder / "runs")
        self.run_gang("--set", "hang_timeout=1s", FATE="if step == 1: time.sleep(60)", code=1)
        self.assertEqual(self.trial()["cause"][:20], "rank 0: hung: nothin")


if __name__ == "__main__":
    unittest.main()
