"""docs/ says what the command line, the record and the study server have: every option, column and answer, nothing else."""
import re
import sqlite3
import urllib.error
import urllib.request

from support import *

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def tables(name, marker):
    """By what `<!-- marker: … -->` says: the first cells of the table behind it."""
    found, current = {}, None
    for line in (DOCS / name).read_text().splitlines():
        match = re.match(r"<!-- (\w+): (.*) -->", line)
        if match:
            current = found.setdefault(match.group(2), []) if match.group(1) == marker else None
        elif current is not None and line.startswith("|"):
            current.append(re.split(r"(?<!\\)\|", line)[1].strip())
        elif line:
            current = None
    return found


class Reference(Case):
    def help(self, *command):
        return self.run_command(*command, "--help")[0]

    def subcommands(self):
        text = self.help().split("Run:")[1]
        return set(re.findall(r"^  ([a-z][a-z-]*)", text, re.M))

    def test_the_help_has_its_commands_in_groups(self):
        self.assertEqual(re.findall(r"^([A-Z][a-z ]*):$", self.help().split("--version")[1], re.M),
                         ["Run", "Look", "Steer", "Machines", "Write and check"])

    def test_every_subcommand_and_every_option(self):
        documented = tables("command-line.md", "command")
        self.assertEqual(set(documented), self.subcommands())
        for command, cells in documented.items():
            text = self.help(command).split("Options:")[1]
            options = set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", "\n".join(
                re.match(r"\s+(-[^ ]*)?", line).group(1) or "" for line in text.splitlines() if re.match(r"  -", line))))
            said = {word for cell in cells[2:] for word in re.findall(r"`(--?[\w-]+)`", cell)}
            self.assertEqual(said, options - {"-h", "--help"}, command)

    def test_the_views_of_the_record(self):
        self.environment.update(STEPS="2")
        self.run_command("run", self.write(SWEEP), "--quiet")
        db = sqlite3.connect(self.folder / "runs/digits/experiment.db")
        self.addCleanup(db.close)
        views = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")}
        documented = tables("experiment-folder.md", "view")
        self.assertEqual(set(documented), views)
        for view, cells in documented.items():
            columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({view})")]
            self.assertEqual([re.match(r"`(\w+)`", cell).group(1) for cell in cells[2:]], columns, view)
        sql = re.search(r"```sql\n(.*?)```", (DOCS / "experiment-folder.md").read_text(), re.S).group(1)
        self.assertEqual(len(db.execute(sql.replace("'loss'", "'accuracy'")).fetchall()), 6)

    def test_the_files_of_an_experiment(self):
        self.environment.update(STEPS="2")
        self.run_command("run", self.write(SWEEP), "--quiet")
        folder = self.folder / "runs/digits"
        said = "\n".join(re.findall(r"^\| `([^`]*)`", (DOCS / "experiment-folder.md").read_text(), re.M))
        for path in folder.rglob("*"):
            relative = str(path.relative_to(folder))
            relative = re.sub(r"^trials/\d+/checkpoints/[^/]+(/.*)?$", "trials/<number>/checkpoints/<name>/", relative)
            relative = re.sub(r"^trials/\d+/saved(/.*)?$", "trials/<number>/saved/", relative)
            relative = re.sub(r"^trials/\d+", "trials/<number>", relative)
            relative = re.sub(r"^best/checkpoint(/.*)?$", "best/checkpoint/", relative)
            if path.name.startswith(".") or "/." in relative or relative.endswith(("-wal", "-shm")):
                continue
            self.assertTrue(any(line == relative or line.startswith(relative + "/") for line in said.splitlines()), relative)

    def test_the_environment_of_a_trainer(self):
        self.write("import json, os\nprint(json.dumps({'accuracy': 1}))\n"
                   "print(sorted(k for k in os.environ if k.startswith('HYPERTUNE_')))\n", "train.py")
        for name in [k for k in self.environment if k.startswith("HYPERTUNE")]:
            del self.environment[name]
        self.run_command("run", self.write(SWEEP), "--quiet", "--set", "samples=1")
        (names,) = re.findall(r"\[.*\]", (self.folder / "runs/digits/trials/0/log").read_text())
        said = set(re.findall(r"`(HYPERTUNE_\w+)`", (DOCS / "trainer-protocol.md").read_text()))
        self.assertEqual(set(eval(names)) | {"HYPERTUNE_RESTORE"}, said)

    def test_the_study_server(self):
        text = (DOCS / "study-server.md").read_text()
        study = "space: {lr: {log_uniform: [1.0e-4, 1.0]}}\nmetric: loss\nmode: min\nsamples: 3\n"
        process = self.start("study", self.write(study, "study.yaml"), "--output", "runs/study")
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()

        def ask(method, path, body=None):
            request = urllib.request.Request(address + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                             headers={"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.loads(error.read())

        def keys_said(row):
            return {key for example in re.findall(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", row) for key in re.findall(r'"(\w+)":', example)}

        self.assertEqual(ask("GET", "/best")[0], 404)
        status, asked = ask("POST", "/ask", {})
        self.assertEqual(status, 200)
        rows = {match.group(1): match.group(0) for match in re.finditer(r"^\| `(?:POST|GET) (/\w+)`.*$", text, re.M)}
        self.assertEqual(set(rows), {"/ask", "/report", "/tell", "/note", "/best"})
        self.assertLessEqual(set(asked), keys_said(rows["/ask"]))
        status, decided = ask("POST", "/report", {"trial": 0, "value": 0.4, "step": 7})
        self.assertEqual((status, decided), (200, {"decision": "continue"}))
        self.assertEqual(ask("POST", "/tell", {"trial": 0, "value": 0.4}), (200, {"trial": 0}))
        self.assertEqual(ask("POST", "/note", {"trial": 0, "attributes": {"note": "noisy"}}), (200, {"trial": 0}))
        self.assertLessEqual({"trial", "attributes"}, keys_said(rows["/note"]))
        status, best = ask("GET", "/best")
        self.assertLessEqual(set(best), keys_said(rows["/best"]) | {"lr"})
        ask("POST", "/ask", {})
        self.assertEqual(ask("POST", "/tell", {"trial": 1, "state": "failed", "why": "diverged"}), (200, {"trial": 1}))
        ask("POST", "/ask", {})
        (none_now,) = [line for line in text.splitlines() if "none now" in line]
        self.assertEqual(set(ask("POST", "/ask", {})[1]), keys_said(none_now))
        said = set(map(int, re.findall(r"\b(\d{3})\b", " ".join(re.findall(r"^\| (\d{3}[^|]*)\|", text, re.M)))))
        for status, request in ((400, ("POST", "/tell", {"trial": "x"})), (404, ("GET", "/nothing")), (405, ("GET", "/ask")),
                                (409, ("POST", "/tell", {"trial": 99, "value": 1}))):
            self.assertEqual(ask(*request)[0], status)
            self.assertIn(status, said)

    def test_the_exit_codes(self):
        said = set(re.findall(r"^\| (\d+) \|", (DOCS / "command-line.md").read_text(), re.M))
        self.assertEqual(said, {"0", "1", "2", "3", "130"})
        for name in ("README.md",):
            for target in re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / name).read_text()):
                self.assertTrue((DOCS / target).exists(), target)

    def test_links_between_the_documents(self):
        pages = sorted(DOCS.glob("*.md"))
        root = DOCS.parent
        readme = (root / "README.md").read_text()
        for page in pages:
            self.assertIn(f"docs/{page.name}", readme)
            prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)]+)\)", prose):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path) if path else page
                self.assertTrue(file.exists(), f"{page.name}: {target}")
                if anchor:
                    headings = [re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-")
                                for h in re.findall(r"^#+ (.*)$", file.read_text(), re.M)]
                    self.assertIn(anchor, headings, f"{page.name}: {target}")


if __name__ == "__main__":
    unittest.main()
