#!/usr/bin/env python3
"""check_browser.py PAGE.html: opens the page in headless Chromium as a telephone, a tablet and a desk show it, light and
dark, with everything unfolded. Faults: a message in the console, something wider than the screen, in a picture a text
that leaves it or touches another, text in the colour of its ground. Prints each; exits 1 if there is one and 77 if
there is no Chromium.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (390, 768, 1280)

# Runs in the page, for this check only: the page itself has no script.
LOOK = """
<script>
window.addEventListener('load', () => {
  const faults = [];
  document.querySelectorAll('details').forEach(one => one.open = true);
  const wide = document.documentElement;
  if (wide.scrollWidth > window.innerWidth) faults.push('the page is ' + wide.scrollWidth + ' wide');
  document.querySelectorAll('main *, header, nav').forEach(one => {
    const box = one.getBoundingClientRect();
    if (one.closest('thead') && innerWidth <= 640) return;
    if (box.width > 1 && box.right > window.innerWidth + 1 && !(innerWidth < 1200 && one.closest('.wide')))
      faults.push(one.tagName + ' ends at ' + box.right + ': ' + one.textContent.slice(0, 40));
  });
  document.querySelectorAll('svg').forEach(svg => {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    boxes.forEach(([name, box], i) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
        faults.push(svg.getAttribute('aria-label') + ': "' + name + '" leaves the picture');
      for (const [other, its] of boxes.slice(i + 1)) {
        if (box.left < its.right - 1 && its.left < box.right - 1 && box.top + 3 < its.bottom - 3 && its.top + 3 < box.bottom - 3)
          faults.push(svg.getAttribute('aria-label') + ': "' + name + '" and "' + other + '" touch');
      }
    });
  });
  const style = getComputedStyle(document.body);
  const light = rgb => rgb.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  if (Math.abs(light(style.color) - light(style.backgroundColor)) < 300) faults.push('text like its ground');
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  if (dark !== light(style.backgroundColor) < 380) faults.push('not in the scheme that was asked for');
  parent.postMessage(JSON.stringify({width: innerWidth, dark: dark, faults: faults.slice(0, 8)}), '*');
});
</script></body>"""

# A window cannot be as narrow as a telephone, a frame in it can.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,"><pre id="faults"></pre>
<script>addEventListener('message', event => { document.getElementById('faults').textContent = event.data; });</script>
<iframe src="page.html" style="width:WIDTHpx;height:1000px;border:0"></iframe>"""


def look(browser, folder, width, dark):
    page = f"{folder}/frame{width}.html"
    with open(page, "w") as file:
        file.write(FRAME.replace("WIDTH", str(width)))
    command = [browser, "--headless=new", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", "--disable-extensions",
               f"--user-data-dir={folder}/profile", "--enable-logging=stderr", "--window-size=1400,1200",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=2000", "--dump-dom",
               "file://" + page]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    faults = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    found = re.search(r'<pre id="faults">(.+?)</pre>', done.stdout, re.S)
    if not found:
        return faults + ["the browser did not show it: " + done.stderr[-300:]]
    result = json.loads(html.unescape(found.group(1)))
    if result["width"] != width or result["dark"] != dark:
        faults.append(f"the browser showed it at {result['width']}, dark: {result['dark']}")
    return faults + result["faults"]


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("Chromium is not installed")
        return 77
    with open(sys.argv[1]) as file:
        text = file.read()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.html"), "w") as file:
            file.write(text.replace("</body>", LOOK))
        for width in WIDTHS:
            for dark in (False, True):
                for fault in look(browser, folder, width, dark):
                    print(f"{width} {'dark' if dark else 'light'}: {fault}")
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
