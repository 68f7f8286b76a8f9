"""The page's pure functions, in the browser: see functions.js. No server but one of files, no experiment."""
import unittest

from support import BrowserCase, FileServer


class Functions(BrowserCase):
    def test_all(self):
        files = FileServer()
        self.addCleanup(files.close)
        self.browser.driver.get(f"{files.url}/tests/functions.html")
        results = self.browser.until("return window.results", seconds=60)
        self.assertGreater(len(results), 25)
        for name, problem in results:
            with self.subTest(name):
                self.assertIsNone(problem)
        self.assertEqual(self.browser.hosts_asked(), {files.url.partition("//")[2]})


if __name__ == "__main__":
    unittest.main()
