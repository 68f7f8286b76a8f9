"""Each view, drawn from experiments that were really run, and what a person does with it."""
import json
import re
import subprocess
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import experiments
from page import VIEWS, PageCase
from support import HYPERTUNE, run, wait_until


class Views(PageCase):
    experiments = (experiments.asha, experiments.population, experiments.objectives, experiments.no_numbers, experiments.one)

    def best(self, name="digits"):
        answer = json.loads(run("best", f"runs/{name}", "--format", "json", cwd=self.folder).stdout)
        return answer[0] if isinstance(answer, list) else answer

    def test_a_folder_of_experiments_is_a_list_that_leads_to_each(self):
        self.open()
        self.assertEqual(set(self.texts("[data-experiment]")), {"digits", "population", "objectives", "nan", "one"})
        self.assertIn("ended", self.text("main"))
        self.browser.find("[data-experiment=digits], [data-experiment$='/digits']").click()
        self.browser.until("return document.querySelector('.view-overview:not(.loading)')")
        self.assertIn("digits", self.text("h1"))
        self.assert_quiet()

    def test_the_overview_says_how_it_stands(self):
        self.view("digits", "overview")
        best = self.best()
        counts = dict(reversed(line.split()) for line in self.texts(".counts a"))
        status = run("status", "runs/digits", cwd=self.folder).stdout
        for number, state in re.findall(r"(\d+) (completed|stopped|failed)", status):
            self.assertEqual(counts[state], number)
        self.assertIn("ended", self.text(".run-state"))
        self.assertEqual(self.text(".big"), f"{best['value']:.5g}" if "value" in best else self.text(".big"))
        self.assertIn(f"trial {best['trial']}", self.text(".best-panel"))
        self.assert_drawn("best")
        line = self.series("best")["best"]
        values = [point[1] for point in line]
        self.assertEqual(values, sorted(values), "the best so far never gets worse")
        self.assertAlmostEqual(values[-1], self.ask("/api/summary", experiment=self.ids()["digits"])["best"][0]["value"])
        self.assert_quiet()

    def test_a_server_of_the_model_is_shown_while_it_runs(self):
        self.view("digits", "overview")
        self.assertTrue(self.browser.js("return document.querySelector('.served').hidden"))
        answer = ("import json, sys\nprint(json.dumps({'inputs': [{'name': 'x', 'datatype': 'FP32', 'shape': [-1]}], "
                  "'outputs': [{'name': 'x', 'datatype': 'FP32', 'shape': [-1]}]}), flush=True)\n"
                  "for line in sys.stdin: print(json.dumps({'outputs': json.loads(line)['inputs']}), flush=True)")
        server = subprocess.Popen([HYPERTUNE, "serve", "runs/digits", "--", "python3", "-c", answer], cwd=self.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        address = server.stdout.readline().strip()
        status = lambda: json.load(urllib.request.urlopen(address + "/serve/status"))
        wait_until(lambda: status()["live"], "the server")
        urllib.request.urlopen(urllib.request.Request(address + "/predict", b'{"x": [1]}')).close()
        self.view("digits", "overview")
        self.browser.until("const box = document.querySelector('.served'); return !box.hidden && box.textContent.includes('requests1')")
        best = self.best()
        self.assertIn(address, self.text(".served"))
        self.assertEqual(self.text(".served tbody a"), status()["live"])
        self.assertEqual(status()["versions"][0]["trial"], best["trial"])
        self.assert_within()
        self.assert_quiet()
        server.kill()   # what it has left is of nobody
        server.wait()
        self.browser.until("return document.querySelector('.served').hidden")

    def test_every_view_is_drawn(self):
        charts = {"overview": ["best"], "curves": ["curves", "rungs"], "matters": ["importance", "pair", "slices", "parallel", "edf", "against"], "tradeoffs": ["front"], "happened": ["timeline", "use"]}
        for view in VIEWS:
            with self.subTest(view):
                self.view("digits", view)
                self.assert_drawn(*charts.get(view, []))
                self.assert_within()
                self.assert_quiet()

    def test_dark_is_drawn_too_and_is_kept(self):
        driver = self.browser.driver
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.addCleanup(driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        background = "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
        for view in VIEWS:
            self.view("digits", view)
            self.assertLess(sum(self.browser.js(background)), 200)
        self.view("digits", "overview")
        self.assert_drawn("best")
        self.browser.find("[data-action=theme]").click()
        self.assertGreater(sum(self.browser.js(background)), 600)
        driver.refresh()
        self.settled()
        self.assertGreater(sum(self.browser.js(background)), 600)
        self.browser.js("localStorage.clear()")

    def test_the_table_sorts_and_a_link_keeps_the_view(self):
        self.view("digits", "trials")
        self.assertEqual(self.text(".matching"), "18 trials")
        self.browser.find("[data-sort=value]").click()
        best = str(self.best()["trial"])
        first = "return [...document.querySelectorAll('.grid-space .grid-row')].sort((a, b) => a.dataset.place - b.dataset.place)[0]?.dataset.trial"
        self.browser.until(f"{first.replace('return ', 'return (')}) === arguments[0]", best)
        self.browser.find(f".grid-row[data-trial='{best}'] .value").click()
        self.browser.until("return document.querySelector('.side h2')?.innerText === `Trial ${arguments[0]}`", best)
        self.assertEqual({"sort": "value", "order": "desc", "trial": best}, self.query())
        self.browser.driver.refresh()
        self.settled()
        self.browser.until(f"{first.replace('return ', 'return (')}) === arguments[0]", best)
        self.browser.until("return document.querySelector('.side h2')?.innerText === `Trial ${arguments[0]}`", best)
        self.assertEqual(self.texts("[aria-sort=descending] .name"), ["accuracy"])

    def test_a_filter_is_applied_everywhere_and_a_wrong_one_is_explained(self):
        self.view("digits", "trials")   # tearDown() looks at the console: what is wrong is not sent
        self.browser.keys("/")
        self.browser.keys("state:failed")
        self.browser.until("return document.querySelector('.matching').innerText === '1 of 18 trials'")
        self.assertEqual(self.query()["filter"], "state:failed")
        self.browser.until("return document.querySelector('.grid-space .grid-row')?.dataset.trial === '4'")
        box = self.browser.find("#filter")
        box.clear()
        box.send_keys("learning_rate>1")
        self.browser.until("return document.querySelector('.filter-error:not([hidden])')?.innerText.includes('learning_rate')")
        self.assertEqual(box.get_attribute("aria-invalid"), "true")
        box.clear()
        box.send_keys("accuracy>0.9")
        self.browser.until("return document.querySelector('.filter-error').hidden")
        matching = self.ask("/api/trials", experiment=self.ids()["digits"], filter="accuracy>0.9")["matching"]
        self.browser.until("return document.querySelector('.matching').innerText === arguments[0]", f"{matching} of 18 trials")
        self.browser.find("[data-view=curves]").click()
        self.browser.until("return document.querySelector('.view-curves:not(.loading)')")
        self.settled()
        self.assertEqual(self.query()["filter"], "accuracy>0.9")
        lines = [key for key in self.series("curves") if key.startswith("trial ")]
        self.assertEqual(len(lines), matching)

    def test_one_trial_whole(self):
        best = self.best()["trial"]
        self.view("digits", f"trial/{best}")
        self.assert_drawn("curve0", "curve1")
        curve = self.series("curve0")["curve"]
        self.assertEqual([point[0] for point in curve], list(range(9)))
        # The last step has its label, where there is room.
        self.assertIn("8", self.browser.js("return echarts.getInstanceByDom(document.querySelector('[data-chart=curve0]')).getZr().storage.getDisplayList(true).filter((one) => one.type === 'text' || one.type === 'tspan').map((one) => one.style.text)"))
        answer = self.ask("/api/trial", experiment=self.ids()["digits"], trial=best)
        self.assertEqual([point[1] for point in curve], answer["curves"]["accuracy"]["value"])
        page = self.text("main")
        for piece in ("Parameters", "hidden", "optimizer", "Attempts", "localhost", "Checkpoints", "Log"):
            self.assertIn(piece, page)
        self.browser.until("return document.querySelector('.log').textContent.includes('epoch 8')")
        self.assertIn("the best", self.text(".trial-head"))
        self.browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": self.dashboard.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        for key, said, piece in (("yaml", "as YAML", "hidden: "), ("cpp", "as C++", '"hidden"')):
            self.browser.find(f"[data-key={key}]").click()
            self.browser.until("return document.querySelector('.toast.shown')?.innerText.includes(arguments[0])", said)
            copied = self.browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))")
            self.assertIn(piece, copied)
        self.assert_quiet()

    def test_a_trial_that_failed_says_why(self):
        self.view("digits", "trial/4")
        self.assertIn("Failed", self.text(".cause"))
        self.assertIn("about to fail", self.text(".log"))

    def test_a_chart_is_zoomed_by_dragging_and_the_link_keeps_it(self):
        self.view("digits", "overview")
        self.browser.drag("[data-chart=best] canvas", (.3, .2), (.7, .5))
        self.browser.until("return location.hash.includes('z.best=')")
        zoom = [float(part) for part in self.query()["z.best"].split(",")]
        self.assertTrue(0 < zoom[0] < zoom[1] < 18, zoom)
        self.browser.driver.refresh()
        self.settled()
        shown = self.browser.js("return echarts.getInstanceByDom(document.querySelector('[data-chart=best]')).getOption().dataZoom.map((zoom) => [zoom.startValue, zoom.endValue])")
        for (a, b), want in zip(shown, (zoom[:2], zoom[2:])):
            self.assertAlmostEqual(a, want[0], places=5)
            self.assertAlmostEqual(b, want[1], places=5)
        self.browser.js("document.querySelector('[data-chart=best]').focus()")
        self.browser.keys("0")
        self.browser.until("return !location.hash.includes('z.best=')")

    def test_a_click_on_a_point_chooses_its_trial(self):
        self.view("digits", "overview")
        point = next(point for point in self.series("best")["completed"] if 3 < point[0] < 15)
        self.click_at(*self.place_of("best", point[:2]))
        self.browser.until("return document.querySelector('.side h2')?.innerText === `Trial ${arguments[0]}`", point[2])
        self.settled()
        self.assertEqual([chosen[2] for chosen in self.series("best")["picked"]], [point[2]])

    def test_a_stretch_of_an_axis_filters_the_other_charts(self):
        self.view("digits", "matters")
        before = self.series("against")["trials"]
        place = self.browser.js("""
            const element = document.querySelector('[data-chart=parallel]');
            const instance = echarts.getInstanceByDom(element);
            const box = element.querySelector('canvas').getBoundingClientRect();
            const system = instance.getModel().getComponent('parallel', 0).coordinateSystem;
            const layout = system.getAxisLayout(system.dimensions[0]);
            return [layout.position[0] / box.width];""")
        self.browser.drag("[data-chart=parallel] canvas", (place[0], .45), (place[0], .8))
        self.browser.until("return location.hash.includes('brush=')")
        self.browser.until("return !document.querySelector('.chips').hidden")
        self.browser.until("return echarts.getInstanceByDom(document.querySelector('[data-chart=against]')).getOption().series[0].data.length < arguments[0]", len(before))
        (field, (low, high)), = json.loads(self.query()["brush"]).items()
        self.assertEqual(field, "params.lr")
        rates = self.ask("/api/points", experiment=self.ids()["digits"], fields="params.lr")
        want = {trial for trial, rate in zip(rates["trial"], rates["columns"]["params.lr"]) if 10 ** low <= rate <= 10 ** high}
        got = {point[2] for point in self.series("against")["trials"]}
        self.assertTrue(got)
        self.assertLessEqual(got, want)
        link = self.browser.find("[data-key=as-trials]")
        self.browser.js("arguments[0].click()", link)
        self.browser.until("return document.querySelector('.view-trials:not(.loading)')")
        self.assertIn("lr>=", self.query()["filter"])
        self.browser.until("return document.querySelector('.matching').innerText === arguments[0]", f"{len(want)} of 18 trials")

    def test_charts_are_saved(self):
        self.view("digits", "overview")
        svg = self.downloaded(lambda: self.browser.js("[...document.querySelectorAll('[data-figure=best] button')].find((button) => button.textContent === 'SVG').click()"), ".svg")
        tree = xml.etree.ElementTree.fromstring(svg)
        self.assertTrue(tree.tag.endswith("svg"))
        self.assertGreater(len(list(tree.iter("{http://www.w3.org/2000/svg}path"))), 18)
        png = self.downloaded(lambda: self.browser.js("[...document.querySelectorAll('[data-figure=best] button')].find((button) => button.textContent === 'PNG').click()"), ".png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(png), 5000)

    def test_several_objectives(self):
        self.view("objectives", "tradeoffs")
        self.assert_drawn("front", "hypervolume")
        members = {row["trial"] for row in self.ask("/api/front", experiment=self.ids()["objectives"])["front"]}
        self.assertEqual({point[2] for point in self.series("front")["front"]}, members)
        self.assertEqual({int(row) for row in self.texts("tbody td:first-child a")}, members)
        self.view("objectives", "overview")
        self.assertIn("on the front", self.text(".best-panel"))
        self.browser.js("const box = document.querySelector('[data-control=objective]'); box.value = '1'; box.dispatchEvent(new Event('change'))")
        self.browser.until("return echarts.getInstanceByDom(document.querySelector('[data-chart=best]')).getOption().yAxis[0].name.startsWith('latency')")

    def test_a_population_has_its_lineage_and_schedule(self):
        self.view("population", "happened")
        self.assert_drawn("timeline", "lineage", "schedule")
        events = self.ask("/api/lineage", experiment=self.ids()["population"])["population"]
        self.assertTrue(events)
        self.assertEqual(len(self.series("lineage")["takers"]), len(events))
        # The run took few seconds: the time of day would stand at its axes again and again.
        labels = self.browser.js("return ['timeline', 'use'].map((key) => echarts.getInstanceByDom(document.querySelector(`[data-chart=${key}]`)).getModel().getComponent('xAxis', 0).axis.getViewLabels().map((label) => label.formattedLabel))")
        for of_one in labels:
            self.assertGreater(len(of_one), 1)
            self.assertEqual(len(set(of_one)), len(of_one), of_one)

    def test_values_that_are_no_numbers_are_told_not_drawn(self):
        self.view("nan", "curves")
        self.assert_drawn("curves")
        self.assertIn("not drawn", self.text("[data-figure=curves] .note"))
        for view in VIEWS:
            self.view("nan", view)
            self.assert_quiet()

    def test_one_trial_is_enough_for_every_view(self):
        for view in VIEWS:
            self.view("one", view)
            self.assert_within()
            self.assert_quiet()
        self.view("one", "matters")
        low, high, value = self.browser.js("const {parallelAxis, series} = echarts.getInstanceByDom(document.querySelector('[data-chart=parallel]')).getOption(); return [parallelAxis.at(-1).min, parallelAxis.at(-1).max, series[0].data[0].value.at(-1)]")
        self.assertAlmostEqual((low + high) / 2, value)

    def test_experiments_side_by_side(self):
        ids = self.ids()
        chosen = json.dumps([ids["digits"], ids["nan"]])
        self.open("#/compare?e=" + urllib.parse.quote(chosen))
        self.assert_drawn("compare", "edfs")
        self.assertEqual(len(self.series("compare")), 2)
        rows = self.texts(".settings tbody th")
        self.assertIn("schedule", rows)
        self.assertNotIn("objectives", rows, "only what differs")
        self.browser.find(f".picker [data-key='e{ids['population']}']").click()
        self.browser.until("return echarts.getInstanceByDom(document.querySelector('[data-chart=compare]')).getOption().series.length === 3")
        self.assertEqual(len(json.loads(self.query()["e"])), 3)

    def test_a_page_that_was_not_loaded_whole_is_loaded_again(self):
        self.expected += [r"ERR_BLOCKED_BY_CLIENT"]
        driver = self.browser.driver

        def block(*urls):
            driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(urls)})

        def loaded_again():
            self.browser.until("return location.search.startsWith('?again=')")
            block()
            try:
                self.settled()
            except NetworkChanged:
                block(part)   # for the next try
                raise

        part = "*views/trials.js*"
        driver.execute_cdp_cmd("Network.enable", {})
        self.addCleanup(block)
        block(part)
        self.browser.load(self.url + self.address("digits", "overview"), loaded_again)
        self.assertEqual(self.browser.js("return location.search"), "")
        self.assertIn("/overview", self.hash())

    def test_an_address_of_nothing_says_so(self):
        self.browser.load_until(self.url + self.address("digits", "trial/999"),
                                "return document.querySelector('.notice.bad')?.innerText.includes('There is no trial 999')")
        self.check_console()
        self.expected += [r"40\d \("]
        self.browser.load_until(self.url + "#/e/nonsense/overview", "return document.querySelector('.notice.bad')")


class Trouble(PageCase):
    """Experiments of which there is little or nothing to show; tearDown() looks at the console."""
    experiments = (experiments.damaged, experiments.failed, experiments.one, experiments.empty)

    def test_one_that_cannot_be_read_says_why_and_asks_no_more(self):
        self.browser.load_until(self.url + self.address("damaged", "overview"),
                                "return /is no readable hypertune journal/.test(document.querySelector('[data-notice=problem]')?.innerText)")
        self.browser.until("return [...document.querySelectorAll('.tabs a')].some((tab) => tab.dataset.view === 'compare')")
        before = self.browser.js("return document.documentElement.dataset.refreshed")
        self.browser.collect()
        self.assertEqual(len([url for url in self.browser.asked if "/api/summary" in url]), 1)
        self.browser.load_until(self.url + self.address("failed", "overview"),
                                "return /failed/.test(document.querySelector('.best-panel')?.innerText)")
        self.assertEqual(before, "1")
        self.assertEqual(self.text("[data-notice=problem]"), None)

    def test_the_list_and_the_comparison_leave_it_out(self):
        self.open()
        self.assertIn("is no readable hypertune journal", self.text(".list"))
        self.open("#/compare")
        self.assertIn("damaged unreadable", " ".join(self.text(".picker").split()))
        self.assertTrue(self.browser.js("return [...document.querySelectorAll('.picker label')].find((one) => /damaged/.test(one.innerText)).querySelector('input').disabled"))
        self.open(self.compared("damaged", "one"))
        self.assertEqual(len(self.texts(".settings thead a")), 1)

    def compared(self, *names):
        return "#/compare?e=" + urllib.parse.quote(json.dumps([self.ids()[name] for name in names]))

    def test_one_without_a_trial_has_every_view(self):
        for view in VIEWS:
            self.view("empty", view)
            self.assert_within()
            self.assert_quiet()
        self.open()
        row = self.browser.js("return document.querySelector('[data-experiment=empty]').closest('tr').innerText")
        self.assertIn("0 of 3", row)

    def test_where_all_have_failed_no_result_is_promised(self):
        self.view("failed", "overview")
        self.assertEqual(self.text(".best-panel .empty"), "No trial has a result: 3 failed.")
        for view in VIEWS:
            self.view("failed", view)
            self.assertNotIn("yet", self.text("main"), view)


class Narrow(PageCase):
    experiments = (experiments.asha, experiments.objectives)

    def setUp(self):
        super().setUp()
        self.browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})

    def test_every_view_fits_a_phone(self):
        for name in ("digits", "objectives"):
            for view in [*VIEWS, "trial/0"]:
                with self.subTest(f"{name} {view}"):
                    self.view(name, view)
                    self.assertEqual(self.browser.js("return innerWidth"), 390)
                    self.assert_within()
        self.open("#/compare")
        self.assert_within()

    def test_a_trials_attempts_are_read_without_scrolling(self):
        self.view("digits", "trial/4")
        host, line = self.browser.js("const cell = document.querySelector('.attempts tbody td:nth-child(2) .name'); return [cell.offsetHeight, parseFloat(getComputedStyle(cell).lineHeight)]")
        self.assertLess(host, 1.5 * line, "a host's name is broken into pieces")
        wide, room = self.browser.js("const box = document.querySelector('.attempts').parentElement; return [box.scrollWidth, box.clientWidth]")
        self.assertLessEqual(wide, room)

    def test_paper_has_no_controls(self):
        self.browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.view("digits", "overview")
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"media": ""})
        self.assertEqual(self.browser.js("return [...document.querySelectorAll('.tabs, .tools, .actions')].filter((element) => element.offsetParent !== null).length"), 0)
        pdf = self.browser.driver.print_page()
        self.assertGreater(len(pdf), 10000)


if __name__ == "__main__":
    unittest.main()
