"""Sweeps over ssh: real hosts, each with its own network, processes and home, that are listed, lost and replaced."""
from served import *
from support import *

TESTHOSTS = ROOT / "tests/support/hosts/testhosts"


class Hosts(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(AWAY_TRAINER)
        self.state = self.folder / "hosts"

    def hosts(self, *words, code=0):
        done = subprocess.run([str(TESTHOSTS), str(self.state), *map(str, words)], capture_output=True, text=True)
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def up(self, count, *line):
        self.addCleanup(lambda: self.hosts("down"))
        self.hosts("up", count, "--owner", os.getpid(), *line)

    def sweep(self, hosts="[host1, host2]", samples=8, steps=4, pause=0, more=""):
        executor = f"""
  type: ssh
  hosts: {hosts}
  ssh_config: {self.state}/ssh_config
  file_mounts: {{train.py: train.py}}"""
        text = AWAY_SWEEP.format(executor=executor, failures=3, samples=samples, steps=steps, pause=pause)
        return self.write(text + more)

    def on_host(self, host, text):
        """Processes of a host whose command line has `text` in it."""
        script = ("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | "
                  f"grep -F -- '{text}' | grep -vF 'grep -F' ; true")
        return [line for line in self.hosts("exec", host, "--", "sh", "-c", script).splitlines() if "/proc/[0-9]" not in line]

    def connections(self):
        """ssh processes of this test on this machine."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if entry.name.isdigit() and line.startswith("ssh ") and str(self.state) in line:
                found.append(line)
        return found

    def hosts_used(self):
        used = set()
        for log in (self.folder / "runs/away/trials").glob("*/log"):
            used |= {line.split()[1] for line in log.read_text().splitlines() if line.startswith("on ")}
        return used

    def assert_nothing_on(self, *numbers):
        self.assertEqual(self.connections(), [])
        for number in numbers:
            for text in ("train.py", "--hypertune-agent"):
                wait_until(lambda: not self.on_host(number, text), f"the end of '{text}' on host{number}", 15)

    def test_a_sweep_on_several_hosts_leaves_nothing_behind(self):
        self.up(3)
        self.sweep("[host1, {name: host2, slots: 1}, host3]", samples=12, pause=0.05)
        _, err = self.run_command("run", "sweep.yaml", "--plain")
        self.assertIn("executor ssh", err)
        results = self.results("runs/away")
        self.assertEqual([trial["state"] for trial in results], ["completed"] * 12)
        self.assertEqual({trial["steps"] for trial in results}, {4})
        self.assert_each_report_once("runs/away")
        self.assertEqual(self.hosts_used(), {"host1", "host2", "host3"})
        self.assert_nothing_on(1, 2, 3)
        # The same file elsewhere, by one word.
        self.run_command("run", "sweep.yaml", "--executor", "local", "--output", "runs/here", "--set", "samples=2")
        self.assertEqual(len(self.results("runs/here")), 2)
        # And back, with hosts from the command line.
        self.write("\n".join(line for line in (self.folder / "sweep.yaml").read_text().splitlines()
                             if not line.startswith(("executor", "  type", "  hosts", "  ssh_config", "  file_mounts"))),
                   "local.yaml")
        self.run_command("run", "local.yaml", "--executor", "ssh", "--set", "executor.hosts=[host3]", "--set",
                         f"executor.ssh_config={self.state}/ssh_config", "--set", "executor.file_mounts={train.py: train.py}",
                         "--output", "runs/away2", "--set", "samples=2")
        self.assertEqual(len(self.results("runs/away2")), 2)

    def test_a_killed_driver_leaves_nothing_and_is_resumed(self):
        self.up(2)
        self.sweep(samples=4, steps=40, pause=0.1)
        driver = self.start("run", "sweep.yaml", "--quiet")
        wait_until(lambda: self.on_host(1, "train.py") and self.on_host(2, "train.py"), "trials on both hosts")
        database = self.folder / "runs/away/experiment.db"
        wait_until(lambda: database.exists() and any(t["steps"] > 2 for t in self.results("runs/away")), "reports")
        self.assertNotEqual(self.connections(), [])
        driver.kill()
        driver.communicate()
        wait_until(lambda: not self.connections(), "the end of the connections", 10)
        self.assert_nothing_on(1, 2)
        self.run_command("run", "sweep.yaml", "--resume", "--quiet", "--set", "trial.environment.PAUSE='0'")
        results = self.results("runs/away")
        self.assertEqual([trial["state"] for trial in results], ["completed"] * 4)
        self.assertEqual({trial["steps"] for trial in results}, {40})
        self.assert_each_report_once("runs/away")

    def test_a_lost_host_costs_no_trial_and_new_ones_join(self):
        self.up(3)
        (self.folder / "hosts.txt").write_text("host1  # the first\nhost2\n")
        self.sweep("{file: hosts.txt, interval: 0.2s}", samples=14, steps=12, pause=0.25)
        driver = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: self.on_host(1, "train.py") and self.on_host(2, "train.py"), "trials on both hosts")
        self.hosts("kill", 1)
        (self.folder / "hosts.txt").write_text("host2\nhost3\n")
        wait_until(lambda: self.on_host(3, "train.py"), "a trial on the host that joined")
        out, err = driver.communicate(timeout=120)
        self.assertEqual(driver.returncode, 0, out + err)
        results = self.results("runs/away")
        self.assertEqual([trial["state"] for trial in results], ["completed"] * 14)
        self.assertEqual([trial["failures"] for trial in results], [0] * 14)  # the host's doing, not theirs
        self.assert_each_report_once("runs/away")
        self.assert_nothing_on(2, 3)

    def test_a_failure_that_does_not_count_yet_is_told_of_at_once(self):
        self.up(2)
        (self.folder / "train.py").write_text("import sys; sys.exit('no such data')\n")
        self.sweep(samples=1)
        _, err = self.run_command("run", "sweep.yaml", "--plain", "--set", "failures.max=0", code=1)
        lines = [line for line in err.splitlines() if "does not count yet" in line]
        self.assertEqual(len(lines), 1, err)
        self.assertRegex(lines[0], r"trial 0 failed on host host[12] and is tried on another host first, so that this does not count yet: .*no such data")
        self.assertEqual(self.results("runs/away")[0]["failures"], 1)

    def test_programs_are_brought_along_and_checked(self):
        self.up(1)
        program = self.folder / "bin/train"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho \"{\\\"loss\\\": $1}\"\n")
        program.chmod(0o755)
        self.sweep("[host1]", samples=2)
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "trial.command=[./bin/train, '{rate}']")
        self.assertEqual([trial["state"] for trial in self.results("runs/away")], ["completed"] * 2)
        _, err = self.run_command("run", "sweep.yaml", "--quiet", "--output", "runs/none", "--set",
                                  "trial.command=[./absent, '{rate}']", code=2)
        self.assertIn("./absent", err)
        self.assertIn("file_mounts", err)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        _, err = self.run_command("run", "sweep.yaml", "--quiet", "--output", "runs/none", "--set",
                                  "trial.command=[no-such-program]", code=2)
        self.assertIn("install it there", err)
        _, err = self.run_command("run", "sweep.yaml", "--quiet", "--output", "runs/none2", "--set",
                                  "executor.file_mounts={x: nothing}", code=2)
        self.assertIn("there is no 'nothing'", err)

    def test_hosts_that_cannot_be_used_are_named_with_the_reason(self):
        self.up(1)
        self.sweep("[host1, no-such-host.invalid]", samples=2)
        self.run_command("run", "sweep.yaml", "--quiet")  # one is enough
        self.assertEqual(self.hosts_used(), {"host1"})

        def refused(output, *set):
            words = [word for each in set for word in ("--set", each)]
            _, err = self.run_command("run", "sweep.yaml", "--quiet", "--output", output, *words, code=2)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            return err

        self.assertIn("spelling", refused("runs/a", "executor.hosts=[no-such-host.invalid]"))
        self.assertIn("missing.ssh", refused("runs/b", "executor.hosts=[host1]", "executor.ssh_config=missing.ssh"))
        (self.state / "known_hosts").write_text("")
        self.assertIn("host key", refused("runs/c", "executor.hosts=[host1]"))
        self.assertIn("hosts.txt", refused("runs/d", "executor.hosts={file: hosts.txt}"))
        self.assertIn("SLURM_JOB_NODELIST", refused("runs/e", "executor.hosts=slurm"))
        self.assertFalse((self.folder / "runs/a").exists())

    def test_templates_reach_hosts_with_the_sweep(self):
        self.up(1)
        (self.folder / "t.in").write_bytes(b"rate = @rate:.3f@  ! d\xe9j\xe0\nname = 'x'\n")
        self.sweep("[host1]", samples=1)
        text = (self.folder / "sweep.yaml").read_text()
        self.write(text.replace('command: [python3, train.py, "{rate}"]',
                                """command: [sh, -c, 'cat "$0"; echo "{{\\"loss\\": 1}}"', "{in/run.nml}"]\n  files: {in/run.nml: t.in}"""))
        self.run_command("run", "sweep.yaml", "--plain")
        self.assertEqual([trial["state"] for trial in self.results("runs/away")], ["completed"])
        log = (self.folder / "runs/away/trials/0/log").read_bytes()
        self.assertRegex(log, rb"rate = 0\.\d{3}  ! d\xe9j\xe0\nname = 'x'\n")

    def test_hosts_from_the_environment(self):
        self.up(2)
        self.sweep(samples=4, pause=0.05)
        text = "\n".join(line for line in (self.folder / "sweep.yaml").read_text().splitlines()
                         if not line.startswith(("  hosts", "  ssh_config")))
        self.write(text + "\n")
        self.assertIn("HYPERTUNE_HOSTS", self.run_command("run", "sweep.yaml", "--quiet", code=2)[1])
        self.environment.update(HYPERTUNE_HOSTS="host1,host2", HYPERTUNE_SSH_CONFIG=str(self.state / "ssh_config"))
        self.run_command("run", "sweep.yaml", "--quiet")
        self.assertEqual(self.hosts_used(), {"host1", "host2"})
        (self.folder / "hosts.txt").write_text("host2 slots=1\n")
        self.environment["HYPERTUNE_HOSTS"] = "@hosts.txt"
        shutil.rmtree(self.folder / "runs/away")
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "samples=2")
        self.assertEqual(self.hosts_used(), {"host2"})
        self.environment["HYPERTUNE_HOSTS"] = "@absent.txt"
        self.assertIn("'absent.txt' cannot be read", self.run_command("run", "sweep.yaml", "--quiet", "--output", "runs/x",
                                                                      code=2)[1])
        self.environment["HYPERTUNE_HOSTS"] = "elsewhere"  # what the file says comes first
        shutil.rmtree(self.folder / "runs/away")
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "executor.hosts=[host1]", "--set",
                         f"executor.ssh_config={self.state}/ssh_config")
        self.assertEqual(self.hosts_used(), {"host1"})

    def test_a_cpp_program_is_its_own_worker(self):
        example = pathlib.Path(os.environ.get("EXAMPLES", "")) / "ssh_hosts"
        if not example.exists():
            self.skipTest("the examples are not built")
        self.up(2)
        done = subprocess.run([str(example), "--ssh-config", str(self.state / "ssh_config"), "host1", "host2"],
                              cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"trial \d+ +height=.* momentum=")
        self.assertEqual(len(self.results("runs/ssh_hosts")), 60)
        shipped = self.hosts("exec", 1, "--", "sh", "-c", "ls ~/.cache/hypertune/bin/*/").split()
        self.assertEqual(shipped, ["ssh_hosts"])
        self.assert_nothing_on(1, 2)

    # hypertune serve on a host: the commands of docs/serving.md.

    def ssh(self, *words):
        with (self.folder / "ssh.log").open("a") as log:
            process = subprocess.Popen(["ssh", "-F", str(self.state / "ssh_config"), *words], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serving_host(self, *more):
        self.up(1, "--share", self.folder, *more)
        make_served(self, self.folder)
        shutil.copy(HYPERTUNE, self.folder / "hypertune")  # a host has a /tmp and a home of its own
        self.client = Client()

    def tunnel(self, *words):
        """Its process and its end here."""
        at = ("127.0.0.1", free_port())
        process = self.ssh("-o", "ExitOnForwardFailure=yes", "-L", f"{at[1]}:127.0.0.1:8000", *words)
        wait_until(lambda: self.client.ready(at), "the server through the tunnel")
        return process, at

    def with_connection(self):
        return self.tunnel("-tt", "host1", "cd /run/share; ./hypertune serve runs/digits --port 8000 -- ./answer.sh")

    def servers(self):
        return self.on_host(1, "serve runs/digits")

    def assert_no_server(self):
        wait_until(lambda: not self.servers() and not self.on_host(1, "answer.sh"), "the end of the server", 60)
        self.assertFalse((self.folder / "runs/digits/serving").exists())

    def test_a_server_ends_with_its_connection_and_answers_what_it_was_asked(self):
        self.serving_host()
        connection, at = self.with_connection()
        _, other = self.tunnel("-N", "host1")
        self.assertEqual(self.client.predict(at, 8), (200, {"y": [1008]}))
        slow = in_background(lambda: self.client.predict(other, 7))
        wait_until(lambda: "seven is asked" in (self.folder / "ssh.log").read_text(), "the request")
        connection.kill()
        wait_until(lambda: not self.client.ready(other), "that the server accepts nobody")
        (self.folder / "release").touch()
        self.assertEqual(slow(), (200, {"y": [1007]}))
        self.assert_no_server()

    def test_a_server_ends_in_good_order_at_ctrl_c(self):
        self.serving_host()
        at = ("127.0.0.1", free_port())
        process = subprocess.Popen(
            ["ssh", "-F", str(self.state / "ssh_config"), "-tt", "-L", f"{at[1]}:127.0.0.1:8000", "host1",
             "cd /run/share; ./hypertune serve runs/digits --port 8000 -- ./answer.sh"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        wait_until(lambda: self.client.ready(at), "the server through the tunnel")
        process.stdin.write(b"\x03")
        process.stdin.flush()
        self.assertEqual(process.wait(60), 0)
        self.assert_no_server()

    def test_a_server_whose_line_is_cut_ends_when_its_host_notices(self):
        self.serving_host("--sshd", "ClientAliveInterval 1", "--sshd", "ClientAliveCountMax 3")
        connection, _ = self.with_connection()
        self.assertEqual(len(self.servers()), 2)  # and its keeper
        self.hosts("cut", 1)
        connection.kill()  # of whose end nothing gets there
        self.assert_no_server()

    def test_a_server_that_is_to_stay_stays(self):
        self.serving_host()
        (self.folder / "release").touch()
        started = self.ssh("host1", f"cd /run/share; nohup ./hypertune serve runs/digits --port 8000 -- ./answer.sh "
                                    ">serve.log 2>&1 </dev/null & echo $! >serve.pid")
        self.assertEqual(started.wait(60), 0)
        for _ in range(2):
            tunnel, at = self.tunnel("-N", "host1")
            self.assertEqual(self.client.predict(at, 7), (200, {"y": [1007]}))
            tunnel.kill()
            tunnel.wait()
        self.assertIn("seven is asked", (self.folder / "serve.log").read_text())
        # One that has no standard error any more stays as well.
        self.assertEqual(self.ssh("host1", "kill $(cat /run/share/serve.pid)").wait(60), 0)
        self.assert_no_server()
        connection, _ = self.tunnel("host1", f"cd /run/share; nohup ./hypertune serve runs/digits --port 8000 -- ./answer.sh")
        connection.kill()
        _, at = self.tunnel("-N", "host1")
        for _ in range(2):
            self.assertEqual(self.client.predict(at, 7), (200, {"y": [1007]}))
        self.assertEqual(len(self.servers()), 2)


if __name__ == "__main__":
    unittest.main()
