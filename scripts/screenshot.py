"""Photograph a report: ``python scripts/screenshot.py REPORT.html OUT.png`` (or ``.pdf`` for the printed page).

Needs the Python package playwright and a Chromium on PATH.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


def chromium() -> str:
    """The Chromium found on PATH, or an exit with what to install."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    sys.exit("no chromium, chromium-browser or google-chrome on PATH; on Debian: apt-get install chromium")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="the report's HTML file")
    parser.add_argument("out", type=Path, help="where the picture goes: .png, or .pdf for the printed page")
    parser.add_argument("--width", type=int, default=1120, help="width of the window in points (default 1120)")
    parser.add_argument("--height", type=int, default=1180, help="height of the window in points (default 1180)")
    parser.add_argument("--scale", type=float, default=2.0, help="pixels per point (default 2)")
    parser.add_argument("--dark", action="store_true", help="in dark mode")
    parser.add_argument("--full", action="store_true", help="the whole page, not only the window")
    parser.add_argument("--still", action="store_true", help="with scripts blocked")
    asked = parser.parse_args()
    if not asked.report.is_file():
        parser.error(f"{asked.report} is not a file")

    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        page = browser.new_page(
            viewport={"width": asked.width, "height": asked.height},
            device_scale_factor=asked.scale,
            color_scheme="dark" if asked.dark else "light",
            java_script_enabled=not asked.still,
        )
        page.goto(asked.report.resolve().as_uri())
        if not asked.still:
            page.wait_for_selector("html[data-ready]", state="attached")
        if asked.out.suffix == ".pdf":
            page.pdf(path=asked.out, format="A4", print_background=True)
        else:
            page.screenshot(path=asked.out, full_page=asked.full)
        browser.close()


if __name__ == "__main__":
    main()
