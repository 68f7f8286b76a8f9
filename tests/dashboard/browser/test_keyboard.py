"""The page without a mouse."""
import unittest

import experiments
from page import PageCase


class Keyboard(PageCase):
    experiments = (experiments.asha,)

    def press(self, *keys):
        self.browser.keys(*keys)

    def until_view(self, view):
        self.browser.until(f"return document.querySelector('.view-{view}:not(.loading)')")

    def test_numbers_open_the_views(self):
        self.view("digits", "overview")
        for key, view in zip("213456", ["trials", "overview", "curves", "matters", "tradeoffs", "happened"]):
            self.press(key)
            self.until_view(view)
        self.browser.driver.back()
        self.until_view("tradeoffs")

    def test_trials_are_walked_through(self):
        from selenium.webdriver.common.keys import Keys
        self.view("digits", "trials")
        self.press("j")
        self.browser.until("return document.querySelector('.side h2')?.innerText === 'Trial 0'")
        self.press("j")
        self.browser.until("return document.querySelector('.side h2')?.innerText === 'Trial 1'")
        self.press("k")
        self.browser.until("return document.querySelector('.side h2')?.innerText === 'Trial 0'")
        self.press(Keys.ENTER)
        self.until_view("trial")
        self.assertEqual(self.text(".trial-title h1"), "Trial 0")
        self.press("j")
        self.browser.until("return document.querySelector('.trial-title h1')?.innerText === 'Trial 1'")
        self.press(Keys.ESCAPE)
        self.until_view("trials")
        self.browser.until("return document.querySelector('.grid-row[aria-selected=true]')?.dataset.trial === '1'")
        self.press(Keys.ESCAPE)
        self.browser.until("return document.querySelector('.side').hidden")

    def test_the_table_by_arrows(self):
        from selenium.webdriver.common.keys import Keys
        self.view("digits", "trials")
        self.browser.js("document.querySelector('.grid').focus()")
        self.press(Keys.END)
        self.browser.until("return document.querySelector('.grid-row[aria-selected=true]')?.dataset.trial === '17'")
        self.press(Keys.ARROW_UP)
        self.browser.until("return document.querySelector('.grid-row[aria-selected=true]')?.dataset.trial === '16'")
        self.assertEqual(self.browser.js("return document.activeElement.getAttribute('aria-activedescendant')"), "row-16")

    def test_the_filter_and_the_help(self):
        from selenium.webdriver.common.keys import Keys
        self.view("digits", "trials")
        self.press("/")
        self.assertEqual(self.browser.js("return document.activeElement.id"), "filter")
        self.press("3")   # typed, and not the view of that number
        self.browser.until("return location.hash.includes('filter=3')")
        self.press(Keys.ESCAPE, Keys.ESCAPE)
        self.browser.until("return !location.hash.includes('filter') && document.activeElement.id !== 'filter'")
        self.press("?")
        self.browser.until("return document.querySelector('dialog[open]')")
        self.assertIn("Filter", self.text("dialog"))
        self.press("3")   # while it is open, keys are its own
        self.press(Keys.ESCAPE)
        self.browser.until("return !document.querySelector('dialog')")
        self.assertIn("/trials", self.hash())

    def test_every_control_is_reached_and_shows_its_focus(self):
        from selenium.webdriver.common.keys import Keys
        for view in ("overview", "curves", "matters"):
            self.view("digits", view)
            wanted = self.browser.js("return [...document.querySelectorAll('a[href], button, select, input, [tabindex=\"0\"]')].filter((one) => one.offsetParent !== null && !one.disabled && !one.classList.contains('skip')).length")
            reached = set()
            for _ in range(wanted + 10):
                self.press(Keys.TAB)
                got = self.browser.js("""
                    const one = document.activeElement;
                    if (one === document.body) return null;
                    one.dataset.reached ??= String(Math.random());
                    const style = getComputedStyle(one);
                    return [one.dataset.reached, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, one.outerHTML.slice(0, 120), one.classList.contains('skip')];""")
                if got and not got[3]:
                    reached.add(got[0])
                    self.assertTrue(got[1], f"no focus to be seen on {got[2]}")
            self.assertGreaterEqual(len(reached), wanted, f"{view}: not all controls are reached by Tab")

    def test_names_and_roles(self):
        self.view("digits", "matters")
        nameless = self.browser.js("""
            return [...document.querySelectorAll('button, a[href], select, input, [role=img]')].filter((one) => one.offsetParent !== null
              && !(one.innerText?.trim() || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.labels?.length)).map((one) => one.outerHTML.slice(0, 160))""")
        self.assertEqual(nameless, [])


if __name__ == "__main__":
    unittest.main()
