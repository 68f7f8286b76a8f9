"""A report, opened from a disk: every view is there, nothing is asked of anybody, and names do no harm."""
import json
import pathlib
import socket
import unittest
import urllib.parse

import experiments
from experiments import HOSTILE
from page import VIEWS, PageCase
from support import run


class ReportCase(PageCase):
    """As PageCase, but of the one file that `hypertune report` makes, without any server."""

    folders = ("runs",)
    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.make_folder("hypertune-report-")
        # As from a mail: the file alone, in a folder of its own, with a name that an address has to escape.
        cls.file = cls.folder / "from a mail" / "a report #1.html"
        cls.file.parent.mkdir()
        run("report", *cls.folders, "-o", str(cls.file), *cls.arguments, cwd=cls.folder)
        super(PageCase, cls).setUpClass()

    @property
    def url(self):
        return self.file.as_uri()

    def ids(self):
        return {pathlib.PurePosixPath(one).name: one for one in self.browser.js(
            "return JSON.parse(document.getElementById('hypertune-answers').textContent)['/api/experiments'].experiments.map((one) => one.id)")}

    def view(self, name, view, **query):
        self.open()   # the names of experiments are in the file
        self.open(self.address(name, view, **query))

    def assert_quiet(self):
        """Nothing was asked of anybody but for the file itself, and no error is on the page."""
        self.browser.collect()
        asked = {url.partition("#")[0] for url in self.browser.asked if not url.startswith(("data:", "blob:", "about:", "chrome"))}
        self.assertEqual(asked, {self.url})
        self.assertEqual(self.texts(".notice.bad"), [])

    def assert_harmless(self):
        self.assertIsNone(self.browser.js("return window.pwned ?? null"), "a script of a name ran")
        self.assertEqual(self.browser.js("return document.querySelectorAll('main img, main script, main iframe, aside img').length"), 0)
        self.assertEqual(self.browser.js("return document.querySelectorAll('script').length"), 3)


class Report(ReportCase):
    experiments = (experiments.asha, experiments.population, experiments.objectives, experiments.no_numbers, experiments.one)

    def test_every_view_of_every_experiment(self):
        self.open()
        names = self.ids()
        self.assertEqual(set(names), {"digits", "population", "objectives", "nan", "one"})
        for name in names:
            for view in [*VIEWS, "trial/0"]:
                with self.subTest(f"{name}: {view}"):
                    self.view(name, view)
                    self.assert_quiet()
                    self.assert_within()
                    self.assertEqual(self.browser.js("return document.querySelectorAll('main.loading').length"), 0)

    def test_the_charts_are_drawn(self):
        for name, view, charts in (("digits", "overview", ["best"]), ("digits", "curves", ["curves", "rungs"]), ("digits", "matters", ["importance", "pair", "slices", "parallel", "edf", "against"]),
                                   ("digits", "happened", ["timeline"]), ("digits", "trial/0", ["curve0"]), ("objectives", "tradeoffs", ["front", "hypervolume"]), ("population", "happened", ["lineage", "schedule"])):
            with self.subTest(f"{name}: {view}"):
                self.view(name, view)
                self.assert_drawn(*charts)
        self.open("#/compare")
        self.assert_drawn("compare", "edfs")
        self.assert_quiet()

    def test_it_says_what_it_is_and_what_is_left_out(self):
        self.view("digits", "overview")
        self.assertIn("A report of ", self.text("[data-notice=report]"))
        self.assertIn("Left out: logs.", self.text("[data-notice=report]"))
        self.assertTrue(self.browser.js("return document.querySelector('.link').hidden"))
        self.browser.find("[data-notice=report] button").click()
        self.browser.until("return !document.querySelector('[data-notice=report]')")

    def test_the_controls_work(self):
        self.view("digits", "overview")
        self.browser.find("[data-control=x][data-value=time]").click()
        self.settled()
        self.assert_drawn("best")
        self.view("digits", "curves")
        for control in ("logx", "bands", "cuts"):
            self.browser.find(f"[data-control={control}]").click()
            self.settled()
        self.browser.js("const box = document.querySelector('[data-control=limit]'); box.value = '300'; box.dispatchEvent(new Event('change'))")
        self.settled()
        self.browser.js("const box = document.querySelector('[data-control=metric]'); box.value = 'loss'; box.dispatchEvent(new Event('change'))")
        self.settled()
        self.assert_drawn("curves")
        self.view("digits", "matters", metric="loss", kind="rank")
        self.assert_drawn("importance", "pair")
        self.assert_quiet()

    def rows(self, **query):
        self.view("digits", "trials", **query)
        return self.browser.js("return [...document.querySelectorAll('.grid-row[data-trial]')].sort((a, b) => a.dataset.place - b.dataset.place).map((row) => Number(row.dataset.trial))")

    def answers(self):
        return json.loads(self.file.read_text().partition('id="hypertune-answers">')[2].partition("</script>")[0])

    def test_trials_are_sorted_and_filtered(self):
        everything = self.answers()["/api/trials?experiment=digits"]["rows"]
        by = {row["trial"]: row for row in everything}
        self.assertEqual(len(by), 18)
        self.assertEqual(self.rows(), sorted(by))
        self.assertEqual(self.rows(filter="state:failed"), [4])
        self.assertEqual(self.rows(filter="state:stopped lr>=0.003"), [trial for trial in sorted(by) if by[trial]["state"] == "stopped" and by[trial]["params"]["lr"] >= 0.003])
        self.assertEqual(self.rows(filter="optimizer!=adam trial:2-9"), [trial for trial in range(2, 10) if by[trial]["params"]["optimizer"] != "adam"])
        self.assertEqual(self.rows(filter="memory"), [4], "a word of its cause")
        self.assertEqual(self.rows(filter='"accuracy"<0.5'), [trial for trial in sorted(by) if by[trial]["value"] is not None and by[trial]["value"] < 0.5])
        values = [by[trial]["params"]["lr"] for trial in self.rows(sort="params.lr", order="desc")]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertIn("5 of 18", self.text(".matching") if self.rows(filter="trial:0-4") else "")
        self.rows()
        self.browser.js("const box = document.getElementById('filter'); box.value = 'nonsense>1'; box.dispatchEvent(new Event('input'))")
        self.browser.until("return document.getElementById('filter-error').innerText.includes(\"'nonsense' is neither a parameter nor a metric\")")
        self.view("digits", "matters", filter="state:completed")
        self.assertEqual({point[2] for point in self.series("against")["trials"]}, {trial for trial in by if by[trial]["state"] == "completed"})
        self.view("digits", "curves", filter="trial:0-2")
        self.assertEqual({key for key in self.series("curves") if key.startswith("trial ")}, {"trial 0", "trial 1", "trial 2"})

    def test_a_stretch_of_an_axis_can_be_chosen(self):
        self.view("digits", "matters")
        self.drag_axis()
        self.browser.until("return new URLSearchParams(location.hash.split('?')[1]).get('brush')")
        self.settled()
        self.assertIn("Chosen:", self.text(".chips"))
        self.assert_quiet()

    def drag_axis(self):
        self.browser.js("document.querySelector('[data-chart=parallel]').scrollIntoView({block: 'center'})")
        x, top, bottom = self.browser.js("""
            const element = document.querySelector('[data-chart=parallel]');
            const instance = echarts.getInstanceByDom(element);
            const box = element.querySelector('canvas').getBoundingClientRect();
            const axis = instance.getModel().getComponent('parallelAxis', 0);
            const layout = instance.getModel().getComponent('parallel', 0).coordinateSystem.getAxisLayout('dim0');
            return [box.left + layout.position[0], box.top + layout.position[1], box.top + layout.position[1] - 1];""")
        from selenium.webdriver.common.action_chains import ActionChains
        height = self.browser.js("return document.querySelector('[data-chart=parallel]').clientHeight") - 60
        chain = ActionChains(self.browser.driver, duration=60)
        pointer = chain.w3c_actions.pointer_action
        pointer.move_to_location(int(x), int(top - 0.8 * height))
        pointer.pointer_down()
        pointer.move_to_location(int(x), int(top - 0.5 * height))
        pointer.move_to_location(int(x), int(top - 0.2 * height))
        pointer.pointer_up()
        chain.perform()

    def test_charts_are_saved(self):
        self.view("digits", "overview")
        svg = self.downloaded(lambda: self.browser.js("[...document.querySelectorAll('[data-figure=best] button')].find((one) => one.textContent === 'SVG').click()"), ".svg")
        self.assertIn(b"accuracy (max)", svg)
        self.assert_quiet()


class Small(ReportCase):
    """A report whose room does not reach: it shows what it has."""

    experiments = (experiments.asha,)
    arguments = ("--megabytes", "0.07")

    def test_a_trial_without_its_curves_has_its_row(self):
        answers = json.loads(self.file.read_text().partition('id="hypertune-answers">')[2].partition("</script>")[0])
        [place] = [one["id"] for one in answers["/api/experiments"]["experiments"]]
        rows = [row["trial"] for row in answers[f"/api/trials?experiment={place}"]["rows"]]
        without = [trial for trial in rows if f"/api/trial?experiment={place}&points=500&trial={trial}" not in answers]
        self.assertTrue(without, "the room reaches for all trials: make it smaller")
        self.view("digits", f"trial/{without[0]}")
        self.assertIn(f"Trial {without[0]}", self.text(".trial-title"))
        self.assertIn("Left out: ", self.text("[data-notice=report]"))
        self.assert_quiet()


class HostileReport(ReportCase):
    experiments = (experiments.hostile,)

    def test_no_name_does_harm(self):
        for view in [*VIEWS, "trial/0", "trial/3"]:
            with self.subTest(view):
                self.view("hostile", view)
                self.assert_harmless()
                self.assert_within()
                self.assert_quiet()
        self.view("hostile", "trials")
        heads = self.browser.js("return [...document.querySelectorAll('[role=columnheader] .name')].map((one) => one.textContent)")
        for name in (HOSTILE["script"], HOSTILE["markup"], HOSTILE["emoji"], HOSTILE["quotes"]):
            self.assertIn(name, heads)

    def test_the_policy_holds_whatever_is_in_the_page(self):
        """A script that got into the document after all would not run."""
        self.expected += ["Content Security Policy", "violates the following"]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self.view("hostile", "overview")
            self.browser.js("const script = document.createElement('script'); script.textContent = 'window.pwned = 1'; document.body.append(script); script.remove();")
            self.assertIsNone(self.browser.js("return window.pwned ?? null"))
            self.browser.js("""
                window.failed = 0;
                for (const [tag, key] of [['img', 'src'], ['script', 'src'], ['link', 'href']]) {
                  const element = document.createElement(tag);
                  element.addEventListener('error', () => { window.failed += 1; });
                  if (tag === 'link') element.rel = 'stylesheet';
                  element[key] = arguments[0];
                  document.body.append(element);
                }
                fetch(arguments[0]).catch(() => { window.failed += 1; });""", host)
            self.browser.until("return window.failed === 4")
            listener.setblocking(False)
            with self.assertRaises(BlockingIOError):
                listener.accept()


if __name__ == "__main__":
    unittest.main()
