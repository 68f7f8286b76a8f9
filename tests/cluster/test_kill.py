"""A provider whose machines are processes, and drivers that are killed at any moment: no machine is ever forgotten."""
import random

from cluster_case import *


class Kill(Case):
    def setUp(self):
        super().setUp()
        self.machines = self.folder / "machines.json"
        self.environment["MACHINES_STATE"] = str(self.machines)
        self.write("c.yaml", f"""
cluster_name: killed
max_workers: 4
min_workers: 4
provider: {{type: command, command: ["{MACHINES}"], start_timeout: 60s}}
auth: {{ssh_user: nobody}}
available_node_types:
  head: {{resources: {{CPU: 1}}, max_workers: 0, price: 0.5}}
  worker: {{resources: {{CPU: 1}}, spot: true, price: {{on_demand: 2, spot: 1}}}}
head_node_type: head
""")
        self.addCleanup(self.end_all)

    def known(self):
        return json.loads(self.machines.read_text()) if self.machines.exists() else {}

    def end_all(self):
        for machine in self.known().values():
            if machine.get("pid"):
                try:
                    os.kill(machine["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def assert_nothing_left(self, seen):
        self.assertEqual(self.known(), {})
        for pid in seen:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists() and
                             pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"), pid)

    def pids(self):
        return {machine["pid"] for machine in self.known().values() if machine.get("pid")}

    def kill_within(self, process, generator, machines):
        """Kills it at a moment that follows its progress, however fast that is here: once so many machines are there."""
        wanted = generator.randint(0, machines)
        wait_until(lambda: len(self.known()) >= wanted or process.poll() is not None, f"{wanted} machines")
        time.sleep(generator.uniform(0, 0.2))  # what it is doing then is what varies
        process.kill()
        process.communicate()

    def test_up_killed_anywhere_then_down(self):
        generator = random.Random(int(os.environ.get("SEED", "1")))
        most = 0
        for attempt in range(12):
            process = self.start("up", "c.yaml", "-y")
            self.kill_within(process, generator, 5)
            seen = self.pids()
            if generator.random() < 0.3:  # a second driver takes over, and is killed as well
                again = self.start("up", "c.yaml", "-y")
                self.kill_within(again, generator, 5)
                seen |= self.pids()
            most = max(most, len(seen))
            self.run_command("down", "c.yaml", "-y")
            self.assert_nothing_left(seen | self.pids())
        self.assertGreater(most, 0)

    def test_killed_while_the_provider_works(self):
        slow = self.write("slow.sh", f"#!/bin/sh\ninput=$(cat)\ncase $input in *'\"verb\":\"create\"'*) : >\"{self.folder}/asked\"; sleep 1.5;; esac\n"
                          f"printf %s \"$input\" | exec {MACHINES}\n", 0o755)
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace(str(MACHINES), str(slow)))
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: (self.folder / "asked").exists(), "the call")
        process.kill()
        process.communicate()
        self.assertEqual(self.known(), {})     # nothing yet: it is being made
        self.run_command("down", "c.yaml", "-y")  # waits for the call of the one that died
        self.assertEqual(self.known(), {})
        journal = (self.folder / "state/clusters/killed/journal.jsonl").read_text()
        self.assertIn('"op":"gone"', journal)

    def test_down_killed_anywhere_then_down(self):
        generator = random.Random(2)
        for attempt in range(4):
            process = self.start("up", "c.yaml", "-y")
            wait_until(lambda: len(self.known()) == 5, "five machines")
            process.send_signal(signal.SIGINT)
            self.finish(process)
            self.assertEqual(process.returncode, 130)
            seen = self.pids()
            self.assertEqual(len(seen), 5)
            process = self.start("down", "c.yaml", "-y")
            time.sleep(generator.uniform(0, 0.5))
            process.kill()
            process.communicate()
            self.run_command("down", "c.yaml", "-y")
            self.assert_nothing_left(seen)

    def test_found_by_tag_without_the_journal(self):
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: len(self.known()) == 5, "five machines")
        process.kill()
        process.communicate()
        seen = self.pids()
        shutil.rmtree(self.folder / "state")
        out, err = self.run_command("down", "c.yaml", "-y")
        self.assertIn("5 machines ended", out)
        self.assertIn("made elsewhere", err)
        self.assert_nothing_left(seen)

    def test_no_spot_then_on_demand_and_what_it_costs(self):
        # The provider has no spot machines.
        refusing = self.write("refusing.sh", "#!/bin/sh\ninput=$(cat)\ncase $input in *'\"spot\":true'*) "
                              "echo '{\"error\": {\"kind\": \"capacity\", \"message\": \"no spot here\"}}'; exit;; esac\n"
                              f"printf %s \"$input\" | exec {MACHINES}\n", 0o755)
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace(str(MACHINES), str(refusing)))
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: len(self.known()) == 5, "five machines")
        state = self.status()
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process)
        self.assertIn("no spot here", err)
        self.assertEqual({m["spot"] for m in state["machines"]}, {False})
        self.assertGreater(state["cost"]["hours"], 0)
        self.assertAlmostEqual(state["cost"]["total"], sum(l["hours"] * l["price"] for l in state["cost"]["lines"]), places=4)
        out, _ = self.run_command("down", "c.yaml", "-y")
        self.assertIn("host hours", out)

    def wrap(self, script):
        """A provider in front of the machines: `script` may answer in their place, or wait."""
        wrapper = self.write("wrapper.sh", f"#!/bin/sh\ninput=$(cat)\ncase $input in *'\"verb\":\"create\"'*)\n{script}\n;; esac\n"
                             f"printf %s \"$input\" | exec {MACHINES}\n", 0o755)
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace(str(MACHINES), str(wrapper)))

    NONE_THERE = "echo '{\"error\": {\"kind\": \"capacity\", \"message\": \"none to be had\"}}'; exit"

    def test_up_asks_again_where_there_is_no_capacity(self):
        # None for the head at first, and for the workers neither in the one market nor in the other.
        self.wrap(f"echo >>{self.folder}/asked; case $(wc -l <{self.folder}/asked) in 1|2|4|5|6|7|8|9|10|11) {self.NONE_THERE};; esac")
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace("start_timeout: 60s", "start_timeout: 300s"))
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: len(self.known()) == 5 or process.poll() is not None, "five machines", 150)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("none to be had; it is asked for again, for 300 s in all (provider.start_timeout)", err)
        self.run_command("down", "c.yaml", "-y")

    def test_up_ends_where_there_is_no_capacity_for_long(self):
        self.wrap(self.NONE_THERE)
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace("start_timeout: 60s", "start_timeout: 3s"))
        begin = time.monotonic()
        process = self.start("up", "c.yaml", "-y")
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 2, err)
        self.assertGreater(time.monotonic() - begin, 3)
        self.assertIn("none to be had", err.splitlines()[-1])
        self.assertEqual(self.known(), {})

    def test_a_create_that_timed_out_is_no_reason_for_on_demand(self):
        self.wrap(f"case $input in *'\"spot\":true'*) if mkdir {self.folder}/hung 2>/dev/null; then exec sleep 60; fi;; esac")
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace("start_timeout: 60s", "start_timeout: 300s, timeout: 8s"))
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: len(self.known()) == 5 or process.poll() is not None, "five machines", 150)
        state = self.status()
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process)
        self.assertIn("did not answer within 8 s", err)
        self.assertEqual([m["spot"] for m in state["machines"] if m["role"] == "worker"], [True] * 4, err)

    def test_down_beside_up_names_it(self):
        self.wrap(f": >{self.folder}/asked; sleep 3")
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: (self.folder / "asked").exists(), "the call")
        _, err = self.run_command("down", "c.yaml", "-y", code=2)
        self.assertIn(f"(process {process.pid} on ", err)
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def test_garbage_from_the_provider_is_one_clear_line(self):
        for text, part in (("echo hello", "no JSON object: 'hello'"), ("exit 3", "exit code 3"), ("true", "answered nothing"),
                           ("echo '{}'", "without a list 'machines'"), ("echo '{\"machines\": [{\"id\": \"-x\"}]}'", "without an id"),
                           ("echo '{\"error\": {\"kind\": \"invalid\", \"message\": \"no such project\"}}'", "no such project"),
                           ("head -c 10000000 /dev/zero | tr '\\0' x", "no JSON object"), ("sleep 60", "did not answer within 1 s")):
            self.write("bad.sh", f"#!/bin/sh\n{text}\n", 0o755)
            timeout = "1s" if text.startswith("sleep") else "60s"  # a busy machine takes a while to start a shell
            self.write("c.yaml", f"cluster_name: bad\nprovider: {{type: command, command: [./bad.sh], timeout: {timeout}}}\n")
            process = self.start("up", "c.yaml", "-y")
            out, err = self.finish(process)
            self.assertIn(process.returncode, (1, 2), err)
            self.assertIn(part, err)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.write("c.yaml", "cluster_name: bad\nprovider: {type: command, command: [./nowhere]}\n")
        self.assertIn("cannot run", self.run_command("up", "c.yaml", code=2)[1])


class Deaf(Case):
    def test_a_head_that_never_answers_does_not_stay(self):
        self.make_cloud()
        provider = pathlib.Path(__file__).resolve().parent / "host_machines.py"
        self.write("c.yaml", f"""
cluster_name: deaf
max_workers: 0
provider: {{type: command, command: ["{provider}", "{self.cloud}", "{os.getpid()}"], start_timeout: 3s, settings: {{deaf: 1}}}}
auth: {{ssh_user: root, ssh_private_key: {self.cloud}/hosts/id}}
""")
        self.addCleanup(lambda: self.finish(self.start("down", "c.yaml", "-y")))
        process = self.start("up", "c.yaml", "-y")
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("is ended, as it never answered", err)
        self.assertEqual(json.loads((self.cloud / "machines.json").read_text()), {})
        self.assertEqual(self.status()["machines"], [])
        self.run_command("up", "c.yaml", "-y")
        (head,) = self.status()["machines"]
        self.assertTrue(head["ready"])
        # One that has answered once is kept, whatever becomes of it: there may be results on it.
        subprocess.run([HOSTS, self.cloud / "hosts", "kill", head["id"].removeprefix("host")], check=True, capture_output=True, timeout=60)
        process = self.start("up", "c.yaml", "-y")
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 1, err)
        self.assertNotIn("is ended", err)
        self.assertEqual([m["id"] for m in self.status()["machines"]], [head["id"]])


if __name__ == "__main__":
    unittest.main()
