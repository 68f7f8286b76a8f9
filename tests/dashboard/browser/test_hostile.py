"""Names that are made to do harm, or to break a layout: none runs, none widens the page, all are shown as what they are."""
import unittest
import xml.etree.ElementTree

import experiments
from experiments import HOSTILE
from page import VIEWS, PageCase


class Hostile(PageCase):
    experiments = (experiments.hostile, experiments.asha)

    def assert_harmless(self):
        self.assertIsNone(self.browser.js("return window.pwned ?? null"), "a script of a name ran")
        self.assertEqual(self.browser.js("return document.querySelectorAll('main img, main script, main iframe, main b b, aside img').length"), 0)
        self.assert_within()
        self.assert_quiet()

    def test_every_view(self):
        for view in [*VIEWS, "trial/0", "trial/3"]:
            with self.subTest(view):
                self.view("hostile", view)
                self.assert_harmless()
        self.open("#/compare")
        self.assert_harmless()
        self.open()
        self.assert_harmless()

    def test_names_are_shown_as_they_are(self):
        self.view("hostile", "trials")
        heads = self.browser.js("return [...document.querySelectorAll('[role=columnheader] .name')].map((one) => one.textContent)")
        for name in (HOSTILE["script"], HOSTILE["markup"], HOSTILE["emoji"], HOSTILE["quotes"]):
            self.assertIn(name, heads)
        self.view("hostile", "trial/0")
        wide, room = self.browser.js("const box = document.querySelector('.of-metrics').parentElement; return [box.scrollWidth, box.clientWidth]")
        self.assertLessEqual(wide, room, "a metric's name pushes its values out of sight")
        self.browser.until("return document.querySelector('.log').textContent.includes('<b>bold</b>')")
        self.assertEqual(self.browser.js("return document.querySelector('.log').children.length"), 0)

    def test_the_charts_with_their_tooltips(self):
        from selenium.webdriver.common.action_chains import ActionChains
        self.view("hostile", "matters")
        self.assert_drawn("importance", "pair", "slices", "parallel", "edf", "against")
        for chart, point in (("against", None), ("pair", None)):
            data = self.series(chart)["trials"]
            x, y = self.place_of(chart, data[0][:2])
            chain = ActionChains(self.browser.driver, duration=20)
            chain.w3c_actions.pointer_action.move_to_location(int(x) + 1, int(y) + 1)
            chain.w3c_actions.pointer_action.move_to_location(int(x), int(y))
            chain.w3c_actions.perform()
            self.browser.until("return [...document.querySelectorAll('.tip')].some((tip) => tip.innerText.includes('trial'))")
        self.assert_harmless()
        self.browser.find("[data-control=kind][data-value=rank]").click()
        self.settled()
        self.assert_harmless()

    def test_links_of_awkward_names_work(self):
        self.view("hostile", "trials")
        self.browser.js("[...document.querySelectorAll('[data-sort]')].find((button) => button.dataset.sort.includes('LLLL')).click()")
        self.browser.until("return document.querySelector('[aria-sort] .name')?.textContent.startsWith('LLLL')")
        self.browser.driver.refresh()
        self.settled()
        self.assertTrue(self.browser.js("return document.querySelector('[aria-sort] .name').textContent.startsWith('LLLL')"))
        self.view("hostile", "curves", metric=HOSTILE["long"])
        self.assert_drawn("curves")
        self.assert_harmless()

    def test_a_saved_chart_is_an_svg_and_nothing_else(self):
        self.view("hostile", "matters")
        svg = self.downloaded(lambda: self.browser.js("[...document.querySelectorAll('[data-figure=slices] button')].find((button) => button.textContent === 'SVG').click()"), ".svg")
        tags = {element.tag.rpartition("}")[2] for element in xml.etree.ElementTree.fromstring(svg).iter()}
        self.assertFalse(tags & {"script", "img", "image", "foreignObject", "a"}, tags)


if __name__ == "__main__":
    unittest.main()
