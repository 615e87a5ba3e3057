"""The web page of a map, opened from its file in a browser, with real clicks."""

import base64
import gzip
import itertools
import json
import re
import shutil
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.session.web_page import write_web_page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCRIPT = "<script>window.broken = 1</script>"
WIDTH, HEIGHT = 900, 600


@pytest.fixture
def cells():
    """Return a map of 60 cells in two groups, one left and one right."""
    rng = np.random.default_rng(0)
    is_right = np.arange(60) >= 40
    X = rng.poisson(1.0, (60, 3)).astype(np.float32)
    X[:, 1] += 8 * is_right
    groups = pd.Categorical(np.where(is_right, "right", SCRIPT))
    obs = pd.DataFrame({"group": groups, "depth": 10_000.0 + 37 * np.arange(60)})
    obs.index = [f"cell-{i}" for i in range(60)]
    obs.loc["cell-3", "depth"] = np.nan
    obs["text"] = [f"{SCRIPT} no. {i}" for i in range(60)]
    adata = AnnData(X, obs, pd.DataFrame(index=["ACTB", "CD8A", "MS4A1"]))
    adata.obsm["X_umap"] = rng.normal(scale=0.3, size=(60, 2))
    adata.obsm["X_umap"][is_right, 0] += 10
    adata.uns["group_colors"] = np.array(["#ff0000", "green"])
    return adata


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium: `make test` installs it where it may")
    from playwright.sync_api import sync_playwright

    drawn_by = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *drawn_by]
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser, cells, tmp_path):
    """Return the page, opened in the browser of a desk."""
    with _open_page(browser, cells, tmp_path, width=WIDTH, height=HEIGHT) as page:
        yield page


@pytest.fixture
def on_phone(browser, cells, tmp_path):
    """Return the page, opened on a phone."""
    with _open_page(browser, cells, tmp_path, width=400, height=800) as page:
        yield page


@contextmanager
def _open_page(browser, cells, tmp_path, **viewport):
    """Open the page; it may ask for nothing but its file, nor complain."""
    target = tmp_path / "map.html"
    frames = [share * cells.obsm["X_umap"] for share in (0.2, 0.6)]
    write_web_page(cells, target, basis="X_umap", frames=frames, title=SCRIPT)
    assert "Permission is hereby granted" in target.read_text(encoding="utf-8")
    page = browser.new_page(viewport=viewport, has_touch=viewport["width"] < WIDTH)
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.goto(target.as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    yield page
    assert [url for url in asked if not url.startswith("blob:")] == [target.as_uri()]
    assert wrong == []
    assert not page.evaluate("'broken' in window")
    page.close()


def _payload(path):
    text = path.read_text(encoding="utf-8")
    packed = re.search(r'id="payload"[^>]*>([^<]*)<', text)[1]
    return gzip.decompress(base64.b64decode(packed))


def _content(path):
    """Return what a page knows, but for its arrays."""
    payload = _payload(path)
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length])


def _columns(path):
    """Return what a page knows of its columns, by their names."""
    return {one["name"]: one for one in _content(path)["columns"]}


def _names(path):
    return list(_columns(path))


def _lasso(page, left, right):
    """Draw a loop around a part of the map, from share to share of its width."""
    box = page.locator("#map").bounding_box()
    x0, x1 = (box["x"] + share * box["width"] for share in (left, right))
    y0, y1 = (box["y"] + share * box["height"] for share in (0.1, 0.9))
    page.locator("#lasso").click()
    page.mouse.move(x0, y0)
    page.mouse.down()
    for x, y in ((x1, y0), (x1, y1), (x0, y1), (x0, y0 + 5)):
        page.mouse.move(x, y, steps=6)
    page.mouse.up()
    page.locator("#lasso").click()


def _says(page, text):
    page.get_by_text(text, exact=True).first.wait_for()


def test_a_page_tells_what_is_in_a_map(opened):
    page = opened
    assert page.title() == page.locator("#title").inner_text() == SCRIPT
    assert page.locator("#column option").all_inner_texts()[:2] == ["group", "depth"]
    assert "CD8A" in page.locator("#column option").all_inner_texts()
    assert page.locator("#legend li").all_inner_texts() == [
        f"{SCRIPT}\n40", "right\n20"]  # fmt: skip

    page.locator("#play").click()  # the run
    page.wait_for_selector("#play:not([disabled])")
    _lasso(page, 0.5, 0.99)
    _says(page, "20 of 60 selected")
    assert "CD8A" in page.locator("#inside").inner_text()
    with page.expect_download() as download:
        page.locator("#download").click()
    names = download.value.path().read_text().split()
    assert names == [f"cell-{i}" for i in range(40, 60)]

    page.locator("#legend li").nth(1).click()
    _says(page, "Click on a point, or draw a loop with Lasso.")
    _lasso(page, 0.01, 0.99)
    _says(page, "40 of 40 selected")
    page.locator("#legend li").nth(1).click()

    page.locator("#search").fill("cell-7")
    _says(page, "1 of 60 selected")
    page.locator("#search").fill("no. 5")  # a part of 11 texts
    _says(page, "11 of 60 selected")
    page.locator("#search").fill("cd8a")
    page.locator("#numbers").wait_for()
    assert page.locator("#column").input_value() == "CD8A"


def test_a_point_shows_who_it_is(opened):
    page = opened
    page.locator("#search").fill("cell-3")  # cell-3 and cell-30 to cell-39
    _says(page, "11 of 60 selected")
    page.locator("#column").select_option("depth")
    box = page.locator("#map").bounding_box()
    at = [box["x"] + box["width"] * 0.03, box["y"] + box["height"] / 2]
    card = page.locator("#card")
    for step in range(400):
        page.mouse.move(at[0] + step % 20 * 4, at[1] + (step // 20 - 10) * 4)
        page.evaluate("new Promise(requestAnimationFrame)")
        if card.is_visible():
            break
    assert "cell-" in card.inner_text()
    row = int(re.search(r"cell-(\d+)", card.inner_text())[1])
    assert f"depth\t{10_000 + 37 * row:,}" in card.inner_text()
    assert page.locator("#limits").inner_text().split() == ["10,000", "12,183"]
    assert SCRIPT in card.inner_text()
    page.mouse.down()
    page.mouse.up()
    _says(page, "1 of 60 selected")


def test_a_search_never_leaves_another_gene_under_its_name(opened):
    page, column = opened, opened.locator("#column")
    page.locator("#search").fill("cd8a")
    page.locator("#numbers").wait_for()
    assert page.locator("#unit").inner_text().startswith("Expression: counts")
    page.locator("#search").fill("GNLY")
    page.get_by_text("“GNLY” is not on this page").wait_for()
    assert column.input_value() == "group"

    page.locator("#search").fill("cd8a")
    page.locator("#numbers").wait_for()
    column.select_option("depth")
    page.locator("#limits").get_by_text("12,183").wait_for()
    assert page.locator("#search").input_value() == ""
    assert page.locator("#unit").inner_text() == ""
    page.locator("#search").fill("right")  # a group of a column that is not on show
    _says(page, "20 of 60 selected")
    assert page.locator("#found").inner_text() == "In group: right."
    assert column.input_value() == "depth"


def test_fingers_move_the_map_and_draw_loops(on_phone):
    page = on_phone
    box = page.locator("#map").bounding_box()
    touch = page.context.new_cdp_session(page)

    def at(across, down):
        x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
        return {"x": x, "y": y}

    def drag(*paths):
        """Move as many fingers as there are paths, of as many stops, at once."""
        ways = [*zip(*paths, strict=True)]
        # A finger that leaves in full swing flings: Chromium's next tap only stops it.
        for n, stops in enumerate(ways + ways[-1:] * 6):
            kind, points = "touchMove" if n else "touchStart", [at(*x) for x in stops]
            event = {"type": kind, "touchPoints": points}
            touch.send("Input.dispatchTouchEvent", event)
            page.evaluate("new Promise(requestAnimationFrame)")
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.evaluate("new Promise(requestAnimationFrame)")

    def loop(left, right):
        corners = [(left, 0.1), (right, 0.1), (right, 0.9), (left, 0.9), (left, 0.12)]
        ways = itertools.pairwise(corners)
        shares = [(a, b, i / 8) for a, b in ways for i in range(8)]
        page.locator("#lasso[aria-pressed=false]").tap()
        drag([tuple((1 - s) * np.array(a) + s * np.array(b)) for a, b, s in shares])
        page.locator("#lasso[aria-pressed=true]").tap()

    assert page.evaluate("document.documentElement.scrollWidth") == 400
    loop(0.01, 0.99)
    _says(page, "60 of 60 selected")  # the whole map is on the screen
    loop(0.5, 0.99)
    _says(page, "20 of 60 selected")
    drag([(0.5 + i / 50, 0.5) for i in range(25)])  # the right group leaves the screen
    loop(0.3, 0.99)
    _says(page, "40 of 60 selected")
    page.locator("#reset").tap()
    drag(*[[(0.5 + s * (0.1 + i / 40), 0.5) for i in range(9)] for s in (-1, 1)])
    loop(0.01, 0.99)  # two fingers have enlarged the middle, where nothing is
    _says(page, "Click on a point, or draw a loop with Lasso.")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"basis": "X_tsne"}, "X_umap"),
        ({"basis": "X_line"}, "of two axes: choose one of X_umap"),
        ({"columns": ["leiden"]}, "group, depth"),
        ({"genes": ["CD3E"]}, "CD3E"),
        ({"columns": ["name"]}, "300 levels"),
    ],
)
def test_what_is_not_there_is_said(tmp_path, cells, wrong, sentence):
    many = AnnData(obs=pd.DataFrame(index=[f"c{i}" for i in range(300)]))
    adata = cells if "name" not in wrong.get("columns", ()) else many
    if adata is many:
        many.obs["name"] = many.obs_names
        many.obsm["X_umap"] = np.zeros((300, 2))
    adata.obsm["X_line"] = np.zeros((adata.n_obs, 1))
    options = {"basis": "X_umap"} | wrong
    with pytest.raises(DataError, match=sentence):
        write_web_page(adata, tmp_path / "map.html", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_genes_of_one_name_are_written(tmp_path, cells):
    cells.var_names = ["ACTB", "CD8A", "CD8A"]
    write_web_page(cells, tmp_path / "map.html", basis="X_umap", genes=["CD8A"])
    ids = [f"ENSG{i:011d}" for i in range(3)]
    cells.var = pd.DataFrame({"feature_name": cells.var_names}, ids)
    write_web_page(cells, tmp_path / "map.html", basis="X_umap")
    assert {"CD8A", "CD8A-1"} < {*_names(tmp_path / "map.html")}
    cells.X = None
    write_web_page(cells, tmp_path / "map.html", basis="X_umap")


def test_each_column_and_gene_has_a_name_of_its_own(tmp_path, cells):
    rng = np.random.default_rng(0)
    for name in ("embedding_game_cluster", "cluster", "CD8A"):
        cells.obs[name] = pd.Categorical(rng.choice([*"ab"], 60))
    write_web_page(cells, tmp_path / "map.html", basis="X_umap", genes=["CD8A"])
    assert _names(tmp_path / "map.html") == [
        *("map_cluster", "group", "depth", "cluster", "CD8A (column)", "CD8A")
    ]


@pytest.mark.parametrize("has_expression", [True, False])
def test_whole_numbers_of_a_table_are_no_counts(tmp_path, cells, has_expression):
    cells.uns["embedding_game"] = {"input": {"has_expression": has_expression}}
    write_web_page(cells, tmp_path / "map.html", basis="X_umap", genes=["CD8A"])
    limits = f'"limits": [0.0, {cells.X[:, 1].max()}]'.encode()
    assert (limits in _payload(tmp_path / "map.html")) is not has_expression


def test_the_command_line_writes_a_page(tmp_path, cells, command_line):
    most = np.log1p(cells.X[:, 1].max())
    cells.X, cells.uns["log1p"] = np.log2(1 + cells.X), {"base": 2}
    cells.write_h5ad(tmp_path / "map.h5ad")
    files = tmp_path / "map.h5ad", tmp_path / "map.html"
    done = command_line("export", *files, "--basis", "X_umap")
    assert done.exit_code == 0, done.output
    text = files[1].read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert SCRIPT not in text
    assert _columns(files[1])["CD8A"]["limits"][1] == pytest.approx(most)  # as ln


def test_a_page_has_the_genes_of_the_window(tmp_path, cells, command_line):
    """As scanpy's tutorial leaves them: unscaled in raw, and some of them scaled."""
    cells.X = np.log1p(cells.X)
    most = cells.X.max(axis=0)
    cells.raw = cells
    cells = cells[:, ["ACTB", "MS4A1"]].copy()
    cells.X = (cells.X - cells.X.mean(axis=0)) / cells.X.std(axis=0)
    cells.write_h5ad(tmp_path / "map.h5ad")
    files = tmp_path / "map.h5ad", tmp_path / "map.html"
    options = "--basis", "X_umap", "--genes", "MS4A1"
    done = command_line("export", *files, *options)
    assert done.exit_code == 0, done.output
    page = _content(files[1])
    assert page["columns"][-1]["limits"] == pytest.approx([0, most[2]])
    assert page["unit"] == "Expression: log1p of the file, as it is."
    said = tmp_path / "said.html"
    write_web_page(cells, said, basis="X_umap", gene_kind="values")
    assert _content(said)["unit"].startswith("Expression: values of the file")

    of_window = from_anndata(cells, "cells", ReadOptions(space="X"))
    assert of_window.profile_names[:2] == ("ACTB", "CD8A")
    assert page["markers"]["right"][0] == "CD8A"


def test_levels_have_the_order_and_the_colours_of_the_file(tmp_path, cells):
    right = cells.obs["group"] == "right"
    levels = ["b", "none", "a"]
    cells.obs["group"] = pd.Categorical(np.where(right, "a", "b"), levels)
    cells.obs["other"] = pd.Categorical(np.where(right, "a", "b"), levels)
    cells.uns["group_colors"] = ["#ff0000", "#777777", "#00ff00", "#0000ff"]
    write_web_page(cells, tmp_path / "map.html", basis="X_umap")
    group, other = (_columns(tmp_path / "map.html")[k] for k in ("group", "other"))
    assert group["levels"] == other["levels"] == ["b", "a"]
    assert group["colors"] == ["#ff0000", "#00ff00"]
    assert len({*other["colors"]}) == 2
