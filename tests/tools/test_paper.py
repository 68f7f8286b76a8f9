"""report and plot: files for people, of experiments that were really run."""
import html.parser
import re
import stat
import tempfile
import xml.etree.ElementTree

from support import *

SVG = "{http://www.w3.org/2000/svg}"

KINDS = ["best", "curves", "rungs", "importance", "slice", "contour", "rank", "parallel", "pareto", "against", "hypervolume", "edf", "timeline", "slots", "lineage", "schedule"]

HOSTILE = "</script><script>window.pwned=1</script>"

TWO = """\
name: two
trial:
  command: [python3, two.py]
space:
  lr: {log_uniform: [1.0e-4, 1.0e-1]}
  kind: {choice: [a, b]}
objectives: {accuracy: max, "<b>cost": min}
samples: 8
seed: 1
concurrency: 2
output: runs/two
"""

TWO_TRAINER = """\
import json, math, os
lr = json.loads(os.environ["HYPERTUNE_PARAMS"])["lr"]
for step in range(3):
    print(json.dumps({"step": step, "accuracy": 1 - (math.log10(lr) + 2.5) ** 2 / 10, "<b>cost": -math.log10(lr), "below": -lr}), flush=True)
"""


class Documents(html.parser.HTMLParser):
    """The elements of a report, and the texts of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self.elements.append(("/" + tag, {}))


class Paper(Case):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([HYPERTUNE, "plot", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if done.returncode != 0:
            raise unittest.SkipTest("hypertune was built without its dashboard")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-paper-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        (cls.made / "train.py").write_text(TRAINER)
        (cls.made / "two.py").write_text(TWO_TRAINER)
        for name, sweep in (("digits", SWEEP.replace("samples: 6", "samples: 12") + "ordered: true\n"), ("two", TWO)):
            (cls.made / f"{name}.yaml").write_text(sweep)
            subprocess.run([HYPERTUNE, "run", f"{name}.yaml", "--quiet"], cwd=cls.made, check=True, timeout=120, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.digits, self.two = str(self.made / "runs/digits"), str(self.made / "runs/two")

    def plot(self, *arguments):
        out, err = self.run_command("plot", *arguments)
        self.assertEqual(err, "")
        return xml.etree.ElementTree.fromstring(out)

    def refused(self, *arguments):
        out, err = self.run_command(*arguments, code=2)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def texts(self, root):
        return [text for element in root.iter(SVG + "text") for text in ["".join(element.itertext())] if text]


class Plot(Paper):
    def test_every_kind_is_drawn_or_says_why_not(self):
        drawn = {"digits": set(), "two": set()}
        for name in drawn:
            for kind in KINDS:
                process = self.start("plot", str(self.made / "runs" / name), kind)
                out, err = process.communicate(timeout=120)
                if process.returncode == 0:
                    root = xml.etree.ElementTree.fromstring(out)
                    self.assertEqual((root.get("width"), root.get("height")), ("640", "400"))
                    self.assertGreaterEqual(len(list(root.iter(SVG + "path"))), 2, kind)
                    self.assertGreater(len(self.texts(root)), 2, kind)
                    drawn[name].add(kind)
                else:
                    self.assertEqual(process.returncode, 2, err)
                    self.assertRegex(err, r"^hypertune: there is nothing to draw: .+\n$")
        self.assertEqual(drawn["digits"], set(KINDS) - {"hypervolume", "lineage", "schedule"})
        self.assertEqual(drawn["two"], set(KINDS) - {"rungs", "lineage", "schedule"})

    def test_it_is_the_same_each_time(self):
        for kind in ("best", "curves", "parallel", "timeline"):
            first, _ = self.run_command("plot", self.digits, kind)
            again, _ = self.run_command("plot", self.digits, kind)
            self.assertEqual(first, again)

    def test_what_stands_on_it(self):
        texts = self.texts(self.plot(self.digits, "best", "--title", "Digits & <co>", "--font", "Times New Roman, serif", "--width", "500", "--height", "300"))
        self.assertIn("Digits & <co>", texts)
        self.assertIn("accuracy (max)", texts)
        self.assertIn("trial", texts)
        self.assertIn("time since the start", self.texts(self.plot(self.digits, "best", "--time")))
        root = self.plot(self.two, "pareto", "--metric", "<b>cost", "--metric", "accuracy", "--font", "Courier")
        self.assertIn("<b>cost (min)", self.texts(root))
        fonts = set(re.findall(r"font-family[=:]\s*\"?([^\";]+)", xml.etree.ElementTree.tostring(root, "unicode")))
        self.assertEqual(fonts, {"Courier"})
        self.assertIn("kind", self.texts(self.plot(self.two, "slice", "--parameter", "kind")))
        # Values of this metric are below 0, which a logarithm does not take.
        self.assertIn("no value of 'below' is above 0", self.refused("plot", self.two, "edf", "--metric", "below", "--log"))

    def test_several_experiments_in_one(self):
        for name, seed in (("again", 5), ("other", 6)):
            folder = self.folder / "runs" / name
            subprocess.run([HYPERTUNE, "run", str(self.made / "digits.yaml"), "--quiet", "--set", f"seed={seed}", "--set", f"name={'digits' if name == 'again' else name}", "--output", str(folder)], cwd=self.made, check=True, timeout=120, stdout=subprocess.DEVNULL)
        for kind in ("best", "edf"):
            with self.subTest(kind):
                root = self.plot(self.digits, self.two, "runs/other", kind, "--metric", "accuracy", "--title", "Three")
                texts = self.texts(root)
                for word in ("digits", "two", "other", "Three"):
                    self.assertIn(word, texts)
                lines = {path.get("stroke") for path in root.iter(SVG + "path") if path.get("fill") == "none"}
                self.assertLessEqual({"#1d5fa8", "#d07a1f", "#12866a"}, lines, "each has a line of its own")
                self.assertEqual(self.run_command("plot", self.digits, "runs/other", kind), self.run_command("plot", self.digits, "runs/other", kind))
        # Two of one name are told apart by their folders.
        texts = self.texts(self.plot(self.digits, "runs/again", "best", "--time"))
        self.assertIn("digits", texts)
        self.assertIn("again", texts)
        self.assertIn("time since the start", texts)
        self.assertIn("other", self.texts(self.plot("runs", "edf")))   # those below a folder
        self.assertIn("2 experiments are named, and 'slice' is drawn of one", self.refused("plot", self.digits, self.two, "slice"))
        self.assertIn("the kind of chart comes last", self.refused("plot", self.digits, "best", self.two))
        self.assertIn("'below' is no objective", self.refused("plot", self.two, self.two + "/../two", "best", "--metric", "below"))
        self.assertIn("there is no metric 'below'", self.refused("plot", self.two, self.digits, "edf", "--metric", "below"))

    def test_nothing_of_it_is_outside(self):
        root = self.plot(self.digits, "slice", "--title", "T")
        for element in root.iter():
            for key, value in element.attrib.items():
                self.assertFalse(key.endswith("href") or "url(http" in value, (element.tag, key, value))
            self.assertNotIn(element.tag, (SVG + "script", SVG + "foreignObject", SVG + "image"))

    def test_what_is_wrong_is_said(self):
        for kind in KINDS:
            self.assertIn(kind, self.refused("plot", self.digits, "nonsense"))
        self.assertIn("there is no metric 'acuracy'; there are: accuracy", self.refused("plot", self.digits, "best", "--metric", "acuracy"))
        self.assertIn("there is no parameter 'x'; there are: lr, hidden", self.refused("plot", self.digits, "slice", "--parameter", "x"))
        self.assertIn("'below' is no objective", self.refused("plot", self.two, "best", "--metric", "below"))
        self.assertIn("'timeline' takes no --log", self.refused("plot", self.digits, "timeline", "--log"))
        self.assertIn("'best' takes one metric", self.refused("plot", self.two, "best", "--metric", "accuracy", "--metric", "below"))
        self.assertIn("no trial matches the filter", self.refused("plot", self.digits, "slice", "--filter", "lr>1000"))
        self.assertIn("the filter is not understood at character 1", self.refused("plot", self.digits, "slice", "--filter", "nonsense>1"))
        self.assertIn("is no font's name", self.refused("plot", self.digits, "best", "--font", "a\" onload=\"x"))
        self.assertIn("there is no folder", self.refused("plot", "nowhere", "best"))
        self.assertIn("there are 2 experiments in", self.refused("plot", str(self.made / "runs"), "slice"))
        (self.folder / "empty").mkdir()
        self.assertIn("there is no experiment in 'empty'", self.refused("plot", "empty", "best"))

    def test_kinds_are_proposed(self):
        script, _ = self.run_command("completion", "bash")
        self.assertIn(f'plot:1) words="{" ".join(KINDS)}"', script)
        said = self.refused("plot", self.digits, "nonsense").partition("there are: ")[2]
        self.assertEqual(said.strip(), ", ".join(KINDS), "what is proposed is what is drawn")

    def test_a_run_without_a_report_says_so(self):
        self.write("import sys; sys.exit('no')\n", "train.py")
        self.run_command("run", self.write(SWEEP.replace("samples: 6", "samples: 1")), "--quiet", code=1)
        for kind in ("best", "curves", "importance", "slice", "contour", "parallel", "edf"):
            self.assertIn("no trial has reported", self.refused("plot", "runs/digits", kind))
        self.plot("runs/digits", "timeline")

    def test_the_file(self):
        self.run_command("plot", self.digits, "best", "-o", "a.svg")
        whole = (self.folder / "a.svg").read_text()
        self.assertTrue(whole.startswith("<svg ") and whole.endswith("</svg>\n"))
        self.run_command("plot", self.digits, "best", "-o", "a.svg")   # an SVG is replaced
        (self.folder / "notes.txt").write_text("mine")
        self.assertIn("'notes.txt' exists and is no SVG", self.refused("plot", self.digits, "best", "-o", "notes.txt"))
        self.assertEqual((self.folder / "notes.txt").read_text(), "mine")
        self.run_command("plot", self.digits, "best", "-o", "notes.txt", "--force")
        self.assertEqual((self.folder / "notes.txt").read_text(), whole)
        self.assertIn("cannot write 'no/such/a.svg'", self.refused("plot", self.digits, "best", "-o", "no/such/a.svg"))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.svg", "notes.txt", "train.py"])


class Report(Paper):
    def report(self, *arguments):
        self.run_command("report", *arguments, "-o", "r.html")
        return (self.folder / "r.html").read_text()

    def answers(self, text):
        document = Documents(text)
        return json.loads(document.scripts[0])

    def test_one_file_that_asks_for_nothing(self):
        text = self.report(str(self.made / "runs"))
        document = Documents(text)
        self.assertEqual([tag for tag, attributes in document.elements if tag not in ("link", "meta") and {"src", "href"} & set(attributes)], [])
        self.assertEqual([attributes["href"].partition(":")[0] for tag, attributes in document.elements if tag == "link"], ["data"])
        policy = next(attributes["content"] for tag, attributes in document.elements if attributes.get("http-equiv") == "Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotRegex(policy, r"https?:|'self'|unsafe|\*")
        nonce = re.search(r"script-src 'nonce-([0-9a-f]{36})'", policy).group(1)
        scripts = [attributes for tag, attributes in document.elements if tag == "script"]
        self.assertEqual([one.get("nonce") for one in scripts], [None, nonce, nonce])
        self.assertEqual(scripts[0]["type"], "application/json")
        self.assertNotIn(nonce, self.report(str(self.made / "runs")), "another report has another nonce")
        answers = self.answers(text)
        self.assertEqual({one["id"] for one in answers["/api/experiments"]["experiments"]}, {"digits", "two"})
        self.assertEqual(answers["report"]["left_out"], {"digits": ["logs"], "two": ["logs"]})
        self.assertEqual(len(answers["/api/trials?experiment=digits"]["rows"]), 12)

    def test_a_bound_is_kept_and_what_is_left_out_is_said(self):
        for megabytes in ("0.03", "0.1"):
            data = Documents(self.report(self.digits, self.two, "--megabytes", megabytes)).scripts[0]
            self.assertLess(len(data), float(megabytes) * 1e6 + 2000)
        small = self.answers(self.report(self.digits, "--megabytes", "0.03"))
        self.assertTrue(any(re.match(r"the curves and attempts of \d+ trials|\d+ of 12 trials", what) for what in small["report"]["left_out"]["digits"]), small["report"])
        self.assertIn("/api/summary?experiment=digits", small)

    def test_names_stay_names(self):
        self.write(TWO_TRAINER.replace("below", HOSTILE), "two.py")
        self.run_command("run", self.write(TWO.replace("kind:", json.dumps(HOSTILE + "<!--") + ":")), "--quiet")
        document = Documents(self.report("runs/two"))
        self.assertEqual([tag for tag, _ in document.elements].count("script"), 3)
        self.assertNotIn("<", document.scripts[0])
        self.assertIn(HOSTILE, json.loads(document.scripts[0])["/api/summary?experiment=two"]["metrics"])

    def test_the_file(self):
        whole = self.report(self.digits)
        self.report(self.digits)   # a report is replaced
        (self.folder / "page.html").write_text("<!doctype html>mine")
        self.assertIn("'page.html' exists and is no report", self.refused("report", self.digits, "-o", "page.html"))
        self.assertEqual((self.folder / "page.html").read_text(), "<!doctype html>mine")
        self.run_command("report", self.digits, "-o", "page.html", "--force")
        self.assertEqual(len((self.folder / "page.html").read_text()), len(whole))
        self.run_command("report", self.digits)
        self.assertTrue(stat.S_ISREG((self.folder / "report.html").stat().st_mode))
        self.assertIn("is a folder", self.refused("report", self.digits, "-o", "."))
        self.assertIn("there is no experiment in", self.refused("report", "."))
        self.assertIn("there is no folder 'nowhere'", self.refused("report", "nowhere"))
        self.assertEqual([path.name for path in self.folder.iterdir() if ".new" in path.name], [])


if __name__ == "__main__":
    unittest.main()
