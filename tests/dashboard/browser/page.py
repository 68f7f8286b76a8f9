"""The page as a person meets it: opening views, reading what stands there, looking at what is drawn."""
import json
import pathlib
import shutil
import tempfile
import time
import urllib.parse
import urllib.request
import unittest

from support import BrowserCase, Dashboard, hypertune_has_dashboard, skip_reason, wait_until

VIEWS = ["overview", "trials", "curves", "matters", "tradeoffs", "happened"]

# All charts that are shown have been drawn with the newest data, and what they drew is more than one colour.
DRAWN = """
const charts = [...document.querySelectorAll('.chart:not(.none)')].filter((chart) => chart.clientWidth > 0 && chart.clientHeight > 0);
return charts.every((chart) => chart.dataset.drawn) ? charts.length : false;
"""
PICTURE = """
const chart = document.querySelector(`[data-chart="${arguments[0]}"]`);
const canvas = chart?.querySelector('canvas');
if (!canvas) return null;
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
const colours = new Map();
let drawn = 0;
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] < 128) continue;
  drawn += 1;
  const colour = `${data[i] >> 4},${data[i + 1] >> 4},${data[i + 2] >> 4}`;
  colours.set(colour, (colours.get(colour) ?? 0) + 1);
}
return {drawn, colours: colours.size, width: canvas.width, height: canvas.height};
"""


class PageCase(BrowserCase):
    """Experiments in a folder, a dashboard of them, and a browser that opens it."""

    experiments = ()   # functions of experiments.py

    @classmethod
    def make_folder(cls, prefix):
        reason = skip_reason()
        if reason:
            raise unittest.SkipTest(reason)
        if not hypertune_has_dashboard():
            raise unittest.SkipTest("hypertune was built without its dashboard")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for make in cls.experiments:
            make(cls.folder)

    @classmethod
    def setUpClass(cls):
        cls.make_folder("hypertune-page-")
        (cls.folder / "runs").mkdir(exist_ok=True)
        cls.dashboard = Dashboard("runs", cwd=cls.folder)
        cls.addClassCleanup(cls.dashboard.close)
        super().setUpClass()

    @property
    def url(self):
        return self.dashboard.url + "/"

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}{path.lstrip('/')}?{query}", timeout=30) as answer:
            return json.loads(answer.read())

    def ids(self):
        return {pathlib.PurePosixPath(one["id"]).name: one["id"] for one in self.ask("/api/experiments")["experiments"]}

    def address(self, name, view, **query):
        place = urllib.parse.quote(self.ids()[name], safe="")
        rest = urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
        return f"#/e/{place}/{view}" + (f"?{rest}" if rest else "")

    def open(self, hash_=""):
        return self.browser.load(self.url + hash_, self.settled)

    def has_data(self):
        if self.browser.js("return Number(document.documentElement.dataset.refreshed || 0) > 0 && !document.querySelector('main.loading')"):
            return True
        self.browser.require_same_network()
        return False

    def settled(self):
        """The view has its data, and its charts are drawn. -> how many there are"""
        wait_until(self.has_data, "the view's data")
        self.browser.until(f"const n = (() => {{{DRAWN}}})(); return n !== false")
        return self.browser.js(DRAWN)

    def view(self, name, view, **query):
        self.open(self.address(name, view, **query))

    def text(self, selector):
        return self.browser.js("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def texts(self, selector):
        return self.browser.js("return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText)", selector)

    def hash(self):
        return self.browser.js("return location.hash")

    def query(self):
        return dict(urllib.parse.parse_qsl(self.hash().partition("?")[2]))

    def picture(self, chart):
        """Pixels that are drawn: a chart that failed has none, and an empty one but the grey of its axes."""
        return self.browser.js(PICTURE, chart)

    def assert_drawn(self, *charts):
        for chart in charts:
            picture = self.picture(chart)
            self.assertIsNotNone(picture, f"there is no chart {chart}")
            self.assertGreater(picture["drawn"], 300, f"the chart {chart} is empty: {picture}")
            self.assertGreater(picture["colours"], 1 if chart == "importance" else 3, f"the chart {chart} has only its axes: {picture}")

    def assert_quiet(self):
        """Nothing was asked of another host, and no error is on the page."""
        self.assertEqual(self.browser.hosts_asked(), {self.dashboard.url.partition("//")[2]})
        self.assertEqual(self.texts(".notice.bad"), [])

    def assert_within(self):
        wide = self.browser.js("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(wide[0], wide[1], "the page is wider than the window")

    def series(self, chart, key="id"):
        """What ECharts holds: {id of the series: its data}"""
        return self.browser.js("""
            const option = echarts.getInstanceByDom(document.querySelector(`[data-chart="${arguments[0]}"]`)).getOption();
            return Object.fromEntries(option.series.map((series) => [series.id, series.data]));""", chart)

    def place_of(self, chart, point):
        """Where in the window a chart draws a point of its first grid."""
        return self.browser.js("""
            const element = document.querySelector(`[data-chart="${arguments[0]}"]`);
            element.scrollIntoView({block: 'center'});
            const [x, y] = echarts.getInstanceByDom(element).convertToPixel({gridIndex: 0}, arguments[1]);
            const box = element.querySelector('canvas').getBoundingClientRect();
            return [box.left + x, box.top + y];""", chart, point)

    def click_at(self, x, y):
        from selenium.webdriver.common.action_chains import ActionChains
        chain = ActionChains(self.browser.driver, duration=10)
        chain.w3c_actions.pointer_action.move_to_location(int(round(x)), int(round(y)))
        chain.w3c_actions.pointer_action.click()
        chain.w3c_actions.perform()

    def downloaded(self, action, ending):
        """Runs the action, and returns the bytes of the file that it saved."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-download-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        action()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            done = [path for path in folder.iterdir() if path.suffix == ending and path.stat().st_size > 0]
            if done:
                return done[0].read_bytes()
            time.sleep(0.05)
        self.fail(f"no {ending} was saved: {list(folder.iterdir())}")
