"""up, exec, rsync, submit and down on real hosts with the local provider."""
from cluster_case import *
from terminal_case import TerminalCase

PROGRAM = r'''#!/bin/sh
echo "arguments: $*"
for host in $(cut -d' ' -f1 "$HYPERTUNE_HOSTS"); do ssh -F "$HYPERTUNE_SSH_CONFIG" "$host" hostname; done
mkdir -p runs/x
echo result >runs/x/r.txt
exit ${1:-0}
'''
SLOW = r'''#!/bin/sh
trap 'echo told to end; echo saved >saved.txt; exit 0' INT
echo begun
i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
'''


class Commands(TerminalCase, HostsCase):
    def setUp(self):
        super().setUp()
        self.name = f"test{os.getpid()}-{self._testMethodName[-20:].replace('_', '-')}"
        self.write("data/a.txt", "one")
        self.write("data/.git/x", "no")
        self.write("data/skip.o", "no")
        self.write("data/.gitignore", "built/\n")
        self.write("data/built/b", "no")
        self.write("data/deep/c.txt", "three")
        self.cluster()
        self.addCleanup(lambda: self.finish(self.start("down", "c.yaml", "-y")))

    def cluster(self, extra="", workers="[host2, host3]"):
        self.write("c.yaml", f"""
cluster_name: {self.name}
provider: {{type: local, head_ip: host1, worker_ips: {workers}}}
auth: {{ssh_config: {self.config}}}
file_mounts: {{~/{self.name}-data: ./data}}
rsync_exclude: ["**/.git", "*.o"]
rsync_filter: [.gitignore]
initialization_commands: ["echo i >>~/{self.name}-phases"]
setup_commands: ["echo s >>~/{self.name}-phases", "cat ~/{self.name}-data/a.txt >>~/{self.name}-phases"]
head_setup_commands: ["echo h >>~/{self.name}-phases"]
worker_setup_commands: ["echo w >>~/{self.name}-phases"]
{extra}
""")

    def test_up_again_and_down(self):
        self.run_command("up", "c.yaml", "-y")
        state = self.status()
        self.assertEqual([m["role"] for m in state["machines"]], ["head", "worker", "worker"])
        self.assertTrue(all(m["ready"] for m in state["machines"]))
        self.assertEqual(self.ssh("host1", f"cat {self.name}-phases"), "i\ns\noneh\n")
        self.assertEqual(self.ssh("host2", f"cat {self.name}-phases"), "i\ns\nonew\n")
        self.assertEqual(self.ssh("host3", f"cd {self.name}-data && find . -type f | sort").split(),
                         ["./.gitignore", "./a.txt", "./deep/c.txt"])
        self.run_command("up", "c.yaml", "-y")  # nothing is done twice
        self.assertEqual(self.ssh("host1", f"cat {self.name}-phases"), "i\ns\noneh\n")
        self.write("data/a.txt", "two")         # what has changed is brought
        self.run_command("up", "c.yaml")
        self.assertEqual(self.ssh("host2", f"cat {self.name}-data/a.txt"), "two")
        out, _ = self.run_command("down", "c.yaml", "-y")
        self.assertIn("3 machines ended", out)
        self.assertIn("0 machines ended", self.run_command("down", "c.yaml", "-y")[0])
        self.assertEqual(self.ssh("host2", f"grep -c hypertune-{self.name} .ssh/authorized_keys; ls .hypertune").strip(), "0")

    def test_exec_rsync_and_addresses(self):
        self.run_command("exec", "c.yaml", "true", code=2)  # not up
        self.run_command("up", "c.yaml", "--min-workers", "1", "--max-workers", "1")
        out, _ = self.run_command("exec", "c.yaml", "echo \"$0 $HOME\" | cat; exit 3", code=3)
        self.assertIn("/", out)
        self.assertEqual(self.run_command("get-head-ip", "c.yaml")[0], "host1\n")
        self.assertEqual(self.run_command("get-worker-ips", "c.yaml")[0], "host2\n")
        self.run_command("rsync-up", "c.yaml", "data", f"{self.name}-up")
        self.assertEqual(self.ssh("host1", f"cat {self.name}-up/deep/c.txt"), "three")
        self.run_command("rsync-up", "c.yaml", "data/a.txt", f"~/{self.name}-up/named.txt", "-A")
        self.assertEqual(self.ssh("host2", f"cat {self.name}-up/named.txt"), "one")
        self.run_command("rsync-down", "c.yaml", f"~/{self.name}-up", "back")
        self.assertEqual((self.folder / "back/deep/c.txt").read_text(), "three")
        self.run_command("rsync-down", "c.yaml", f"~/{self.name}-up/named.txt", "one.txt")
        self.assertEqual((self.folder / "one.txt").read_text(), "one")
        self.assertIn("no file or folder", self.run_command("rsync-down", "c.yaml", "~/nowhere", "x", code=2)[1])

    def listening(self, port):
        """Addresses of this machine at which somebody listens on a port."""
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines() + pathlib.Path("/proc/net/tcp6").read_text().splitlines()
        fields = [line.split() for line in lines]
        return {line[1].split(":")[0] for line in fields if line[3] == "0A" and line[1].endswith(f":{port:04X}")}

    # Says its host's name to whoever asks on a port of the host's own loopback.
    SERVER = ("import http.server, os, sys\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(s):\n"
              "  s.send_response(200); s.end_headers(); s.wfile.write(os.uname().nodename.encode())\n"
              "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n")

    def test_attach_exec_and_forward_at_a_terminal(self):
        self.write("data/serve.py", self.SERVER)
        self.run_command("up", "c.yaml", "-y")
        port = free_port()
        process, terminal = self.at_a_terminal(HYPERTUNE, "attach", "c.yaml", "-p", f"{port}:8123")
        os.write(terminal, b"stty -echo; echo it is $((40 + 2)) on $(hostname), $(stty size), $(tty)\n")
        self.assertIn("it is 42 on host1, 33 101, /dev/pts/", self.read_until(terminal, "/dev/pts/"))
        self.assertEqual(self.listening(port), {"0100007F"})  # loopback alone
        os.write(terminal, f"python3 {self.name}-data/serve.py 8123 2>/dev/null & echo begun $((1 + 1))\n".encode())
        self.read_until(terminal, "begun 2")
        wait_until(lambda: fetched(port) == "host1", "the server through attach")
        os.write(terminal, b"PS1='sto''pped> '; sleep 1000\n")
        wait_until(lambda: self.ssh("host1", "pgrep -fx 'sleep 1000'"), "a program in the foreground")
        os.write(terminal, b"\x03")  # Ctrl-C is the shell's
        self.read_until(terminal, "stopped> ")
        os.write(terminal, b"kill %1; wait; exit 7\n")
        self.assertEqual(process.wait(60), 7)
        self.assertEqual(self.listening(port), set())
        process, terminal = self.at_a_terminal(HYPERTUNE, "attach", "c.yaml", "--worker", "1")
        os.write(terminal, b"echo this is $(hostname)\n")
        self.read_until(terminal, "this is host3")
        os.write(terminal, b"exit\n")
        self.assertEqual(process.wait(60), 0)
        process, terminal = self.at_a_terminal(HYPERTUNE, "exec", "c.yaml", "tty; sleep 1001")
        self.read_until(terminal, "/dev/pts/")
        wait_until(lambda: self.ssh("host1", "pgrep -fx 'sleep 1001'"), "the program there")
        os.write(terminal, b"\x03")  # reaches the program there
        self.assertIn(process.wait(60), (130, 255))  # ssh has no other number for a program that a signal has ended
        self.assertIn("no worker number 2", self.run_command("attach", "c.yaml", "--worker", "2", code=2)[1])
        # exec with a port; then forward, whose ssh must not outlive it.
        process = self.start("exec", "c.yaml", "-p", f"{port}:8124", f"exec python3 {self.name}-data/serve.py 8124")
        wait_until(lambda: fetched(port) == "host1", "the server through exec")
        busy = self.run_command("forward", "c.yaml", f"{port}:8123", code=255)[1]
        self.assertIn(str(port), busy)  # the port is taken: no forward that does nothing
        process.send_signal(signal.SIGTERM)
        self.finish(process)
        self.assertEqual(self.listening(port), set())
        for worker, ending in ((0, signal.SIGINT), (1, signal.SIGKILL)):
            self.ssh(f"host{worker + 2}", f"nohup python3 {self.name}-data/serve.py 8125 </dev/null >/dev/null 2>&1 &")
            process = self.start("forward", "c.yaml", f"{port}:8125", "--worker", str(worker))
            self.assertIn(f"http://127.0.0.1:{port} is port 8125 of host{worker + 2}", process.stdout.readline())
            wait_until(lambda: fetched(port) == f"host{worker + 2}", "the server through forward")
            self.assertEqual(self.listening(port), {"0100007F"})
            process.send_signal(ending)
            self.finish(process)
            self.assertEqual(process.returncode, 0 if ending == signal.SIGINT else -9)
            wait_until(lambda: not self.listening(port), "the end of the forward", 10)
        for wrong in ("0:1", "x", "1:2:3", "70000", "-oProxyCommand=x"):
            self.assertIn("no port to forward", self.run_command("forward", "c.yaml", "-p", wrong, code=2)[1])
        self.assertIn("no port to forward", self.run_command("forward", "c.yaml", code=2)[1])

    def test_submit_is_the_whole_round_trip(self):
        self.write("program.sh", PROGRAM, 0o755)
        out, _ = self.run_command("submit", "--start", "--stop", "c.yaml", "./program.sh", "--", "5", "--lr", "a b", code=5)
        self.assertIn("arguments: 5 --lr a b", out)
        for host in ("host1", "host2", "host3"):  # the head reaches every machine, with host keys checked
            self.assertIn(f"\n{host}\n", out)
        results = pathlib.Path(self.folder / out.split("results: ")[1].split(" (")[0])
        self.assertEqual((results / "runs/x/r.txt").read_text(), "result\n")
        self.assertIn("arguments", (results / "submit.log").read_text())
        self.assertEqual(self.status()["machines"], [])

    def test_a_sweep_uses_all_machines(self):
        self.write("train.sh", "#!/bin/sh\nhostname >&2\nsleep 3\necho '{\"step\": 0, \"loss\": 1}'\n", 0o755)
        # A trial fills a machine: the first one that is there cannot take them all before the others have come.
        self.write("sweep.yaml", f"""
name: s
trial: {{command: [sh, ./train.sh]}}
space: {{x: {{uniform: [0, 1]}}}}
resources: {{cpus: {os.cpu_count()}}}
metric: loss
mode: min
samples: 6
executor: {{type: ssh, file_mounts: {{train.sh: train.sh}}}}
output: runs/s
""")
        out, _ = self.run_command("submit", "--start", "--stop", "c.yaml", "sweep.yaml", "--sync", "train.sh", "-o", "out",
                                  timeout=200)
        trials = json.loads(self.run_command("results", "out/runs/s", "--format", "json")[0])
        self.assertEqual([t["state"] for t in trials], ["completed"] * 6)
        said = "".join(f.read_text(errors="replace") for f in (self.folder / "out/runs/s/trials").rglob("*") if f.is_file())
        hosts = {f"host{i}" for i in (1, 2, 3) if f"host{i}\n" in said}
        self.assertGreater(len(hosts), 1, said)

    def test_a_cpp_program_finds_all_machines(self):
        example = pathlib.Path(os.environ.get("EXAMPLES", "")) / "ssh_hosts"
        if not example.exists():
            self.skipTest("the examples are not built")
        self.run_command("submit", "--start", "--stop", "c.yaml", example, "-o", "out", timeout=200)
        trials = json.loads(self.run_command("results", "out/runs/ssh_hosts", "--format", "json", "--history")[0])
        self.assertEqual(len(trials), 60)
        shipped = [self.ssh(f"host{i}", "ls ~/.cache/hypertune/bin/*/").split() for i in (2, 3)]
        self.assertEqual(shipped, [["ssh_hosts"]] * 2)

    def test_detached_then_followed(self):
        waits = "for i in $(seq 600); do [ -e ~/go ] && break; sleep 0.1; done; mkdir"  # on the head, until it is told
        self.write("program.sh", PROGRAM.replace("mkdir", waits), 0o755)
        self.run_command("submit", "--start", "--detach", "c.yaml", "./program.sh")
        self.assertIn("running", self.run_command("status", "c.yaml")[0])
        self.ssh("host1", "touch ~/go")
        out, _ = self.run_command("submit", "c.yaml", "./program.sh", "-o", "out")  # the same job, not another
        self.assertTrue((self.folder / "out/runs/x/r.txt").exists())
        self.assertEqual(out.count("arguments:"), 1)
        self.assertEqual(len(self.status()["machines"]), 3)
        self.assertIn("--detach", self.run_command("submit", "--detach", "--stop", "c.yaml", "./program.sh", code=2)[1])

    def test_ctrl_c_ends_program_and_machines(self):
        self.write("program.sh", SLOW, 0o755)
        process = self.start("submit", "--start", "--stop", "c.yaml", "./program.sh", "-o", "out")
        wait_until(lambda: "begun" in process.stdout.readline(), "the program")
        process.send_signal(signal.SIGINT)
        out, err = self.finish(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("told to end", out)
        self.assertTrue((self.folder / "out/saved.txt").exists())
        self.assertEqual(self.status()["machines"], [])

    def test_driver_killed_the_job_goes_on(self):
        self.write("program.sh", "#!/bin/sh\necho begun\nsleep 2\necho done >done.txt\n", 0o755)
        process = self.start("submit", "--start", "c.yaml", "./program.sh", "-o", "out")
        wait_until(lambda: "begun" in process.stdout.readline(), "the program")
        process.kill()
        process.communicate()
        out, _ = self.run_command("submit", "c.yaml", "./program.sh", "-o", "out")
        self.assertEqual((self.folder / "out/done.txt").read_text(), "done\n")
        self.assertEqual(out.count("begun"), 1)

    def test_two_drivers_one_cluster(self):
        self.write("program.sh", SLOW, 0o755)
        process = self.start("submit", "--start", "--stop", "c.yaml", "./program.sh")
        wait_until(lambda: "begun" in process.stdout.readline(), "the program")
        _, err = self.run_command("up", "c.yaml", code=2)
        self.assertIn(f"process {process.pid}", err)
        self.assertIn(f"process {process.pid}", self.run_command("status", "c.yaml")[0])
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def test_one_host_that_is_down_is_named_and_the_others_work(self):
        self.cluster(workers="[host2, nowhere.invalid]")
        process = self.start("up", "c.yaml")
        out, err = self.finish(process)
        self.assertEqual(process.returncode, 1, out + err)
        self.assertIn("worker nowhere.invalid: failed", err)
        self.assertIn("head and 1 worker up", out)
        ready = {m["id"]: m["ready"] for m in self.status()["machines"]}
        self.assertEqual(ready, {"host1": True, "host2": True, "nowhere.invalid": False})

    def test_a_command_that_fails_is_named_and_up_goes_on_there(self):
        self.cluster(extra="")
        text = (self.folder / "c.yaml").read_text()
        self.write("c.yaml", text.replace("head_setup_commands: [", f"head_setup_commands: [\"echo why it fails >&2; test -e ~/{self.name}-go\", "))
        _, err = self.run_command("up", "c.yaml", code=1)
        self.assertIn("head_setup_commands[0] ended with exit code 1: why it fails", err)
        self.ssh("host1", f"touch {self.name}-go")
        self.run_command("up", "c.yaml")
        self.assertEqual(self.ssh("host1", f"cat {self.name}-phases"), "i\ns\noneh\n")

    def test_a_cluster_whose_setup_has_failed_is_not_used(self):
        self.write("program.sh", "#!/bin/sh\necho ran\n", 0o755)
        self.run_command("up", "c.yaml")
        good = (self.folder / "c.yaml").read_text()
        bad = good.replace("setup_commands: [\"echo s", "setup_commands: [\"echo oops >&2; exit 5\", \"echo s", 1)
        self.assertNotEqual(good, bad)
        self.write("c.yaml", bad)
        # Nothing was done by this file yet: the machines are what they were, but not what it wants.
        self.assertTrue(all(m["ready"] for m in self.status()["machines"]))
        self.assertIn("by another file", self.run_command("submit", "c.yaml", "./program.sh", code=2)[1])
        self.assertIn("ended with exit code 5", self.run_command("up", "c.yaml", code=1)[1])
        self.assertEqual([m["ready"] for m in self.status()["machines"]], [False] * 3)
        self.assertIn("not set up", self.run_command("status", "c.yaml")[0])
        err = self.run_command("submit", "c.yaml", "./program.sh", code=2)[1]
        self.assertIn("head host1 is not set up", err)
        self.assertIn("run `hypertune up c.yaml`", err)
        out, err = self.run_command("exec", "c.yaml", "echo here")
        self.assertIn("here", out)
        self.assertIn("head host1 is not set up", err)
        # What the commands that failed may have changed is set up again.
        self.write("c.yaml", good)
        self.run_command("up", "c.yaml")
        self.assertEqual(self.ssh("host1", f"cat {self.name}-phases"), "i\ns\noneh\ns\none")
        self.assertTrue(all(m["ready"] for m in self.status()["machines"]))
        self.assertNotIn("set up", self.run_command("exec", "c.yaml", "true")[1])
        self.assertNotIn("set up", self.run_command("submit", "--detach", "c.yaml", "./program.sh")[1])
        # What runs there, or has, is followed all the same.
        self.write("c.yaml", bad)
        out, err = self.run_command("submit", "c.yaml", "./program.sh", "-o", "out")
        self.assertIn("ran", out)
        self.assertIn("by another file", err)

    def test_secrets_of_commands_are_in_no_process_list(self):
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace(
            "head_setup_commands: [", "head_setup_commands: [\"TOKEN=s3cr3t-$((40+2)); ps -ef --width 4000 >~/list\", "))
        self.run_command("up", "c.yaml")
        self.assertNotIn("s3cr3t", self.ssh("host1", "cat list"))
        for log in (self.folder / "state").rglob("*"):
            if log.is_file():
                self.assertNotIn("s3cr3t", log.read_text(errors="replace"), log)


if __name__ == "__main__":
    unittest.main()
