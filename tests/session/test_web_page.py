"""The web page of a map, opened from its file in a browser, with real clicks."""

import base64
import gzip
import itertools
import json
import re
import shutil
from contextlib import contextmanager

import anndata
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from scipy import sparse

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.session import web_page
from napari_embedding_game.session.web_page import write_web_page
from napari_embedding_game.session.web_page_genes import encode_values

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


def _highest(path, gene):
    """Return the highest value of a gene on a page."""
    genes = _content(path)["genes"]
    return genes["highs"][genes["names"].index(gene)]


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

    page.get_by_label("Show right").click()
    _says(page, "Click on a point, or draw a loop with Lasso.")
    _lasso(page, 0.01, 0.99)
    _says(page, "40 of 40 selected")
    page.get_by_label("Show right").click()

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
    page.locator("#limits").get_by_text("12,183").wait_for()
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
    assert page.locator("#unit").inner_text() == 'Column "depth" of the data.'
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
    page.get_by_text("“GNLY” is not on this page, which has 3 of 3 genes.").wait_for()
    assert column.input_value() == "group"

    page.locator("#search").fill("cd8a")
    page.locator("#numbers").wait_for()
    column.select_option("depth")
    page.locator("#limits").get_by_text("12,183").wait_for()
    assert page.locator("#search").input_value() == ""
    assert "Expression" not in page.locator("#unit").inner_text()
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


@pytest.fixture
def own_map(cells):
    """Return a map of this program: 600 cells, of which 30 are misplaced."""
    rng = np.random.default_rng(1)
    many = anndata.concat([cells] * 10, index_unique="-", uns_merge="first")
    is_right = (many.obs["group"] == "right").to_numpy()
    # CD8A in the last cells of the right group alone: gaps of more than 255 rows.
    many.X[:, 1] = 0
    many.X[np.flatnonzero(is_right)[-4:], 1] = 1_000
    many.X[:, 0] = 10
    many.obsm["X_pca"] = rng.normal(size=(600, 4)) + 40 * is_right[:, None]
    many.obsm["X_embedding_game"] = many.obsm["X_pca"][:, :2]
    many.obs["embedding_game_stretch"] = np.where(np.arange(600) % 20, 1.0, 9.0)
    many.obs["sample"] = np.where(np.arange(600) % 3, "treated, a", "control")
    record = {"space": "obsm['X_pca']", "has_expression": True}
    many.uns["embedding_game"] = {"input": record, "parameters": {}}
    return many


def test_a_page_says_what_to_believe_and_what_groups_are_made_of(
    browser, own_map, tmp_path
):
    target = tmp_path / "map.html"
    write_web_page(own_map, target)
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(target.as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    trust = page.locator("#trust").inner_text()
    assert re.match(r"Trustworthy 8\d% · 5.0% misplaced", trust)
    assert "distances between far groups mean little" in trust
    page.get_by_role("button", name="Show", exact=True).click()
    page.locator("#legend li").first.get_by_text("misplaced").wait_for()
    assert page.locator("#legend li").all_inner_texts()[0] == "misplaced\n30"
    page.get_by_role("button", name="misplaced", exact=True).click()
    _says(page, "30 of 600 selected")

    page.get_by_text("Composition").click()
    assert page.locator("#parts").input_value() == "sample"
    _says(page, "How much of each sample is selected.")
    bars = page.locator("#bars .bar")
    shares = [f"selected {share:.1f}%" for share in (5.0, 5.0)]
    said = [bars.nth(i).get_attribute("aria-label") for i in range(2)]
    assert said == [f"control, 200 points: {shares[0]}",
                    f"treated, a, 400 points: {shares[1]}"]  # fmt: skip

    page.locator("#dotplot").click()
    expected = np.log1p(own_map.X / own_map.X.sum(axis=1, keepdims=True) * 1e4)[:, 1]
    of_group = expected[(own_map.obs["group"] == "right").to_numpy()]
    page.locator("#dot-genes").fill("cd8a, GNLY")
    page.locator("#dot-genes").press("Enter")
    text = f"CD8A in right: mean {of_group.mean():.3g}, 2.0% above 0"
    assert text in page.locator("#plot circle title").all_text_contents()
    assert "Not on this page: GNLY." in page.locator("#dots-note").inner_text()
    page.close()


def test_keys_and_a_link_reach_what_the_mouse_does(opened):
    page = opened
    canvas = page.get_by_role("application", name="Map of 60 points")
    canvas.focus()
    for key in ("ArrowRight", "+", "+"):
        page.keyboard.press(key)
    page.get_by_label("Show right").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")  # the name of the first group
    _says(page, "40 of 40 selected")
    page.locator("#named").press("Enter")
    page.wait_for_function("location.hash.includes('names=0')")
    address = page.evaluate("location.href")
    hidden, view = ("hide=right", "view=")
    assert hidden in address
    assert view in address
    page.keyboard.press("Tab")  # to Whole map
    page.keyboard.press("Enter")
    page.wait_for_function("!location.hash.includes('view=')")

    page.evaluate("address => { location.hash = address.split('#')[1]; }", address)
    page.wait_for_function("!document.querySelectorAll('#legend input')[1].checked")
    assert page.locator("#labels").is_hidden()
    page.wait_for_timeout(300)  # in which a view would be noted
    assert page.evaluate("location.href") == address


def test_a_picture_has_the_legend_of_the_page(opened, tmp_path):
    page = opened
    assert page.locator("#labels span").all_inner_texts() == [SCRIPT, "right"]
    with page.expect_download() as download:
        page.locator("#picture").click()
    download.value.save_as(tmp_path / "map.png")
    picture = matplotlib.image.imread(tmp_path / "map.png")
    legend = picture[:, -240:]
    is_red = (legend[..., :3] == [1, 0, 0]).all(axis=-1)
    map_is_red = (picture[:, :-240, :3] == [1, 0, 0]).all(axis=-1)
    assert is_red.sum() > 40
    assert map_is_red.any()


def test_values_of_genes_come_back():
    rng = np.random.default_rng(3)
    values = rng.normal(size=1_000) * (rng.random(1_000) < 0.004)
    values[[5, 999]] = np.nan, 8.0
    for case in (values, np.abs(values), np.zeros(7)):
        (low, high), (gaps, steps) = encode_values(case, 31)
        back, row, stored = np.full(len(case), low), -1, iter(steps)
        for gap in gaps:
            row += gap + (gap < 255)
            if gap < 255:
                step = next(stored)
                back[row] = np.nan if step == 255 else low + step / 31 * (high - low)
        assert np.array_equal(np.isnan(back), np.isnan(case))
        np.testing.assert_allclose(back, case, atol=(high - low) / 31)


def test_genes_stay_within_the_size_of_a_page(tmp_path, monkeypatch):
    """Of many cells, genes are known of a part; all genes of few are there."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.poisson(0.4, (4_000, 300)).astype(np.float32))
    names = pd.DataFrame(index=[f"g{i}" for i in range(300)])
    obs = pd.DataFrame({"group": rng.choice([*"ab"], 4_000)})
    adata = AnnData(X, obs.set_axis([f"c{i}" for i in range(4_000)]), names)
    adata.obsm["X_umap"] = rng.normal(size=(4_000, 2))
    adata.var["highly_variable"] = np.arange(300) >= 280
    target = tmp_path / "map.html"
    write_web_page(adata, target, basis="X_umap")
    genes, whole = _content(target)["genes"], target.stat().st_size
    assert len(genes["names"]) == 300
    assert (genes["n_rows"], genes["n_steps"]) == (4_000, 254)

    monkeypatch.setattr(web_page, "MIN_GENE_BYTES", 0)
    monkeypatch.setattr(web_page, "MAX_BYTES", whole - 500_000)
    write_web_page(adata, target, basis="X_umap")
    page = _content(target)
    genes = page["genes"]
    assert target.stat().st_size <= whole - 500_000
    assert genes["n_steps"] == 31
    assert 1_000 <= genes["n_rows"] < 4_000
    assert len(genes["names"]) > 150
    n_leading = len({name for names in page["markers"].values() for name in names})
    variable = {f"g{i}" for i in range(280, 300)}
    assert variable <= {*genes["names"][: n_leading + 20]}


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
    assert {"CD8A", "CD8A-1"} < {*_content(tmp_path / "map.html")["genes"]["names"]}
    cells.X = None
    write_web_page(cells, tmp_path / "map.html", basis="X_umap")


def test_each_column_and_gene_has_a_name_of_its_own(tmp_path, cells):
    rng = np.random.default_rng(0)
    for name in ("embedding_game_cluster", "cluster", "CD8A"):
        cells.obs[name] = pd.Categorical(rng.choice([*"ab"], 60))
    write_web_page(cells, tmp_path / "map.html", basis="X_umap", genes=["CD8A"])
    names = ["map_cluster", "group", "depth", "cluster", "CD8A (column)"]
    assert [*_columns(tmp_path / "map.html")] == names


@pytest.mark.parametrize("has_expression", [True, False])
def test_whole_numbers_of_a_table_are_no_counts(tmp_path, cells, has_expression):
    cells.uns["embedding_game"] = {"input": {"has_expression": has_expression}}
    write_web_page(cells, tmp_path / "map.html", basis="X_umap", genes=["CD8A"])
    is_raw = _highest(tmp_path / "map.html", "CD8A") == cells.X[:, 1].max()
    assert is_raw is not has_expression


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
    assert _highest(files[1], "CD8A") == pytest.approx(most, rel=1e-5)  # as ln


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
    assert _highest(files[1], "MS4A1") == pytest.approx(most[2], rel=1e-5)
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
