"""hypertune dashboard and optuna-dashboard on the same experiment, in headless Chromium: time to the first picture, bytes, memory.

Usage: compare.py --programs DIR --hypertune PROGRAM [--trials N[,N…]] [--reports N] [--folder DIR] [--patience S] [--json FILE]
In an environment with selenium, optuna and optuna-dashboard. DIR has benchmark_dashboard, which makes the experiments.
"""
import argparse
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

# The first picture is the first chart that is drawn: of ECharts a canvas with more than its axes, of Plotly a plot that has its
# data laid out. Neither script touches what the other's library draws on.
PICTURES = {
    "hypertune": """
for (const canvas of document.querySelectorAll('canvas')) {
  if (!canvas.width || !canvas.height) continue;
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 128) continue;
    colours.add((data[i] >> 4) << 8 | (data[i + 1] >> 4) << 4 | data[i + 2] >> 4);
    if (colours.size > 3) return true;
  }
}
return false;
""",
    "optuna-dashboard": """
return [...document.querySelectorAll('.js-plotly-plot')].some((plot) => plot.querySelector('.main-svg') && plot.calcdata?.some((trace) => trace.length > 1));
""",
}


def resident(pid):
    """In bytes, with all children; 0 where it has ended."""
    total, rest = 0, [pid]
    while rest:
        one = rest.pop()
        try:
            for line in pathlib.Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1]) * 1024
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                rest += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return total


class Server:
    """A process that serves, and the most memory that it had."""

    def __init__(self, command):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ended.wait(0.05):
            self.peak = max(self.peak, resident(self.process.pid))

    def close(self):
        self.ended.set()
        self.thread.join()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def browser(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     "--disable-dev-shm-usage", "--window-size=1360,900", f"--user-data-dir={profile}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(600)
    driver.set_script_timeout(600)
    return driver


def transferred(driver):
    """Bytes over the network, and those of the largest answer."""
    total = largest = 0
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.loadingFinished":
            size = message["params"]["encodedDataLength"]
            total += size
            largest = max(largest, size)
    return total, largest


def until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return None


def picture(server, url, script, patience):
    """What it took until a chart stood in a browser that was there already; None: none did."""
    profile = tempfile.mkdtemp(prefix="benchmark-chromium-")
    driver = browser(profile)
    try:
        driver.get("about:blank")
        driver.get_log("performance")
        address = url(server)
        opened = time.monotonic()
        driver.get(address)
        drawn = until(lambda: driver.execute_script(script), patience)
        now = time.monotonic()
        total, largest = transferred(driver)
        if not drawn:
            return None
        return {"page": now - opened, "bytes": total, "largest": largest, "peak": max(server.peak, resident(server.process.pid))}
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


def measured(command, url, script, patience):
    server = Server([str(word) for word in command])
    try:
        return picture(server, url, script, patience)
    finally:
        server.close()


def hypertune_url(server):
    return server.process.stdout.readline().strip()


def optuna_url(port, patience):
    address = f"http://127.0.0.1:{port}"

    def studies():
        try:
            with urllib.request.urlopen(f"{address}/api/studies", timeout=patience) as answer:
                return json.loads(answer.read())["study_summaries"]
        except (OSError, ValueError):
            return None

    def url(_):
        found = until(studies, patience)
        if not found:
            raise RuntimeError("optuna-dashboard does not answer")
        return f"{address}/dashboard/studies/{found[0]['study_id']}"
    return url


def row(name, own, peer, unit, scale):
    cells = [name, f"{own * scale:,.2f} {unit}"]
    cells += [f"{peer * scale:,.2f} {unit}", f"{peer / own:,.1f}x"] if peer else ["none", ""]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--hypertune", type=pathlib.Path, required=True)
    parser.add_argument("--trials", default="1000,10000")
    parser.add_argument("--reports", type=int, default=27)
    parser.add_argument("--folder", type=pathlib.Path, help="keep the experiments here")
    parser.add_argument("--patience", type=float, default=120, help="seconds until a first picture counts as none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        sys.exit("compare.py: chromium and chromedriver are missing: scripts/setup --ci")
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="benchmark-dashboard-"))
    peer_program = pathlib.Path(sys.executable).parent / "optuna-dashboard"
    lines = []
    for trials in map(int, arguments.trials.split(",")):
        experiment = folder / f"{trials}x{arguments.reports}"
        if not (experiment / "experiment.db").exists():
            subprocess.run([arguments.programs / "benchmark_dashboard", "--make", experiment, str(trials), str(arguments.reports)], check=True)
        storage = folder / f"{trials}x{arguments.reports}.optuna.db"
        if not storage.exists():
            subprocess.run([arguments.hypertune, "export", experiment, "--format", "optuna", "-o", storage], check=True)
        port = free_port()
        systems = {"hypertune": ([arguments.hypertune, "dashboard", experiment], hypertune_url),
                   "optuna-dashboard": ([peer_program, "--port", port, f"sqlite:///{storage}"], optuna_url(port, arguments.patience))}
        result = {}
        for name, (command, url) in systems.items():
            runs = []
            for _ in range(arguments.repeat):
                one = measured(command, url, PICTURES[name], arguments.patience)
                if one is None:   # it would not be faster the next time
                    break
                runs.append(one)
            result[name] = {key: statistics.median(run[key] for run in runs) for key in runs[0]} if runs else None
            lines.append(json.dumps({"trials": trials, "reports": arguments.reports, "system": name, "runs": runs}))
        own, peer = result["hypertune"], result["optuna-dashboard"]
        print(f"\n{trials:,} trials of {arguments.reports} reports")
        for name, one in result.items():
            if one is None:
                print(f"{name} drew nothing within {arguments.patience:.0f} s")
        if own is None:
            continue
        print("| figure | hypertune | optuna-dashboard | ratio |\n|---|---:|---:|---:|")
        for name, key, unit, scale in [("page opened to first picture", "page", "s", 1), ("bytes until then", "bytes", "kB", 1e-3),
                                       ("the largest answer", "largest", "kB", 1e-3), ("most memory of the server until then", "peak", "MiB", 2**-20)]:
            print(row(name, own[key], peer[key] if peer else None, unit, scale))
    if arguments.json:
        arguments.json.write_text("".join(line + "\n" for line in lines))
    if not arguments.folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
