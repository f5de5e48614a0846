#!/usr/bin/env python3
"""check_page.py PAGE.html: the page is well-formed XML, needs nothing from elsewhere, runs no script, and in none of
its pictures two texts touch or leave the picture, by a guess of their width. Prints each fault; exits 1 if there is
one.
"""
import re
import sys
import xml.etree.ElementTree as ET

XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
FONT = 12  # units, as the style sheet says
WIDTH = 0.5  # of a character, of the font's size: below the mean, so that only real collisions count


def outside(page):
    for element in page.iter():
        if element.tag in (XHTML + "script", XHTML + "iframe", XHTML + "object", XHTML + "img"):
            yield f"an element {element.tag}"
        for name, value in element.attrib.items():
            plain = name.rsplit("}", 1)[-1]
            if plain in ("href", "src", "srcset", "data", "action") and not value.startswith(("#", "data:")):
                yield f"{plain}={value[:60]}"
            if plain.startswith("on") or plain == "style" and "url(" in value:
                yield f"{plain}={value[:60]}"
        if element.tag == XHTML + "style" and re.search(r"url\(|@import|https?:", element.text or ""):
            yield "a style sheet that loads something"


def box(text):
    content = "".join(text.itertext())
    width = len(content) * FONT * WIDTH
    x, y = float(text.get("x")), float(text.get("y"))
    classes = (text.get("class") or "").split()
    left = x - width if "e" in classes else x - width / 2 if "n" in classes else x
    return content, left, y - 0.7 * FONT, left + width, y


def collisions(svg):
    _, _, width, height = map(float, svg.get("viewBox").split())
    boxes = [box(text) for text in svg.iter(SVG + "text")]
    for name, left, top, right, bottom in boxes:
        if left < -2 or right > width + 2 or top < -2 or bottom > height + 2:
            yield f"'{name}' leaves the picture"
    for i, (a, al, at, ar, ab) in enumerate(boxes):
        for b, bl, bt, br, bb in boxes[i + 1 :]:
            if al < br and bl < ar and at < bb and bt < ab:
                yield f"'{a}' and '{b}' touch"


def targets(page):
    names = [element.get("id") for element in page.iter() if element.get("id")]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two elements are called {name}"
    for link in page.iter(XHTML + "a"):
        if link.get("href", "").startswith("#") and link.get("href")[1:] not in names:
            yield f"nothing is called {link.get('href')}"


def main():
    page = ET.parse(sys.argv[1]).getroot()
    faults = list(outside(page)) + list(targets(page))
    for svg in page.iter(SVG + "svg"):
        faults += [f"{svg.get('aria-label')}: {fault}" for fault in collisions(svg)]
        for path in svg.iter(SVG + "path"):
            if re.search(r"nan|inf", path.get("d"), re.I):
                faults.append(f"{svg.get('aria-label')}: a path through {path.get('d')[:60]}")
    for fault in faults[:20]:
        print(fault)
    print(f"{sum(1 for _ in page.iter(SVG + 'svg'))} pictures")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
