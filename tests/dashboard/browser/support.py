"""What the tests of the page share: a browser, a server of files, the dashboard, and experiments that are really run."""
import ctypes
import fcntl
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
from command_case import HYPERTUNE, wait_until  # noqa: E402

PAGE = HERE.parents[2] / "src" / "dashboard" / "page"


def take_own_network():
    """This process and what it starts have a network of their own, with 127.0.0.1 alone, where that is allowed (root).

    Chromium drops its requests when an interface of its network comes or goes (ERR_NETWORK_CHANGED), and the tests of
    Kubernetes, which run beside these, make interfaces come and go."""
    clone_newnet, siocgifflags, siocsifflags, iff_up = 0x40000000, 0x8913, 0x8914, 1
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, siocgifflags, request))[1]
        fcntl.ioctl(any_socket, siocsifflags, struct.pack("16sh14x", b"lo", flags | iff_up))


take_own_network()


def skip_reason():
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (scripts/setup --ci)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no Python environment with selenium"
    return None


class Browser:
    """Chromium without a window, which tells what it printed to its console and whom it asked for anything."""

    def __init__(self, width=1360, height=900, arguments=()):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        self.profile = tempfile.mkdtemp(prefix="hypertune-chromium-")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                         f"--user-data-dir={self.profile}", *arguments]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(30)
        self.said = []
        self.asked = []

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, script, *arguments, seconds=30):
        """Waits until the script returns something true, and returns it."""
        return wait_until(lambda: self.js(script, *arguments), script, seconds)

    def collect(self):
        for entry in self.driver.get_log("browser"):
            self.said.append(f"{entry['level']}: {entry['message']}")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.asked.append(message["params"]["request"]["url"])

    def require_same_network(self):
        self.collect()
        if any("ERR_NETWORK_CHANGED" in line for line in self.said):
            raise NetworkChanged

    def load(self, url, settled):
        """Opens a page and waits for it by `settled()`; opens it again where that raises NetworkChanged."""
        for _ in range(20):
            self.driver.get("about:blank")
            self.driver.get(url)
            try:
                return settled()
            except NetworkChanged:
                self.said.clear()
                self.asked.clear()
        raise AssertionError("the machine's network changed again and again")

    def load_until(self, url, script):
        """Opens a page, in the same way, and waits until the script returns something true."""
        self.load(url, lambda: wait_until(lambda: self.js(script) or self.require_same_network(), script))

    def hosts_asked(self):
        """Who was asked, without what is in the page itself."""
        self.collect()
        return {re.match(r"[a-z]+://([^/]*)", url).group(1) for url in self.asked if re.match(r"(http|ws)s?://", url)}

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        chain = ActionChains(self.driver, duration=10)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def find(self, selector):
        from selenium.webdriver.common.by import By
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def drag(self, selector, start, end):
        """Within an element, from and to shares of its width and height."""
        from selenium.webdriver.common.action_chains import ActionChains
        element = self.find(selector)
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        box = self.js("const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", element)
        at = [[int(box[0] + x * box[2]), int(box[1] + y * box[3])] for x, y in (start, end)]
        chain = ActionChains(self.driver, duration=60)
        chain.w3c_actions.pointer_action.move_to_location(*at[0])
        chain.w3c_actions.pointer_action.pointer_down()
        chain.w3c_actions.pointer_action.move_to_location((at[0][0] + at[1][0]) // 2, (at[0][1] + at[1][1]) // 2)
        chain.w3c_actions.pointer_action.move_to_location(*at[1])
        chain.w3c_actions.pointer_action.pointer_up()
        chain.w3c_actions.perform()


class NetworkChanged(Exception):
    """Chromium dropped its requests because an interface came or went: possible where take_own_network() was not allowed."""


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the page's files below /page/ and those of the tests below /tests/."""

    made = {}   # paths that have no file -> their content

    def log_message(self, *_):
        pass

    def do_GET(self):   # noqa: N802
        content = self.made.get(self.path.partition("?")[0])
        if content is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def translate_path(self, path):
        path = path.partition("?")[0].partition("#")[0]
        root = {"page": PAGE, "tests": HERE}
        first, _, rest = path.lstrip("/").partition("/")
        place = (root.get(first, HERE / "nothing") / rest).resolve()
        return str(place if root.get(first) in place.parents else HERE / "nothing")


class FileServer:
    def __init__(self, made=None):
        handler = type("Handler", (Files,), {"made": made or {}})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class BrowserCase(unittest.TestCase):
    """A browser for all tests of a class; each begins with an empty console and ends with looking at it."""

    width, height = 1360, 900
    may_say = ()   # patterns of what the console may have after a test

    @classmethod
    def setUpClass(cls):
        reason = skip_reason()
        if reason:
            raise unittest.SkipTest(reason)
        cls.browser = Browser(cls.width, cls.height)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.driver.get("about:blank")
        self.browser.collect()
        self.browser.said.clear()
        self.browser.asked.clear()
        self.expected = ["ERR_NETWORK_CHANGED", *self.may_say]

    def tearDown(self):
        self.check_console()

    def check_console(self):
        self.browser.collect()
        said = [line for line in self.browser.said if not any(re.search(pattern, line) for pattern in self.expected)]
        self.assertEqual(said, [], "the console has messages")


def run(*arguments, cwd, check=True, timeout=120, **environment):
    done = subprocess.run([HYPERTUNE, *arguments], cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError(f"hypertune {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
    return done


class Process:
    """A hypertune that runs beside the test; it and its children are gone at the end."""

    def __init__(self, *arguments, cwd, **environment):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="hypertune-log-", suffix=".txt")
        self.process = subprocess.Popen([HYPERTUNE, *arguments], cwd=cwd, env={**os.environ, **environment}, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def text(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def kill(self):
        """As a power cut does: the driver and everything it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(30)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        self.log.close()


class Dashboard(Process):
    def __init__(self, *folders, cwd, arguments=()):
        super().__init__("dashboard", *map(str, folders), *arguments, cwd=cwd)

        def address():
            if self.process.poll() is not None:
                raise AssertionError(f"hypertune dashboard ended with {self.process.returncode}:\n{self.text()}")
            found = re.search(r"http://[^\s/]+:(\d+)", self.text())
            return found.group(0) if found else None
        self.url = wait_until(address, "the dashboard's address")


@functools.cache
def hypertune_has_dashboard():
    done = subprocess.run([HYPERTUNE, "dashboard", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode == 0


if __name__ == "__main__":
    print(skip_reason() or "all is there")
    sys.exit(0)
