#!/usr/bin/env python3
"""How long `sigma monitor` takes to list 500 runs, and to show a curve of 10^6 points.

    bench/runs.py [build/release/sigma] [--runs 500] [--points 1000000] [--keep FOLDER]

Makes runs below a folder, starts the command, and takes the time of its first answers, of later ones, and,
where there is a chromedriver, of what a browser shows: from the address until the rows are there, and from a
click until the curve is drawn. Needs nothing but Python and the command.
"""
import argparse
import http.cookiejar
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

CONFIGURATION = """name: digits
seed: {seed}
epochs: 100
network: input(28, 28) dense(size={size}) relu dense(size=10) softmax_cross_entropy
data:
  training: {{dataset: digits, split: train}}
  validation: {{dataset: digits, split: test}}
  batch: {batch}
optimiser: {{type: {optimiser}, learning_rate: {rate}}}
"""


def line(epoch, rate, noise):
    loss = 2.3 * math.exp(-epoch * rate / 50) + 0.1 + noise
    return ('{"epoch":%d,"iteration":%d,"branch":0,"seconds":%.3f,"loss":%.8g,"accuracy":%.7g,'
            '"learning_rate":%.8g,"validation.loss":%.8g,"validation.accuracy":%.7g}\n'
            % (epoch, epoch * 600, epoch * 1.25, loss, 1 - loss / 2.6, rate, loss * 1.1, 1 - loss / 2.4))


def make(folder, runs, points):
    draw = random.Random(1)
    for number in range(runs):
        place = os.path.join(folder, "run-%04d" % number)
        os.makedirs(place)
        rate = 10 ** draw.uniform(-4, -1)
        with open(os.path.join(place, "config.yaml"), "w") as file:
            file.write(CONFIGURATION.format(seed=number % 5, size=draw.choice([100, 400, 800]),
                                            batch=draw.choice([32, 100]), rate="%.6f" % rate,
                                            optimiser=draw.choice(["adam", "sgd", "rmsprop"])))
        count = points if number == 0 else 100
        with open(os.path.join(place, "metrics.jsonl"), "w") as file:
            file.writelines(line(epoch + 1, rate, draw.gauss(0, 0.01)) for epoch in range(count))
        with open(os.path.join(place, "log.txt"), "w") as file:
            file.write("2026-11-21 20:55:09.100 [7] info digits: training begins after epoch 0, iteration 0\n"
                       "2026-11-21 21:55:09.100 [7] info digits: training ended after epoch %d\n" % count)


class Page:
    """The command, and its answers."""

    def __init__(self, sigma, folder):
        self.process = subprocess.Popen([sigma, "monitor", folder], stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://\S+", self.process.stdout.readline()).group()
        base = self.address.split("/?")[0]
        cookies = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPCookieProcessor(cookies))
        final = opener.open(self.address)
        page = re.search(r"[?&]page-token=([^&]+)", final.geturl())
        self.base, self.opener, self.page = base, opener, page.group(1) if page else ""

    def get(self, path):
        begin = time.perf_counter()
        request = urllib.request.Request(f"{self.base}/api/{path}", headers={"X-Sigma-Token": self.page})
        text = self.opener.open(request).read()
        return json.loads(text), len(text), time.perf_counter() - begin

    def close(self):
        self.process.terminate()
        self.process.wait()


class Browser:
    """Chromium by W3C's WebDriver protocol."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        port = None
        while port is None:
            found = re.search(r"on port (\d+)\.", self.driver.stdout.readline())
            port = found and found.group(1)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-proxy-server", "--window-size=1440,900"]
        self.url = f"http://127.0.0.1:{port}/session"
        capabilities = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        self.url += "/" + self.ask("", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]

    def ask(self, path, body, method="POST"):
        request = urllib.request.Request(self.url + path, method=method,
                                         data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.load(opener.open(request))["value"]

    def until(self, expression):
        script = ("const done = arguments[0], look = () => { let is = false; try { is = Boolean(%s) } catch {} "
                  "is ? done(true) : setTimeout(look, 5) }; look()" % expression)
        return self.ask("/execute/async", {"script": script, "args": []})

    def do(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def close(self):
        self.ask("", None, "DELETE")
        self.driver.terminate()
        self.driver.wait()


def in_browser(address, rows):
    """Seconds until the table is there, and until the long curve is drawn."""
    browser = Browser()
    browser.ask("/timeouts", {"script": 60000})
    begin = time.perf_counter()
    browser.ask("/url", {"url": address})
    browser.until("document.querySelectorAll('[data-run]').length >= %d" % min(rows, 200))
    listed = time.perf_counter() - begin
    browser.do("document.querySelector(\"[data-key='name']\").click()")
    browser.until("document.querySelector('[data-run]').dataset.run === 'run-0000'")
    begin = time.perf_counter()
    browser.do("document.querySelector(\"[data-run='run-0000']\").click()")
    browser.until("/[0-9]/.test(document.querySelector('.runs-canvas').getAttribute('aria-label').split(' ').at(-1))")
    drawn = time.perf_counter() - begin
    browser.close()
    return listed, drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sigma", nargs="?", default="build/release/sigma")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--keep", metavar="FOLDER", help="make the runs there, or take those that are there")
    asked = parser.parse_args()
    folder = asked.keep or tempfile.mkdtemp(prefix="sigma-runs-")
    if not os.path.isdir(folder) or not os.listdir(folder):
        make(folder, asked.runs, asked.points)
    megabytes = os.path.getsize(os.path.join(folder, "run-0000", "metrics.jsonl")) / 1e6
    print(f"{asked.runs} runs, one of {asked.points} points ({megabytes:.0f} MB)")
    for start in ("first", "second"):
        page = Page(asked.sigma, folder)
        answer, size, seconds = page.get("runs")
        print(f"{start} start: list of {len(answer['runs'])} runs {seconds * 1e3:.0f} ms, {size / 1e3:.0f} kB")
        print(f"  nothing new {page.get('runs?after=%d' % answer['revision'])[2] * 1e3:.1f} ms")
        for path in ("run/run-0000", "run/run-0000"):
            _, size, seconds = page.get(path)
            print(f"  the long run {seconds * 1e3:.0f} ms, {size / 1e3:.0f} kB")
        page.close()
    if shutil.which("chromedriver"):
        page = Page(asked.sigma, folder)
        listed, drawn = in_browser(page.address, asked.runs)
        print(f"browser, new start: list {listed * 1e3:.0f} ms, curve {drawn * 1e3:.0f} ms")
        page.close()
    if not asked.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
