"""The page while a run goes on, is killed, is resumed and ends; and while its own server is away."""
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import experiments
from page import PageCase
from support import Dashboard, Process, wait_until


class Live(PageCase):
    """A run whose trials go as far as a test allows."""

    def setUp(self):
        super().setUp()
        self.own = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-live-"))
        self.addCleanup(shutil.rmtree, self.own, ignore_errors=True)
        (self.own / "runs").mkdir()
        self.allowed = self.own / "allowed"
        self.allow(0)
        experiments.write(self.own, "live", samples=8, concurrency=2)
        self.run_ = None
        # A dashboard of the test's own, as it is ended in some.
        self.dashboard = Dashboard("runs", cwd=self.own)
        self.addCleanup(lambda: self.dashboard.close())
        self.addCleanup(lambda: self.run_ and self.run_.close())

    def allow(self, steps):
        new = self.allowed.with_suffix(".new")
        new.write_text(str(steps))
        os.replace(new, self.allowed)

    def start(self, *arguments, steps=6):
        self.run_ = Process("run", "live.yaml", *arguments, cwd=self.own, ALLOWED=str(self.allowed), STEPS=str(steps))

    def begin(self):
        self.start()
        wait_until(lambda: "live" in self.ids(), "the experiment's record")

    def test_an_experiment_appears_in_the_list_and_grows_by_itself(self):
        self.open()
        self.assertIn("no experiment", self.text("main"))
        self.start()
        self.browser.until("return document.querySelector('[data-experiment]')")
        self.browser.find("[data-experiment]").click()
        self.browser.until("return document.querySelector('.view-overview:not(.loading)')")
        self.browser.until("return document.querySelector('.run-state').innerText === 'running'")
        self.allow(1)
        self.browser.until("return document.querySelector('[data-chart=best]')?.dataset.drawn && echarts.getInstanceByDom(document.querySelector('[data-chart=best]')).getOption().series.some((series) => series.id === 'best' && series.data.length > 0)")
        self.allow(6)
        self.browser.until("return /The run has ended/.test(document.querySelector('.notices').innerText)", seconds=60)
        self.browser.until("return document.querySelector('.run-state').innerText === 'ended'")
        self.browser.until("return [...document.querySelectorAll('.counts a')].some((one) => one.innerText.trim() === '8 completed')")
        self.assert_quiet()

    def test_what_a_person_holds_stays_where_it_is(self):
        self.begin()
        self.allow(2)
        self.view("live", "overview")
        self.browser.until("return document.querySelector('[data-chart=best]')?.dataset.drawn && echarts.getInstanceByDom(document.querySelector('[data-chart=best]')).getOption().series.some((series) => series.data.length > 1)")
        self.browser.drag("[data-chart=best] canvas", (.3, .3), (.7, .8))
        self.browser.until("return location.hash.includes('z.best=')")
        zoom = self.query()["z.best"]
        self.browser.driver.set_window_size(1360, 420)
        self.addCleanup(self.browser.driver.set_window_size, self.width, self.height)
        self.browser.js("document.querySelector('.counts [data-key=completed]').focus({preventScroll: true}); window.scrollTo(0, 150)")
        before = self.browser.js("return Number(document.querySelector('[data-chart=best]').dataset.drawn)")
        self.allow(5)
        self.browser.until("return Number(document.querySelector('[data-chart=best]').dataset.drawn) > arguments[0]", before)
        self.assertEqual(self.browser.js("return document.activeElement.dataset.key"), "completed")
        self.assertEqual(self.browser.js("return Math.round(scrollY)"), 150)
        self.assertEqual(self.query()["z.best"], zoom)
        low, high = self.browser.js("const zoom = echarts.getInstanceByDom(document.querySelector('[data-chart=best]')).getOption().dataZoom[0]; return [zoom.startValue, zoom.endValue]")
        self.assertAlmostEqual(low, float(zoom.split(",")[0]), places=4)
        self.assertAlmostEqual(high, float(zoom.split(",")[1]), places=4)

    def test_what_runs_fits_its_column(self):
        experiments.write(self.own, "live", samples=8, concurrency=8, resources={"cpus": 0.25}, metric="validation accuracy of all classes")
        self.run_ = Process("run", "live.yaml", cwd=self.own, ALLOWED=str(self.allowed), STEPS="6", METRICS='["validation accuracy of all classes"]')
        wait_until(lambda: "live" in self.ids(), "the experiment's record")
        self.allow(1)
        for width in (1360, 1920, 700):
            self.browser.driver.set_window_size(width, 900)
            self.addCleanup(self.browser.driver.set_window_size, self.width, self.height)
            self.view("live", "overview")
            self.browser.until("return [...document.querySelectorAll('.running tbody tr')].some((row) => /0[.]/.test(row.innerText))")
            boxes = self.browser.js("return [...document.querySelectorAll('.table-box')].map((box) => [box.scrollWidth, box.clientWidth])")
            self.assertGreater(len(boxes), 0)
            for wide, room in boxes:
                self.assertLessEqual(wide, room, f"a panel is scrolled at {width} px")
            panel = self.browser.js("return document.querySelector('.running').closest('.panel').clientWidth")
            self.assertEqual(self.browser.js("return document.querySelector('.running').clientWidth"), panel, "the table is as wide as its panel")
        self.allow(6)

    def test_a_log_is_followed(self):
        self.begin()
        self.allow(1)
        self.view("live", "trial/0")
        self.browser.until("return document.querySelector('.log').textContent.includes('epoch 0')")
        self.browser.js("document.querySelector('.log').firstChild.mark = true")
        self.allow(4)
        self.browser.until("return document.querySelector('.log').textContent.includes('epoch 3')")
        self.assertTrue(self.browser.js("return document.querySelector('.log').firstChild.mark"), "what was there is not loaded again")
        self.assertEqual(self.browser.js("return document.querySelector('.log').textContent.split('epoch 0 ').length"), 2)

    def test_a_run_that_is_killed_and_resumed(self):
        self.begin()
        self.allow(3)
        self.view("live", "overview")
        self.browser.until("return document.querySelector('.run-state').innerText === 'running'")
        self.browser.until("return document.querySelector('[data-chart=best]')?.dataset.drawn")
        self.run_.kill()
        self.browser.until("return /The run was killed/.test(document.querySelector('.notices').innerText)")
        self.browser.until("return document.querySelector('.run-state').innerText === 'killed'")
        self.start("--resume")
        self.browser.until("return /The run was resumed/.test(document.querySelector('.notices').innerText)", seconds=60)
        self.browser.until("return document.querySelector('.run-state').innerText === 'running'")
        self.allow(6)
        self.browser.until("return /The run has ended/.test(document.querySelector('.notices').innerText)", seconds=60)

    def test_a_server_that_goes_away_and_comes_back(self):
        self.expected += [r"ERR_(CONNECTION_(REFUSED|RESET)|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)"]
        self.begin()
        self.allow(1)
        self.view("live", "overview")
        self.browser.until("return document.querySelector('.link').dataset.link === 'open'")
        port = re.search(r":(\d+)", self.dashboard.url).group(1)
        self.dashboard.close()
        self.browser.until("return /lost/.test(document.querySelector('[data-notice=connection]')?.innerText)")
        self.allow(3)
        self.dashboard = Dashboard("runs", cwd=self.own, arguments=("--port", port))
        self.browser.until("return document.querySelector('.link').dataset.link === 'open' && !document.querySelector('[data-notice=connection]')", seconds=60)
        drawn = self.browser.js("return Number(document.querySelector('[data-chart=best]').dataset.drawn)")
        self.allow(6)
        self.browser.until("return Number(document.querySelector('[data-chart=best]').dataset.drawn) > arguments[0]", drawn)
        self.browser.until("return /The run has ended/.test(document.querySelector('.notices').innerText)", seconds=60)


if __name__ == "__main__":
    unittest.main()
