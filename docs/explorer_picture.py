"""Draw docs/explorer.png: a screenshot of the explorer's map.

python docs/explorer_picture.py      needs Debian's chromium
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

OUT = Path(__file__).with_name("explorer.png")
VIEW = "map/spike/softmax,linear?a1=0.5:1.5:200&n=1e3:1e18:200:log#A=a1:0.9,n:1e12"


def main() -> None:
    """Start an explorer, take a screenshot, and stop it."""
    program = [sys.executable, "-c", "from separatrix.cli import main; main()"]
    server = subprocess.Popen([*program, "explore", "--no-browser", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 740})
            page.goto(f"{address}{VIEW}")
            page.get_by_role("checkbox", name="certified boundary").wait_for()
            page.locator(".pinned table").wait_for()
            page.get_by_text("Cancel").wait_for(state="detached", timeout=300_000)
            page.screenshot(path=OUT)
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
