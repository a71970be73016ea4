"""A headless Chromium, driven through chromedriver by the W3C WebDriver protocol; tests skip where there is none."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"left": "\ue012", "right": "\ue014", "escape": "\ue00c", "enter": "\ue007"}


class Browser:
    """One driver, one window."""

    def __init__(self, folder: Path) -> None:
        driver = shutil.which("chromedriver")
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not driver or not chromium:
            pytest.skip("needs a browser: apt-get install chromium chromium-driver")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._base = f"http://127.0.0.1:{port}"
        self._driver = subprocess.Popen(
            [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={folder}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        try:
            self.until(lambda: self._call("GET", "/status")["ready"])
            self._base += "/session/" + self._call("POST", "/session", wanted)["sessionId"]
        except BaseException:
            self._driver.kill()
            raise

    def close(self) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(10)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    @staticmethod
    def until(true: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait until something is so; what it came to."""
        end = time.monotonic() + seconds
        while True:
            try:
                if found := true():
                    return found
                problem: Exception | None = None
            except Exception as error:
                problem = error
            if time.monotonic() > end:
                raise TimeoutError("it never came to be so") from problem
            time.sleep(0.05)

    def open(self, address: str) -> None:
        self._call("POST", "/url", {"url": address})

    def reload(self) -> None:
        self._call("POST", "/refresh")

    def run(self, script: str, *arguments: object) -> Any:
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def click(self, selector: str, number: int = 0) -> None:
        found = self._call("POST", "/elements", {"using": "css selector", "value": selector})[number][ELEMENT]
        self._call("POST", f"/element/{found}/click")

    def press(self, keys: str) -> None:
        actions = [{"type": kind, "value": KEYS.get(keys, keys)} for kind in ("keyDown", "keyUp")]
        if keys not in KEYS:
            actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def tabs(self) -> list[str]:
        return self._call("GET", "/window/handles")

    def new_tab(self) -> str:
        return self._call("POST", "/window/new", {"type": "tab"})["handle"]

    def switch(self, tab: str) -> None:
        self._call("POST", "/window", {"handle": tab})

    def look(self, width: int, height: int, dark: bool) -> None:
        """How large the page is shown, and whether the reader likes it dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._command("Emulation.setEmulatedMedia", {"features": scheme})

    def _command(self, name: str, parameters: dict) -> None:
        self._call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))
