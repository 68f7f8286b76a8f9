"""Completion in real shells, and the manual page by real formatters."""
import pty
import re
import select

from support import *


class Shell:
    """An interactive shell in a terminal of its own, and keys for it."""

    def __init__(self, case, *words, **environment):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(case.folder)
                os.execvpe(words[0], words, dict(os.environ, TERM="dumb", HOME=str(case.folder), ZDOTDIR=str(case.folder), **environment))
            finally:
                os._exit(127)
        self.screen = ""
        case.addCleanup(self.end)

    def type(self, keys, until):
        """What has come on the screen since the keys were typed, up to a text."""
        os.write(self.descriptor, keys.encode())
        begin, end = len(self.screen), time.monotonic() + 60
        while until not in self.screen[begin:]:
            if time.monotonic() > end or not select.select([self.descriptor], [], [], 60)[0]:
                raise AssertionError(f"waited in vain for {until!r} after {keys!r}:\n{self.screen}")
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"the shell has ended:\n{self.screen}")
            self.screen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", data.decode(errors="replace"))
        return self.screen[begin:]

    def end(self):
        os.close(self.descriptor)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Completion(Case):
    def script(self, shell):
        out, _ = self.run_command("completion", shell)
        (self.folder / f"hypertune.{shell}").write_text(out)
        return self.folder / f"hypertune.{shell}"

    def commands(self):
        return set(re.findall(r"^  ([a-z][a-z-]*)", self.run_command("--help")[0].split("Run:")[1], re.M))

    def bash(self, line):
        """What bash proposes for a line, which it takes apart itself as readline would."""
        script = f'''
source {self.script("bash")}
COMP_LINE={line!r}
COMP_POINT=${{#COMP_LINE}}
# As readline does: = is a word of its own.
read -ra COMP_WORDS <<< "${{COMP_LINE//=/ = }}"
[[ $COMP_LINE == *" " || $COMP_LINE == *= ]] && COMP_WORDS+=("")
[[ $COMP_LINE == *= ]] && unset "COMP_WORDS[-1]"
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_hypertune
printf '%s\\n' "${{COMPREPLY[@]}}"
'''
        out = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=30)
        self.assertEqual(out.stderr, "", line)
        return set(out.stdout.split("\n")) - {""}

    def test_bash(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        (self.folder / "digits.yaml").write_text("")
        (self.folder / "with space.yaml").write_text("")
        (self.folder / "runs").mkdir()
        self.assertEqual(self.bash("hypertune ") - {"--help", "--version"}, self.commands())
        self.assertEqual(self.bash("hypertune res"), {"results", "resize"})
        self.assertEqual(self.bash("hypertune run --ex"), {"--executor"})
        self.assertEqual(self.bash("hypertune run --executor "), {"local", "ssh", "slurm", "kubernetes"})
        self.assertEqual(self.bash("hypertune run --executor=s"), {"ssh", "slurm"})
        self.assertEqual(self.bash("hypertune run --executor="), {"local", "ssh", "slurm", "kubernetes"})
        self.assertEqual(self.bash("hypertune run d"), {"digits.yaml"})
        self.assertEqual(self.bash("hypertune run --quiet --set samples=3 d"), {"digits.yaml"})
        self.assertIn("with space.yaml", self.bash("hypertune check w"))
        self.assertEqual(self.bash("hypertune results "), {"runs"})
        self.assertEqual(self.bash("hypertune results runs --format "), {"table", "json", "csv"})
        self.assertEqual(self.bash("hypertune schema "), {"sweep", "cluster", "study"})
        self.assertEqual(self.bash("hypertune completion z"), {"zsh"})
        self.assertEqual(self.bash("hypertune nothing "), set())
        for command in self.commands():
            options = self.run_command(command, "--help")[0].split("Options:")[1].splitlines()
            said = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", " ".join(line.split()[0] for line in options if line.startswith("  -"))))
            self.assertEqual({w for w in self.bash(f"hypertune {command} --")}, said, command)

    def test_bash_in_a_terminal(self):
        """The TAB key in an interactive bash."""
        if not shutil.which("bash"):
            self.skipTest("no bash")
        rc = self.folder / "rc"
        rc.write_text(f"PS1='READY> '\nbind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\nsource {self.script('bash')}\n")
        shell = Shell(self, "bash", "--noprofile", "--rcfile", str(rc), "-i")
        shell.type("", "READY> ")
        shell.type("hypertune resul\t", "hypertune results ")
        shell.type("\x15hypertune results . --format=js\t", "--format=json ")
        shell.type("\x15hypertune run --executor k\t", "--executor kubernetes ")

    def test_zsh_in_a_terminal(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        file = self.script("zsh")
        self.write("", "digits.yaml")
        subprocess.run(["zsh", "-n", file], check=True)
        (self.folder / ".zshrc").write_text(f"PS1='READY> '\nunsetopt zle_bracketed_paste 2>/dev/null\nautoload -Uz compinit\ncompinit -u -d {self.folder}/dump\n"
                                            f"source {file}\n")
        shell = Shell(self, "zsh", "-d", "-i")
        shell.type("", "READY> ")
        shell.type("hypertune resul\t", "hypertune results ")
        shell.type("\x15hypertune run --executor kub\t", "--executor kubernetes ")
        shell.type("\x15hypertune schema clu\t", "schema cluster ")
        shell.type("\x15hypertune run --retry\t", "--retry-failed ")
        shell.type("\x15hypertune run dig\t", "run digits.yaml ")

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")
        file = self.script("fish")
        (self.folder / "digits.yaml").write_text("")
        (self.folder / "runs").mkdir()

        def fish(line):
            out = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C {line!r}"], cwd=self.folder, capture_output=True, text=True,
                                 timeout=60, env=dict(os.environ, HOME=str(self.folder)))
            self.assertEqual(out.stderr, "")
            return {entry.split("\t")[0] for entry in out.stdout.splitlines()}

        self.assertEqual({w for w in fish("hypertune ") if not w.startswith("-")}, self.commands())
        self.assertEqual(fish("hypertune run --executor "), {"local", "ssh", "slurm", "kubernetes"})
        self.assertIn("digits.yaml", fish("hypertune run d"))
        self.assertEqual(fish("hypertune results r"), {"runs/"})
        self.assertEqual(fish("hypertune schema "), {"sweep", "cluster", "study"})

    def test_the_manual_page(self):
        page, _ = self.run_command("man")
        (self.folder / "hypertune.1").write_text(page)
        self.assertTrue(page.isascii())
        for command in self.commands():
            self.assertIn(f'.SS "hypertune {command}'.replace("-", "\\-"), page.replace("\\-", "-").replace("-", "\\-"))
        formatters = 0
        if shutil.which("groff"):
            formatters += 1
            out = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "hypertune.1"], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual((out.returncode, out.stderr), (0, ""))
            plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", out.stdout)
            for said in ("EXIT STATUS", "--retry-failed", "--importance", "kubernetes", "one of table, json"):
                self.assertIn(said, plain)
        if shutil.which("man"):
            formatters += 1
            out = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "hypertune.1"], cwd=self.folder, capture_output=True, text=True,
                                 env=dict(os.environ, LC_ALL="C.UTF-8", MANROFFSEQ=""))
            self.assertEqual((out.returncode, out.stderr), (0, ""))
        if shutil.which("mandoc"):
            formatters += 1
            out = subprocess.run(["mandoc", "-Tlint", "-Wwarning", "hypertune.1"], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual([line for line in out.stdout.splitlines() if "missing date" not in line], [])
        if not formatters:
            self.skipTest("no groff, man or mandoc")


if __name__ == "__main__":
    unittest.main()
