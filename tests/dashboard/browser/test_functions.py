"""The page's pure functions, in the browser: see functions.js. No server but one of files, no experiment."""
import unittest

from support import BrowserCase, FileServer, wait_until


class Functions(BrowserCase):
    def results(self):
        results = self.browser.js("return window.results")
        if not results:
            self.browser.require_same_network()
        return results

    def test_all(self):
        files = FileServer()
        self.addCleanup(files.close)
        results = self.browser.load(f"{files.url}/tests/functions.html", lambda: wait_until(self.results, "the results", seconds=60))
        self.assertGreater(len(results), 25)
        for name, problem in results:
            with self.subTest(name):
                self.assertIsNone(problem)
        self.assertEqual(self.browser.hosts_asked(), {files.url.partition("//")[2]})


if __name__ == "__main__":
    unittest.main()
