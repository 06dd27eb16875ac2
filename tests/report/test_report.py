"""The report page: what it says, that it is whole, safe and readable, and that a browser opens
it."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.cli import QUICK, SALES, run, world
from cases.report import SECTIONS
from unbag.cli._page import prior_over_time
from unbag.diagnosis import Diagnosis, Feature
from unbag.learners import Effect, Verdict
from unbag.metrics import Band, Estimate, Evaluation
from unbag.planning import Noise, interval_width
from unbag.plots import (
    Interval,
    Level,
    Series,
    draw_calibration,
    draw_curves,
    draw_intervals,
    draw_predictions,
)
from unbag.report import (
    Facts,
    LearningCurve,
    Page,
    Section,
    Story,
    Text,
    facts_of,
    page_of,
    render,
    stream_page,
    write_page,
)
from unbag.report._advice import next_steps
from unbag.report._page import Picture
from unbag.report._sections import best_curves
from unbag.report._svg import lean, picture_of
from unbag.selection import Choice, Compared
from unbag.tables import TablesReport


@pytest.fixture
def no_pictures(monkeypatch):
    """Of a page the words only: most of its time goes into pictures."""
    draw = lambda draw, words, caption="", **how: Picture("<svg></svg>", caption or words)
    monkeypatch.setattr("unbag.report._sections.picture_of", draw)


EVIL = "<script>alert(1)</script>\"'&"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps what was seen."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.ids, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def estimate(value, half, worth=None):
    return Estimate(value, half / 2, value - half, value + half, worth)


def evaluation(loss=0.4, half=0.05, gap=0.0):
    bands = [
        Band(i / 5, (i + 1) / 5, 0.2, 0.1 + i / 5, estimate(0.1 + i / 5, 0.1)) for i in range(5)
    ]
    found = {
        "log_loss": estimate(loss, half, 200.0),
        "auc": estimate(0.8, 0.05, 100.0),
        "mean_report": estimate(0.25, 0.01, 900.0),
        "prediction_minus_report": estimate(gap, 0.01),
    }
    return Evaluation(found, bands, [], "bags", 100, 1000, 0.95, ("a note",))


def choice(other=0.1):
    table = [
        Compared("first, seed 0", estimate(0.4, 0.05), estimate(0.0, 0.0), 0.41),
        Compared("second, seed 0", estimate(0.5, 0.05), estimate(other, 0.05), 0.45),
    ]
    history = {"held_out": np.array([0.5, 0.4])}
    return Choice("first, seed 0", SimpleNamespace(history=history, epoch=2), "Because.", table, 30)


RANDOM = Diagnosis("The bags look random.", True, "None.")
BIASED = Diagnosis(
    "The bags are not random: most of all " + EVIL,
    False,
    "Python words",
    (Feature(EVIL, 9, 0, 0.5),),
)
UNSEEN = Diagnosis("Whether the bags are random cannot be seen.", False, "Python words")
EFFECTS = [
    Effect(EVIL, 0.5, ("a", EVIL), np.array([-0.5, 0.5]), np.array([0.1, 0.1])),
    Effect(
        "day trend",
        0.1,
        (20454.0, 20484.0, None),
        np.array([-0.1, 0.2, 0.0]),
        np.full(3, 0.1),
        True,
    ),
    Effect("nothing", 0.0, ("a", "b"), np.zeros(2), np.ones(2)),
]
FACTS = Facts(100, 1000, 10, 10.0, 10, 0.25, 4.0, pending=2)


def story(**changes):
    time = np.datetime64("2026-01-01") + np.arange(200)
    bags = unbag.random_bags(None, np.random.default_rng(0).random(2000) < 0.2, size=10, seed=0)
    everything = {
        "tables": TablesReport(
            1000, 100, 100, 100, 1000, (f"1 bag was left out: {EVIL}",), (f"refused {EVIL}",)
        ),
        "facts": FACTS,
        "diagnosis": RANDOM,
        "drift": unbag.drift(bags, time, windows=6),
        "choice": choice(),
        "curves": [
            LearningCurve(EVIL, [0.5, 0.45, np.nan, 0.44], 2, "a"),
            LearningCurve("b", [0.6, 0.5], 2, "b"),
        ],
        "evaluation": evaluation(),
        "predictions": np.linspace(0.05, 0.9, 50),
        "trained": True,
        "learned": 80,
        "labels": evaluation(loss=0.5, gap=0.001),
        "effects": EFFECTS,
    }
    return Story(**({"title": EVIL, "line": EVIL} | everything | changes))


def test_a_page_with_everything_has_every_section_in_order():
    assert [section.name for section in page_of(story()).sections] == SECTIONS[:-1]


def test_sections_without_data_are_left_out():
    assert [section.name for section in page_of(Story("empty")).sections] == ["summary"]


def test_what_came_from_the_user_is_escaped_everywhere():
    text = render(page_of(story(diagnosis=BIASED)))
    assert "<script" not in text
    assert (
        text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6
    )  # title, line, tables, verdict, legend, words


def test_the_page_is_well_formed_accessible_and_asks_for_nothing():
    text = render(page_of(story()))
    page = Reader(text)
    headings = [tag for tag, _ in page.seen if re.fullmatch(r"h\d", tag)]
    assert headings == ["h1"] + ["h2"] * len(SECTIONS)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link in {f"#{name}" for name in page.ids} | {"data:,"} for link in page.links)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    pictures = re.findall(r'<svg xmlns[^>]*role="img" aria-label="([^"]+)"><title>', text)
    assert len(pictures) == text.count("<figure>") == 7
    assert all(cell.get("scope") in ("col", "row") for tag, cell in page.seen if tag == "th")
    assert {dict(attrs).get("lang") for tag, attrs in page.seen if tag == "html"} == {"en"}
    for needed in ("prefers-color-scheme: dark", "@media print", "width=device-width"):
        assert needed in text
    assert len(text) < 80_000


GAP = np.array([0.1, np.nan, 0.3])
CURVES = [
    Series(f"{EVIL} 日本 $x$", [1, 2, 3], GAP, GAP - 0.1, GAP + 0.1),
    Series("_b", [1, 2], [1, 2]),
]
BANDS = Series("", [0.1, 0.5], [0.2, 0.4], [-0.3, 0.1], [0.5, 0.9])
ROWS = [Interval(EVIL * 20, 0.5, 0.4, 0.6, True), Interval("b", 0.5, 0.5, 0.5)]
PICTURES = {
    "gap": lambda axes: draw_curves(axes, CURVES, x="x", y=EVIL, levels=[Level("level", 0.2)]),
    "point": lambda axes: draw_curves(axes, [Series("a", [5], [0.3])], x="x", y="y"),
    "calibration": lambda axes: draw_calibration(axes, BANDS),
    "predictions": lambda axes: draw_predictions(axes, np.array([0.1, 0.5, 0.7])),
    "intervals": lambda axes: draw_intervals(axes, ROWS, x="x"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_xml_with_their_words_and_colours_of_the_page_only(name):
    svg = picture_of(PICTURES[name], EVIL, name="one").svg
    tree = ElementTree.fromstring(svg)
    assert tree.get("aria-label") == tree[0].text == EVIL
    styles = "; ".join(part.get("style", "") for part in tree.iter())
    assert "nan" not in styles
    assert "#" not in styles  # colours are variables of the page, which knows light and dark
    assert set(re.findall(r"(?:fill|stroke): ([^;]+)", styles)) <= {
        "none",
        *(f"var(--{c})" for c in ("ink", "soft", "rule", "c0", "c1")),
    }
    assert svg == picture_of(PICTURES[name], EVIL, name="one").svg


def test_names_of_curves_stay_as_the_user_wrote_them():
    texts = [
        part.text
        for part in ElementTree.fromstring(picture_of(PICTURES["gap"], "w", name="a").svg).iter()
    ]
    for text in (f"{EVIL} 日本 $x$", "_b", "level", EVIL):
        assert text in texts


def test_a_curve_with_a_colour_of_its_own_keeps_it():
    def draw(axes):
        axes.plot([1, 2, 3], [1, 2, 1], "o-", color="#009e73")

    svg = picture_of(draw, "w", name="one").svg
    assert "stroke: #009e73" in svg
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', svg))
    assert used == set(re.findall(r' id="([^"]+)"', svg))


def test_two_pictures_on_a_page_share_no_id():
    ids = [
        set(re.findall(r' id="([^"]+)"', picture_of(PICTURES["gap"], "w", name=name).svg))
        for name in ("one", "two")
    ]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_of_several_methods_the_best_curve_of_each_is_shown():
    curves = [
        LearningCurve("a1", [3, 2], 2, "a"),
        LearningCurve("a2", [3, 1], 2, "a"),
        LearningCurve("b", [9, 8], 2, "b"),
    ]
    assert [c.name for c in best_curves(curves)] == ["a2", "b"]
    assert [c.name for c in best_curves(curves[:2])] == ["a1", "a2"]


def said(**changes):
    section = next_steps(story(**changes))
    return " ".join(" ".join(pair) for pair in section.parts[0].items)


VERDICT = Verdict(
    "unsure", ("It cannot be told yet.", "Evidence: little.", "Next: ask for more bags."), "more"
)


@pytest.mark.usefixtures("no_pictures")
def test_the_summary_is_what_the_verdict_says_and_whether_to_trust_it():
    summary = lambda **changes: [part.text for part in page_of(story(**changes)).sections[0].parts]
    sure = summary(verdict=VERDICT)
    assert sure[0] == "It cannot be told yet."
    assert "Evidence: little." in sure
    assert not any("Next" in sentence for sentence in sure)
    biased = " ".join(summary(diagnosis=BIASED))
    assert "Do not trust these numbers yet" in biased
    assert "the bags are not random, and the intervals" in biased
    assert "whether the bags are random cannot be seen, and the intervals" in " ".join(
        summary(diagnosis=UNSEEN)
    )


def test_advice_is_concrete():
    advised = replace(BIASED, advice="Name it with {stratum}, or use {method:matching}.")
    assert "Name it with --stratum, or use --method matching." in said(diagnosis=advised)
    assert "unbag predict" not in said(diagnosis=BIASED)
    assert "unbag predict" in said()
    assert "Ask for more bags." in said(verdict=VERDICT)
    assert "Ask for more bags." not in said(verdict=replace(VERDICT, step="predict"))
    assert "too high on average, by 0.050" in said(evaluation=evaluation(gap=0.05))
    assert "too low" in said(evaluation=evaluation(gap=-0.05))
    assert "Recalibrate" not in said()
    assert "1 of the 1 other model cannot be told" in said(choice=choice(other=0.01))
    assert "cannot be told" not in said()
    assert "--epochs 4" in said()
    assert "2 bags wait" in said()
    assert "unbag plan --rate 0.25 --noise 40000 --score-sd 1.3 --events 1000" in said(
        facts=FACTS._replace(noise=40000.0)
    )
    assert "unbag plan" not in said(facts=FACTS._replace(noise=0.0))


def test_the_size_that_is_advised_is_the_one_of_the_theory():
    from unbag.planning import Noise, best_bag_size

    h = np.linspace(0.05, 0.9, 50)
    score = np.log(h / (1 - h))
    best = best_bag_size(Noise(0.25 * 0.75, 40000.0, -score.mean(), score.var()))
    assert f"of about {best:,.0f} events" in said(facts=FACTS._replace(noise=40000.0))


@pytest.mark.usefixtures("no_pictures")
def test_revealed_labels_are_compared_with_the_intervals_whichever_way_it_comes_out():
    page = page_of(story())
    section = next(section for section in page.sections if section.name == "revealed")
    rows = {row[0]: row[-1] for row in section.parts[1].rows}
    assert rows == {
        "Log loss": "no",
        "AUC": "yes",
        "Mean report": "yes",
        "Prediction minus report": "yes",
    }
    assert section.parts[2].text.startswith("3 of 4 intervals hold")


def test_facts_are_those_of_the_bags():
    bags = unbag.Bags(
        np.array([0, 0, 1, 2, 2, 2]),
        np.array([0.5, 1.0, np.nan]),
        noise=[1, 3, 5],
        status=["observed", "observed", "pending"],
    )
    assert facts_of(bags) == Facts(2, 3, 1, 2.0, 3, pytest.approx(2 / 3), 2.0, 1, 1, 3)


def test_events_that_only_serve_the_means_are_told_apart():
    section = next(
        s
        for s in page_of(Story("Title", facts=FACTS._replace(waiting=20))).sections
        if s.name == "input"
    )
    rows = dict(section.parts[0].rows)
    assert rows["Events in these"] == "1,000"
    assert rows["Bags waiting for their report"] == "2, with 20 events that only serve the means"


def test_suppressed_bags_are_not_waiting():
    status = ["observed", "observed", "pending", "suppressed_by_size", "suppressed_by_size"]
    bags = unbag.Bags(np.array([0, 1, 2, 2, 3, 4]), [0.5, 1.0, *[np.nan] * 3], status=status)
    facts = facts_of(bags)
    assert (facts.pending, facts.waiting, facts.hidden) == (1, 2, 2)
    page = page_of(Story("Title", facts=facts))
    rows = dict(next(s for s in page.sections if s.name == "input").parts[0].rows)
    assert rows["Bags whose report was suppressed"] == "2"
    assert "1 bag waits for its report" in said(facts=facts)


def test_effects_tell_where_they_are_lowest_and_highest_and_days_are_dates():
    section = next(s for s in page_of(story()).sections if s.name == "effects")
    grid = section.parts[1]
    assert [row[0] for row in grid.rows] == [EVIL, "day trend"]
    assert grid.rows[1][2:] == ["2026-01-01 (-0.10)", "2026-01-31 (+0.20)"]


@pytest.mark.usefixtures("no_pictures")
def test_the_outlook_is_that_of_planning():
    told = story()
    h = told.predictions
    score = np.log(h / (1 - h))
    noise = Noise(0.25 * 0.75, 4.0, -score.mean(), score.var())
    now, quiet = (interval_width(1000, 10, n) for n in (noise, noise._replace(report=0.0)))
    rows = next(s for s in page_of(told).sections if s.name == "outlook").parts[1].rows
    reach = {row[0]: float(row[1].removeprefix("± ")) for row in rows}
    assert reach["as it is"] == 0.05
    assert reach["4 times as many bags"] == pytest.approx(0.025)
    assert reach["no noise"] == pytest.approx(0.05 * quiet / now, rel=0.01)
    exact = story(facts=FACTS._replace(noise=0.0))
    rows = next(s for s in page_of(exact).sections if s.name == "outlook").parts[1].rows
    assert [row[0] for row in rows] == [
        "as it is", "4 times as many bags", "as many events in bags of 5"
    ]  # fmt: skip


def test_an_evaluation_on_a_page_counts_the_events_with_a_report():
    bags = unbag.Bags(
        np.array([0, 0, 1, 2, 2, 2]), [0.5, 1.0, np.nan], status=["observed", "observed", "pending"]
    )
    found = unbag.evaluate(np.array([-1.0, 1, 2, 3, 4, 5]), bags)
    assert (found.bags, found.instances) == (2, 3)


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    page, path = Page("Title", "", [Section("a", "A", [Text("text")])]), tmp_path / "p.html"
    write_page(page, path)
    before = path.read_text()
    with pytest.raises(ValueError, match="must not exist yet"):
        write_page(page, path)

    def full(self, *_, **__):
        self.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        write_page(page, path, force=True)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"]


def test_the_page_of_a_stream_tells_loss_prior_and_what_was_set_aside():
    rows = [
        {
            "chunk": i,
            "log_loss": i / 10,
            "window_log_loss": 0.5 - i / 100,
            "window_log_loss_error": 0.03,
            "window_auc": None,
            "prior": 0.2,
            "drift": i == 3,
            "label_log_loss": 0.5,
        }
        for i in range(1, 6)
    ]
    page = stream_page(rows, "line", learned=5120, waiting=7, aside={EVIL: 2})
    assert [s.name for s in page.sections] == ["summary", "input", "log-loss", "prior", "next"]
    averages = page.sections[1].parts[1]
    assert averages.caption == "Averages over chunks"
    assert averages.rows[0] == ["Log loss", "0.3000", "0.5000", ""]
    text = render(page)
    Reader(text)
    for words in (
        "5,120 events were learned from, in 5 chunks.",
        "0.45 (0.39 to 0.51;",
        "moved in 1 of 5 chunks",
        "7 events wait",
        "2 things were set aside",
    ):
        assert words in text
    empty = stream_page([], "line", learned=0, waiting=0, aside={})
    assert [s.name for s in empty.sections] == ["summary", "input", "next"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What the command line writes of tables with a hostile column and a time."""
    folder = tmp_path_factory.mktemp("pages")
    events, reports, _ = world(folder, count=2400, size=6)
    frame = pd.read_parquet(events).rename(columns={"x": EVIL})
    frame.assign(day=pd.Timestamp("2026-01-01") + pd.to_timedelta(frame.bag, unit="D")).to_parquet(
        events
    )
    words = [events, reports, *SALES, "--id", "event", "--time", "day"]
    for name, more in (("a", []), ("b", ["--method", "matching"])):
        out = ["--out", folder / f"{name}.unbag", "--page", folder / f"{name}.html"]
        told = run("train", *words, *QUICK, *more, *out)
        assert told.stderr.endswith(f"report page: {folder / name}.html\n")
    run("evaluate", folder / "a.unbag", *words, "--page", folder / "evaluate.html")
    both = [folder / "a.unbag", folder / "b.unbag", "--events", events, "--reports", reports]
    run("select", *both, *words[2:], "--page", folder / "select.html")
    return folder


@pytest.mark.parametrize(
    "name, left_out",
    [
        ("a", {"revealed", "effects"}),  # of one network
        ("evaluate", {"revealed", "effects", "compared", "curves"}),
        ("select", {"revealed", "effects", "outlook", "good", "curves", "calibration", "scores"}),
    ],
)
def test_verbs_write_a_page_of_what_they_found(pages, name, left_out):
    text = (pages / f"{name}.html").read_text()
    page = Reader(text)
    assert [i for i in page.ids if i in SECTIONS] == [s for s in SECTIONS if s not in left_out]
    assert "<script" not in text
    if name != "a":  # there the day, which no bag mixes, stands in place of the hostile column
        assert "&lt;script&gt;" in text


def test_a_page_that_exists_is_refused_before_the_work(pages):
    words = [
        pages / "events.parquet",
        pages / "reports.parquet",
        *SALES,
        "--out",
        pages / "new.unbag",
    ]
    wrong = run("train", *words, "--page", pages / "a.html", code=1)
    assert "An output must not exist yet" in wrong.stderr
    assert wrong.stdout == ""
    assert not (pages / "new.unbag").exists()


def test_there_is_no_prior_over_time_without_windows(pages):
    bags = unbag.join(
        pages / "events.parquet", pages / "reports.parquet", on="bag", total="sales", id="event"
    )
    assert prior_over_time(pages / "events.parquet", None, bags) is None
    assert prior_over_time(pages / "events.parquet", "day", bags.take(np.arange(4))) is None
    assert len(prior_over_time(pages / "events.parquet", "day", bags).start) == 12
    same = pd.read_parquet(pages / "events.parquet").assign(day=1)
    assert prior_over_time(same, "day", bags) is None
    mixed = np.random.default_rng(0).permutation(pd.read_parquet(pages / "events.parquet")["day"])
    assert prior_over_time(same.assign(day=mixed), "day", bags) is None


CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=2000",
]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")
@pytest.mark.parametrize(
    "scheme, ink", [("1", "rgb(29, 35, 41)"), ("0", "rgb(230, 233, 236)")], ids=["light", "dark"]
)
def test_a_browser_shows_every_section_and_asks_for_nothing(tmp_path, scheme, ink):
    """The test's own copy lets a script in, which writes down what the browser made of the page."""
    path = write_page(page_of(story(title="A report", line="")), tmp_path / "page.html")
    look = """<script>addEventListener("load", () => { const seen = {
        ink: getComputedStyle(document.body).color,
        loaded: performance.getEntriesByType("resource").length,
        broken: [...document.querySelectorAll("svg[role=img]")]
          .filter(e => e.getBBox().width < 100).length,
        sections: [...document.querySelectorAll("section")].map(e => e.id).join(" "),
        wide: document.documentElement.scrollWidth > innerWidth };
      document.body.setAttribute("data-seen", JSON.stringify(seen)); });</script>"""
    text = path.read_text().replace(
        "default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';"
    )
    path.write_text(text.replace("</body>", f"{look}</body>"))
    found = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'new'}",
            f"--blink-settings=preferredColorScheme={scheme}",
            "--window-size=500,900",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    seen = re.search(r'data-seen="([^"]*)"', found).group(1).replace("&quot;", '"')
    expected = (
        f'{{"ink":"{ink}","loaded":0,"broken":0,"sections":"{" ".join(SECTIONS)}","wide":false}}'
    )
    assert seen == expected


@pytest.mark.parametrize("kind", ["total", "classes", "biased"])
def test_counts_classes_and_biased_bags_have_pages_too(tmp_path, kind):
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=1200)) if kind == "biased" else rng.normal(size=1200)
    labels = {
        "total": {"sales": rng.poisson(np.exp(x))},
        "biased": {"sales": rng.random(1200) < 1 / (1 + np.exp(-x))},
        "classes": {n: np.digitize(x, [-1, 1]) == i for i, n in enumerate("abc")},
    }[kind]
    bag = np.arange(1200) // 4
    if kind != "biased":  # a bag that never mixes days would not be random
        bag = rng.permutation(bag)
    events = pd.DataFrame({"bag": bag, "x": x, "day": np.arange(1200) // 4})
    events.to_parquet(tmp_path / "e.parquet")
    events[["bag"]].assign(**labels).groupby("bag", as_index=False).sum().to_parquet(
        tmp_path / "r.parquet"
    )
    columns = [
        word for name in labels for word in ("--total" if name == "sales" else "--counts", name)
    ]
    columns += ["--kind", "total"] if kind == "total" else []
    words = [
        tmp_path / "e.parquet",
        tmp_path / "r.parquet",
        "--on",
        "bag",
        "--time",
        "day",
        *columns,
    ]
    run("train", *words, *QUICK, "--out", tmp_path / "m.unbag", "--page", tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    absent = {
        "total": {"outlook", "prior"},  # days are mixed
        "biased": {"outlook", "calibration"},  # only the likelihood of reports judges
        "classes": {"outlook", "calibration", "scores", "prior"},
    }[kind]
    page = Reader(text)
    assert [i for i in page.ids if i in SECTIONS] == [
        s for s in SECTIONS if s not in absent | {"revealed", "effects"}
    ]
    assert "Do not trust these numbers yet" not in text
    assert ("which needs no random bags" in text) == (kind == "biased")
    assert ("unbag design EVENTS" in text) == (kind == "biased")
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL).lower().replace(
        "nance", ""
    )


def test_a_lean_picture_keeps_the_style_of_each_line_of_a_text():
    line = '<text style="font-size: 6px" x="{}">a line</text>'
    svg = f"<svg><g><g>{line.format(1)}{line.format(2)}</g></g><g>{line.format(3)}</g></svg>"
    root = lean(svg)
    parents = {child: part for part in root.iter() for child in part}
    for text in root.iter("text"):
        assert "font-size: 6px" in (text.get("style") or parents[text].get("style"))
