"""`geval label` as a person uses it: the command, its page in a real browser, kills, tabs, a second annotator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser

from geval_adapters.labels import read_labels

SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


class Command:
    """`geval label` in a process of its own, on samples of its own."""

    def __init__(self, folder: Path, documents: int = 5, systems: int = 2) -> None:
        self.folder, self.output = folder, folder / "labels.jsonl"
        self.samples = [
            {
                "id": f"item-{document}-{system}",
                "doc_id": f"doc{document}",
                "system_id": f"secret-system-{system}",
                "source": f"Source {document}. It has two sentences! {SCRIPT}",
                "output": f"Output {document} of {'xy'[system]}. Nothing else. {SCRIPT}",
            }
            for document in range(documents)
            for system in range(systems)
        ]
        (folder / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in self.samples))
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *options: str, annotator: str = "ann") -> str:
        """The address of its page; empty where it ended at once."""
        command = "import sys; from geval_adapters.cli import main; sys.argv[0] = 'geval'; main()"
        given = [sys.executable, "-c", command, "label", "in.jsonl", "-o", self.output.name, "--no-browser"]
        if "-c" not in options:
            given += ["-c", "summeval/coherence"]
        process = subprocess.Popen(
            [*given, "--annotator", annotator, *options],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        assert process.stdout
        line = process.stdout.readline()
        return line.split(" at ")[1].split()[0] if " at " in line else ""

    def kill(self) -> None:
        self.running[-1].kill()
        self.running.pop().communicate()

    def end(self, send: int | None = None) -> tuple[int, str]:
        """Exit code and standard error of the command that was started last."""
        process = self.running.pop()
        if send is not None:
            process.send_signal(send)
        said = process.communicate(timeout=20)[1]
        assert "Traceback" not in said
        return process.returncode, said

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.output.read_text().splitlines()] if self.output.exists() else []


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path)
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


def done(window: Browser) -> int:
    return int(window.text("#far").split(" of ")[0])


def label(window: Browser, key: str) -> None:
    """Press a key and wait until the page has gone on."""
    before = done(window)
    window.press(key)
    window.until(lambda: done(window) == before + 1)


def shown(window: Browser) -> str:
    return window.text("#candidates .text").split(".")[0]


# --- in the browser --------------------------------------------------------------------------------------------------


def test_a_session_that_is_killed_twice_loses_and_doubles_nothing(command: Command, window: Browser) -> None:
    options = ("-c", "summeval/coherence", "-c", "summeval/fluency", "--repeats", "0.2", "--seed", "3")
    expected: list[tuple[str, str, float]] = []

    def work(keys: str) -> None:
        for key in keys:
            expected.append((shown(window), window.text("#question"), float(key)))
            label(window, key)

    window.open(command.start(*options))
    window.until(lambda: window.text("#far") == "0 of 24")  # ten items by two criteria, and two come back
    work("12345")
    command.kill()
    window.press("4")
    window.until(lambda: "Not saved" in window.text("#problem"))
    with command.output.open("ab") as file:
        file.write(b'{"id": "torn')  # as by a power cut in mid-write
    window.open(command.start(*options))
    window.until(lambda: done(window) == 5)
    work("5432")
    window.reload()
    window.until(lambda: done(window) == 9)
    work("11")
    command.kill()
    window.open(command.start(*options))
    window.until(lambda: done(window) == 11)
    work("3333333333333")
    assert "All done" in window.text("#end")
    window.click("#review")
    window.until(lambda: window.text("#options [aria-pressed=true]") == "3")
    window.press("right")
    window.until(lambda: "All done" in window.text("#end"))
    window.click("#finish")
    window.until(lambda: "close this page" in window.text("#end"))
    code, said = command.end()
    assert code == 0
    assert "ann: 20 labelled, " in said
    assert "of 4 that came back labelled the same again, 0 left" in said

    outputs = {each["id"]: each["output"].split(".")[0] for each in command.samples}
    kept = [(outputs[row["id"]], row["criterion"].split("/")[1].capitalize(), row["score"]) for row in command.rows()]
    assert kept == expected
    labels = read_labels(command.output)
    assert len(labels) == 24
    assert Counter(each.repeat for each in labels) == {0: 20, 1: 4}
    assert {each.probability for each in labels} == {1.0}
    # The same command finds nothing left to do.
    assert command.start(*options) == ""
    assert command.end() == (0, said.replace("ann:", "nothing is left to label for ann; --n asks for more\nann:", 1))


def test_back_skip_note_and_marks(command: Command, window: Browser) -> None:
    window.open(command.start("--repeats", "0"))
    window.until(lambda: done(window) == 0)
    first = shown(window)
    window.click("#candidates .text span", 1)
    window.press("n")
    window.press("see 4 c")
    window.press("escape")
    label(window, "2")
    assert shown(window) != first
    assert window.run("return document.querySelector('#note').value") == ""
    label(window, "c")
    window.press("left")
    window.until(lambda: window.run("return document.querySelector('.skip').ariaPressed") == "true")
    window.press("left")
    window.until(lambda: shown(window) == first)
    assert window.run("return document.querySelector('#note').value") == "see 4 c"
    assert (
        window.run("return document.querySelector('#candidates [aria-pressed=true]').textContent") == "Nothing else. "
    )
    assert window.text("#options [aria-pressed=true]") == "2"
    window.press("5")
    window.until(lambda: shown(window) != first)
    assert done(window) == 2
    label(window, "x")

    scored, unclear, bad = read_labels(command.output)
    assert (scored.score, scored.note) == (5.0, "see 4 c")
    (field, start, end) = scored.marked[0]
    sample = next(each for each in command.samples if each["id"] == scored.id)
    assert sample[field][start:end] == "Nothing else. "
    assert [unclear.skipped, bad.skipped] == ["cannot tell", "bad item"]
    assert scored.seconds is not None and 0 < scored.seconds < 60
    assert scored.probability == pytest.approx(0.3)  # three of ten
    code, said = command.end(signal.SIGINT)
    assert code == 130
    assert "ann: 1 labelled, 2 skipped (1 cannot tell, 1 bad item), 7 left" in said


def test_two_tabs_and_a_second_annotator_double_nothing(command: Command, window: Browser) -> None:
    address = command.start("--repeats", "0")
    window.open(address)
    window.until(lambda: done(window) == 0)
    item = shown(window)
    first, second = window.tabs()[0], window.new_tab()
    window.switch(second)
    window.open(address)
    window.until(lambda: shown(window) == item)
    label(window, "4")
    window.switch(first)
    assert shown(window) == item
    window.press("1")
    window.until(lambda: "answered in another tab" in window.text("#problem"))
    assert done(window) == 1 and shown(window) != item
    assert [row["score"] for row in command.rows()] == [4.0]
    # Another person, at the same time, by a command of their own, into the same file: the same items, afresh.
    window.switch(second)
    window.open(command.start("--repeats", "0", annotator="ben"))
    window.until(lambda: shown(window) == item and done(window) == 0)
    label(window, "2")
    window.switch(first)
    label(window, "3")
    window.switch(second)
    label(window, "2")
    assert [(row["annotator"], row["score"]) for row in command.rows()] == [
        ("ann", 4),
        ("ben", 2),
        ("ann", 3),
        ("ben", 2),
    ]
    window._call("DELETE", "/window")
    window.switch(first)


def test_texts_of_items_do_nothing(command: Command, window: Browser) -> None:
    window.open(command.start())
    window.until(lambda: done(window) == 0)
    assert "<script>" in window.text("#candidates") and "<img" in window.text("#around")
    assert window.run("return document.title") == "geval label"
    assert window.run("return document.querySelectorAll('main script, main img').length") == 0
    # Even what got into the page could load and send nothing.
    window.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", SCRIPT)
    window.run(
        "window.blocked = ''; fetch('http://127.0.0.1:9/').catch((error) => { window.blocked = String(error); })"
    )
    window.until(lambda: "Failed to fetch" in window.run("return window.blocked"))
    assert window.run("return document.title") == "geval label"


def test_nothing_tells_which_system_or_what_the_judge_said(command: Command, window: Browser) -> None:
    ratings = command.folder / "ratings.jsonl"
    rows = [
        {"id": each["id"], "criterion": "summeval/coherence", "score": 2.718, "distribution": {"2": 0.3, "3": 0.7}}
        for each in command.samples
    ]
    ratings.write_text("".join(json.dumps(row) + "\n" for row in rows))
    address = command.start("--ratings", "ratings.jsonl", "--design", "active")
    window.open(address)
    window.until(lambda: done(window) == 0)
    told = urllib.request.urlopen(address + "task").read().decode() + window.run("return document.body.innerHTML")
    for secret in ("secret-system", "item-", "doc0", "doc1", "doc2", "2.718", "probability"):
        assert secret not in told


def test_pairs(command: Command, window: Browser) -> None:
    window.open(command.start("--pairs", "--repeats", "0"))
    window.until(lambda: window.text("#far") == "0 of 5")
    assert window.text("#question") == "Which is better in coherence?"
    better = []
    for key in "abtab":
        sides = window.run("return [...document.querySelectorAll('#candidates .text')].map((each) => each.textContent)")
        better.append({"a": sides[0], "b": sides[1], "t": ""}[key])
        label(window, key)
    outputs = {each["id"]: each["output"] for each in command.samples}
    labels = read_labels(command.output)
    for each, text in zip(labels, better, strict=True):
        expected = 0.5 if not text else float(outputs[each.id] == text)
        assert each.score == expected
        assert {each.system_id, each.other_system} == {"secret-system-0", "secret-system-1"}
    assert {each.swapped for each in labels} == {True, False}


def test_a_scale_without_room_for_keys_is_typed(command: Command, window: Browser) -> None:
    (command.folder / "fine.yaml").write_text("name: fine\ndefinition: How fine is it?\nscale: 1-100\n")
    window.open(command.start("-c", "fine.yaml"))
    window.until(lambda: done(window) == 0)
    window.press("8")
    window.press("73")
    window.press("enter")
    window.until(lambda: "must be one of" in window.text("#problem"))
    window.run("document.querySelector('#typed').value = ''")
    window.press("87")
    window.press("enter")
    window.until(lambda: done(window) == 1)
    assert [row["score"] for row in command.rows()] == [87.0]


def test_it_fits_the_screen(command: Command, window: Browser) -> None:
    address = command.start()
    for width, dark in ((1280, False), (1280, True), (360, False), (360, True)):
        window.look(width, 740, dark)
        window.open(address)
        window.until(lambda: done(window) == 0)
        assert window.run("return document.documentElement.scrollWidth <= innerWidth")
        assert window.run("return document.querySelector('footer').getBoundingClientRect().bottom <= innerHeight")
        ground, ink = window.run(
            "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
            ".map((each) => each.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0))"
        )
        assert (ground < ink) == dark
    window.look(1280, 800, False)


# --- the command and its server --------------------------------------------------------------------------------------


def ask(address: str, path: str = "", body: object = None, **headers: str) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, data, sent), timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_only_the_page_itself_is_answered(command: Command) -> None:
    address = command.start()
    own = address.rstrip("/").rsplit("/", 1)[0]
    answer = {"at": 0, "seen": 0, "score": 3}
    json_type = {"Content_Type": "application/json"}
    assert ask(address)[0] == 200
    assert ask(own + "/", "guess/task")[0] == 404
    assert ask(own + "/")[0] == 404
    assert ask(address, "task", Host="evil.example")[0] == 403
    assert ask(address, "task", Origin="http://evil.example")[0] == 403
    assert ask(address, "task", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(address, "label", answer, **json_type)[0] == 403  # no origin
    assert ask(address, "label", answer, Origin="http://evil.example", **json_type)[0] == 403
    assert ask(address, "label", answer, Origin=own, Content_Type="text/plain")[0] == 403
    assert command.rows() == []
    for wrong in ({"at": 0}, answer | {"score": 7}, answer | {"at": 99}, answer | {"marked": [["output", 77]]}, [], {}):
        assert ask(address, "label", wrong, Origin=own, **json_type)[0] == 400
    assert ask(address, "label", answer, Origin=own, **json_type)[0] == 200
    assert ask(address, "label", answer, Origin=own, **json_type)[0] == 409
    assert len(command.rows()) == 1
    assert oct(os.stat(command.output).st_mode)[-3:] in ("644", "600", "664")


def test_what_cannot_go_on_is_refused(command: Command, geval: Callable[..., tuple[int, str, str]]) -> None:
    address = command.start()
    own = address.rstrip("/").rsplit("/", 1)[0]
    headers = {"Origin": own, "Content_Type": "application/json"}
    for at in range(5):
        assert ask(address, "label", {"at": at, "seen": 0, "score": 3}, **headers)[0] == 200
    command.kill()
    before = command.output.read_bytes()
    (command.folder / "other.yaml").write_text("name: summeval/coherence\ndefinition: Is it?\nscale: 1-5\n")
    for options, words in (
        (("--seed", "1"), "was begun with --design random --seed 0"),
        (("--n", "many"), "--n many: write a number of items, or auto"),
        (("--design", "active"), "--design active chooses by a judge's ratings: name them with --ratings FILE"),
        (("--limit", "3"), "was drawn from other items or by other ratings"),
        (("-c", "other.yaml"), "holds labels by another wording or scale of summeval/coherence"),
    ):
        wanted = () if "-c" in options else ("-c", "summeval/coherence")
        code, _, said = geval(
            "label", "in.jsonl", "-o", "labels.jsonl", "--no-browser", "--annotator", "ann", *wanted, *options
        )
        assert code == 2
        assert words in " ".join(said.split())
        assert command.output.read_bytes() == before


def test_another_file_is_not_written_to(command: Command) -> None:
    command.output.write_text('{"id": "mine"}\n')
    assert command.start() == ""
    code, said = command.end()
    assert (code, "line 1 is no label of `geval label`" in said) == (2, True)
    assert command.output.read_text() == '{"id": "mine"}\n'
