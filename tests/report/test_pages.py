"""The pages, opened in a browser: what they say first, what their tables do, and that foreign text is inert in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from geval_adapters import load_criteria, report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=4000"
)
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[31m\ud800"
TALK = "[1] user:\n    " + "[2] assistant: " * 60


def opened(page: Path, script: str = "", size: str = "1280,900") -> tuple[str, str]:
    """The page's content after its script and ours have run, and what the browser complained of."""
    if BROWSER is None:
        pytest.skip("needs Chromium (chromium, chromium-browser or google-chrome on the path)")
    shown = page.with_name(f"opened-{page.name}")
    text = page.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>")
    shown.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [BROWSER, *FLAGS.split(), f"--window-size={size}", f"--user-data-dir={page.parent / 'profile'}",
         "--dump-dom", shown.as_uri()],
        capture_output=True, text=True, timeout=90, check=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def rows(count: int) -> list[dict]:
    random = Random(1)
    made = []
    for place in range(count):
        score = random.choice([1.0, 2.0, 3.5, 4.0, 5.0])
        failed = place % 100 == 50
        usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1, "requests": 1, "cost": 0.0}
        made.append(
            {
                "id": f"item-{place}", "doc_id": f"d{place // 5}", "system_id": f"s{place % 5}",
                "criterion": "coherence", "score": None if failed else score, "coverage": 0.9, "std_error": None,
                "distribution": {} if failed else {f"{score:g}": 0.75, "3": 0.25}, "method": "logprobs", "n_valid": 1,
                "n_failed": 0, "rationale": None, "error": "the judge refused: no" if failed else None, "usage": usage,
                "signature": f"model:a{EVIL}", "human": None,
                "output": {1: EVIL, 2: TALK}.get(place, f"Text {place}. " * 40),
            }
        )  # fmt: skip
    return made


def score_page(folder: Path, count: int) -> Path:
    ratings = rows(count)
    summary = report.Summary("coherence")
    for row in ratings:
        summary.add(row | {"signature": "model:a"})
    texts = {row["id"]: f"Source of {row['id']}" for row in ratings}
    page = folder / "score.html"
    coherence = load_criteria()["coherence"]
    text = report.score_page(EVIL, [coherence], {"coherence": summary}, ratings, texts)
    page.write_text(text, encoding="utf-8", errors="replace")
    return page


def test_the_answer_comes_first_with_its_figure_and_interval(tmp_path: Path):
    text = score_page(tmp_path, 300).read_text(encoding="utf-8")
    answer = re.search(r'<p class="answer">(.*?)</p>', text)
    assert re.fullmatch(
        r"Mean coherence: \d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\] on 1-5, over 297 texts of 60 documents; 3 of 300 could"
        r" not be rated, and are not in it\.",
        answer[1],
    )
    assert text.index("<p class=") < text.index("<svg") < text.index("<table")
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^>]*>|url\(|@import""", text.split("<script type")[0]) == []


def test_ten_thousand_items_can_be_filtered_sorted_and_opened(tmp_path: Path):
    dom, complaints = opened(
        score_page(tmp_path, 10_000),
        """
        const began = performance.now(), out = {}, find = id => document.getElementById(id);
        const ids = () => [...document.querySelectorAll("tr.item td:first-child")].map(cell => cell.textContent);
        const count = () => find("count").textContent;
        out.first = ids().slice(0, 3); out.shown = ids().length;
        find("failures").click(); out.failures = ids().slice(0, 2);
        out.why = document.querySelector("tr.item td.why").textContent; find("failures").click();
        const heads = [...document.querySelectorAll("#items th button")];
        const score = heads.find(head => head.textContent.startsWith("score"));
        const scores = () => [...document.querySelectorAll("tr.item td.number")].map(cell => cell.textContent);
        score.click(); out.lowest = scores()[0]; score.click(); out.highest = scores()[0];
        out.sorted = score.parentNode.ariaSort;
        document.querySelector("tr.item").click();
        out.opened = document.querySelector("tr.detail").textContent.slice(0, 60);
        out.bars = document.querySelectorAll("tr.item")[0].querySelectorAll(".shape i").length;
        find("filter").value = "item-777 text"; find("filter").dispatchEvent(new Event("input"));
        setTimeout(() => {
          out.filtered = count(); out.took = performance.now() - began;
          const told = document.createElement("pre"); told.id = "told"; told.textContent = JSON.stringify(out);
          document.body.append(told);
        }, 300);
        """,
    )
    assert complaints == ""
    found = json.loads(re.search(r'<pre id="told">(.*?)</pre>', dom)[1].replace("&amp;", "&"))
    assert found["first"] == ["item-0", "item-1", "item-2"]
    assert found["shown"] <= 300, "rows are made as they come into view"
    assert found["failures"] == ["item-50", "item-150"]
    assert found["why"] == "the judge refused: no"
    assert (found["lowest"], found["highest"], found["sorted"]) == ("1", "5", "descending")
    assert found["opened"].startswith("whole text")
    assert found["bars"] == 5
    assert found["filtered"] == "11 of 10,000"
    assert found["took"] < 3000


def test_foreign_text_does_nothing_in_a_page(tmp_path: Path):
    script = """
        const lefts = text => { const all = document.createRange(); all.selectNodeContents(text);
                                return [...all.getClientRects()].map(each => each.left); };
        const item = [...document.querySelectorAll('tr.item')].find(each => each.textContent.includes('[1] user'));
        item.click();
        const whole = item.nextSibling.querySelector('dd');
        const texts = document.createTreeWalker(whole, NodeFilter.SHOW_TEXT);
        let last; while (texts.nextNode()) last = texts.currentNode;
        const within = Math.min(...lefts(last)) - whole.getBoundingClientRect().left;
        const nameless = document.querySelectorAll('tr.item td.number:not([data-head])').length;
        document.body.dataset.seen = `${lefts(last).length > 3} ${within > 8} ${nameless} ${document.title}`;
    """
    dom, complaints = opened(score_page(tmp_path, 60), script, "390,900")
    assert complaints == ""
    seen = re.search(r'data-seen="(\w+) (\w+) (\d+) (?!owned)', dom)
    assert seen and seen.groups() == ("true", "true", "0"), "wrapped lines stay indented, and each number has a name"
    assert "<title>owned" not in dom
    assert "<img" not in dom
    assert "&lt;/script&gt;" in dom


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int):
    dom, _ = opened(
        score_page(tmp_path, 60),
        "document.title = document.documentElement.scrollWidth - document.documentElement.clientWidth",
        f"{width},900",
    )
    assert "<title>0</title>" in dom
