"use strict";
(async () => {
const MISSING = 65535;
const byId = (id) => document.getElementById(id);
const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });

// The payload: length of the JSON, the JSON, then the arrays that it names.
async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const page = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const arrays = new Uint16Array(bytes.slice(4 + length).buffer);
  const take = ({ start, stop }) => arrays.subarray(start, stop);
  return [page, take];
}

const [page, take] = await unpack(byId("payload").textContent);
const { names, n } = page;
const texts = page.texts[0] ?? names.map(() => "");
// Positions and numbers are stored as whole numbers between their limits.
const scaled = (codes, low, high) => Float32Array.from(codes,
  (code) => code === MISSING ? NaN : low + code / (MISSING - 1) * (high - low));
// The library draws what lies from -1 to 1.
const middles = page.limits.map(([low, high]) => (low + high) / 2);
const half = 1.05 * Math.max(1e-9, ...page.limits.map(([low, high]) => (high - low) / 2));
const placed = ({ x, y }) => [x, y].map((codes, axis) => scaled(take(codes),
  ...page.limits[axis].map((end) => (end - middles[axis]) / half)));
// A colour of CSS as hexadecimal digits.
const paint = make("canvas").getContext("2d");
const hexOf = (color) => {
  paint.fillStyle = "#888888";
  paint.fillStyle = color;
  return paint.fillStyle.startsWith("#") ? paint.fillStyle : "#888888";
};
const columns = page.columns.map((column) => {
  const codes = take(column.codes);
  const values = column.levels
    ? Float32Array.from(codes, (code) => code === MISSING ? NaN : code)
    : scaled(codes, ...column.limits);
  return { ...column, codes, values, colors: column.colors?.map(hexOf) };
});
// Numbers are written as in the window; of large ones 65,534 parts of a range give five digits.
const numberText = (x, digits = 5) => Math.abs(x) < 999.5 ? `${Number(x.toPrecision(3))}`
  : Math.round(Number(x.toPrecision(digits))).toLocaleString("en");
const written = (column, row) => {
  if (column.codes[row] === MISSING) return "–";
  return column.levels ? column.levels[column.codes[row]] : numberText(column.values[row]);
};

byId("title").textContent = page.title;
byId("size").textContent = `${n.toLocaleString("en")} points`;
const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
const grey = isDark ? "#4a4a50" : "#d0d0d4";
const size = Math.max(2, Math.min(6, 600 / Math.sqrt(n)));
const plot = reglScatterplot.default({
  canvas: byId("map"), width: "auto", height: "auto", pointSize: size, pointSizeSelected: 0,
  pointOutlineWidth: 0, colorBy: "valueA", opacity: 0.9, opacityInactiveMax: 0.12,
  backgroundColor: isDark ? "#17171a" : "#ffffff", lassoColor: "#2563eb",
  pointColorHover: isDark ? "#ffffff" : "#000000", lassoMinDelay: 0,
});
const positions = placed(page);

let shown = columns[0];
let hiddenLevels = new Set();
let selected = [];
let isFound = false;        // whether the search has selected these rows
let shownBefore = null;     // the column on show before the search coloured by another

// What the library draws colours by: the code of a level, or a share of the range; what is
// missing has the last colour.
const valuesOf = ({ levels, codes }) => Float32Array.from(codes, levels
  ? (code) => code === MISSING ? levels.length : code
  : (code) => code === MISSING ? 1 : code / MISSING * (1 - 1 / page.shades.length));

async function draw([x, y], values) {
  const colors = [...(shown.levels ? shown.colors : page.shades), grey];
  plot.set({ pointColor: colors, pointColorActive: colors });
  await plot.draw({ x, y, valueA: values },
    { zDataType: shown.levels ? "categorical" : "continuous" });
}

async function colorBy(column) {
  shown = column;
  hiddenLevels = new Set();
  const kept = selected;
  await draw(positions, valuesOf(column));
  select(kept);
  byId("column").value = column.name;
  byId("numbers").hidden = Boolean(column.levels);
  byId("legend").replaceChildren(...(column.levels ?? []).map(legendRow));
  if (!column.levels) {
    byId("scale").style.background = `linear-gradient(to right, ${page.shades.join(",")})`;
    const ends = byId("limits").children;
    column.limits.forEach((end, i) => { ends[i].textContent = numberText(end, 15); });
    byId("unit").textContent = column.is_gene ? page.unit : "";
  }
}

function legendRow(level, code) {
  const row = make("li"), swatch = make("i");
  swatch.className = "swatch";
  swatch.style.background = shown.colors[code];
  const count = make("small", shown.counts[code].toLocaleString("en"));
  count.className = "weak";
  row.append(swatch, make("span", level), count);
  row.title = `Click to hide or show ${level}`;
  row.onclick = () => {
    hiddenLevels.has(code) ? hiddenLevels.delete(code) : hiddenLevels.add(code);
    row.classList.toggle("hidden", hiddenLevels.has(code));
    hiddenLevels.size ? plot.filter(allRows().filter(isShown)) : plot.unfilter();
    select(selected.filter(isShown));
  };
  return row;
}

const allRows = () => Array.from({ length: n }, (_, row) => row);
const isShown = (row) => !hiddenLevels.has(shown.codes[row]);

function select(rows) {
  rows.length ? plot.select(rows, { preventEvent: true }) : plot.deselect({ preventEvent: true });
  selected = rows;
  describe();
}

// Colours by a column that a person has chosen elsewhere: the search no longer says which.
function choose(column) {
  if (shownBefore) byId("search").value = byId("found").textContent = "";
  shownBefore = null;
  return colorBy(column);
}

function describe() {
  const rows = selected;
  const total = hiddenLevels.size ? allRows().filter(isShown).length : n;
  byId("download").hidden = !rows.length;
  byId("counted").textContent = rows.length
    ? `${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} selected`
    : "Click on a point, or draw a loop with Lasso.";
  const groups = columns.find((column) => column.name === page.groups);
  const inside = [];
  if (rows.length && groups) {
    const counts = new Map();
    for (const row of rows) {
      const level = written(groups, row);
      counts.set(level, (counts.get(level) ?? 0) + 1);
    }
    const falling = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6);
    inside.push(make("h2", groups.name), table(falling));
    const markers = page.markers[falling[0][0]];
    if (markers?.length) {
      inside.push(make("h2", `Markers of ${falling[0][0]}`),
        table(markers.map((gene) => [gene]), true));
    }
  }
  byId("inside").replaceChildren(...inside);
}

function table(rows, areGenes = false) {
  const made = make("table");
  for (const cells of rows) {
    const row = made.insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
    const column = columns.find((one) => one.name === cells[0]);
    if (areGenes && column) {
      row.dataset.gene = cells[0];
      row.onclick = () => choose(column);
    }
  }
  return made;
}

plot.subscribe("select", ({ points }) => {
  selected = points.filter(isShown);
  isFound = false;
  describe();
});
plot.subscribe("deselect", () => { selected = []; isFound = false; describe(); });

byId("lasso").onclick = () => {
  const isOn = plot.get("mouseMode") !== "lasso";
  plot.set({ mouseMode: isOn ? "lasso" : "panZoom" });
  byId("lasso").setAttribute("aria-pressed", isOn);
};

// The library shows what lies from -1 to 1 upwards, whatever the width.
const extents = page.limits.map(([low, high]) => Math.max(0.05, 1.05 * (high - low) / 2 / half));
let wholeDistance = 1;
function showWholeMap() {
  const { width, height } = byId("map").getBoundingClientRect();
  wholeDistance = Math.max(extents[1], extents[0] * height / width);
  plot.reset();
  plot.set({ cameraDistance: wholeDistance });
}
byId("reset").onclick = showWholeMap;
new ResizeObserver(() => {
  const isWhole = Math.abs(plot.get("cameraDistance") - wholeDistance) < 1e-3
    && plot.get("cameraTarget").every((position) => Math.abs(position) < 1e-3);
  if (isWhole) showWholeMap();
}).observe(byId("map"));

// Fingers, of which the library knows nothing: one is a mouse, two are its wheel.
const fingers = new Map();
let isDragging = false, isAimed = false;
const asMouse = (type, { clientX, clientY }, more) => byId("map").dispatchEvent(
  new (type === "wheel" ? WheelEvent : MouseEvent)(type,
    { clientX, clientY, bubbles: true, cancelable: true, ...more }));
const apart = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
// The library moves the map by the way since its last frame: first it has to see where a drag begins.
function aim(finger) {
  isAimed = false;
  asMouse("mousemove", finger);
  requestAnimationFrame(() => requestAnimationFrame(() => { isAimed = true; }));
}
byId("map").addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "touch") return;
  fingers.set(event.pointerId, event);
  if (fingers.size === 1) aim(event);
  byId("map").setPointerCapture(event.pointerId);
});
byId("map").addEventListener("pointermove", (event) => {
  const first = fingers.get(event.pointerId);
  if (!first) return;
  if (fingers.size === 1) {
    // A tap is a click of the browser's own.
    if (!isDragging && (!isAimed || apart([first, event]) < 8)) return;
    if (!isDragging) asMouse("mousedown", first, { buttons: 1 });
    isDragging = true;
    asMouse("mousemove", event, { buttons: 1 });
  } else if (plot.get("mouseMode") !== "lasso") {
    if (isDragging) asMouse("mouseup", event);
    isDragging = false;
    const before = [...fingers.values()];
    const now = before.map((one) => one.pointerId === event.pointerId ? event : one);
    const middle = { clientX: (now[0].clientX + now[1].clientX) / 2,
      clientY: (now[0].clientY + now[1].clientY) / 2 };
    const share = Math.log(apart(before) / Math.max(1, apart(now)));
    asMouse("wheel", middle, { deltaY: share * byId("map").clientHeight });
    fingers.set(event.pointerId, event);
  }
});
for (const end of ["pointerup", "pointercancel"]) {
  byId("map").addEventListener(end, (event) => {
    fingers.delete(event.pointerId);
    if (isDragging) asMouse("mouseup", event);
    isDragging = false;
    fingers.forEach(aim);
  });
}

byId("column").replaceChildren(...columns.map((column) => make("option", column.name)));
byId("column").onchange = (event) =>
  choose(columns.find((column) => column.name === event.target.value));

async function search() {
  const typed = byId("search").value.trim(), text = typed.toLowerCase();
  const column = columns.find((one) => one.name.toLowerCase() === text);
  if (isFound) select([]);
  isFound = false;
  byId("found").textContent = "";
  if (text && column) {
    shownBefore ??= shown;
    return colorBy(column);
  }
  if (shownBefore) await colorBy(shownBefore);  // another name stands there now
  shownBefore = null;
  if (!text) return;
  const found = columns.filter((one) => one.levels).map((one) => ({ ...one,
    matches: new Set(one.levels.flatMap((level, code) => level.toLowerCase().includes(text) ? [code] : [])),
  })).filter((one) => one.matches.size);
  const rows = allRows().filter((row) => isShown(row) && (
    `${names[row]}\n${texts[row]}`.toLowerCase().includes(text)
    || found.some((one) => one.matches.has(one.codes[row]))));
  select(rows);
  isFound = rows.length > 0;
  byId("found").textContent = rows.length
    ? found.map((one) => `In ${one.name}: ${[...one.matches].map((code) => one.levels[code]).join(", ")}.`).join(" ")
    : `“${typed}” is not on this page: its genes and columns are those of Colour by.`;
}
let searches = Promise.resolve();
byId("search").oninput = () => { searches = searches.then(search); };

byId("download").onclick = () => {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const lines = selected.map((row) => names[row]).sort(compare).join("\n") + "\n";
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([lines], { type: "text/plain" }));
  link.download = "selected.txt";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

// The card of the point under the mouse.
plot.subscribe("pointOver", (row) => {
  const card = byId("card"), [x, y] = plot.getScreenPosition(row);
  const lines = columns.filter((one) => one === shown || !one.is_gene)
    .map((one) => [one.name, written(one, row)]);
  card.replaceChildren(make("b", names[row]), table(lines), make("span", texts[row].slice(0, 240)));
  card.style.display = "block";
  const { width, height } = byId("map").getBoundingClientRect();
  card.style.left = `${Math.min(x + 16, width - card.offsetWidth - 8)}px`;
  card.style.top = `${Math.min(y + 16, height - card.offsetHeight - 8)}px`;
});
plot.subscribe("pointOut", () => { byId("card").style.display = "none"; });

// The run: frames of every few points, then the map again.
if (page.frames.length) {
  const frames = page.frames.map(placed);
  byId("play").hidden = false;
  byId("play").onclick = async () => {
    byId("play").disabled = true;
    select([]);
    const values = valuesOf(shown).filter((_, row) => row % page.frame_step === 0);
    for (const frame of frames) {
      await draw(frame, values);
      await new Promise((done) => setTimeout(done, 100));
    }
    await colorBy(shown);
    byId("play").disabled = false;
  };
}

await colorBy(columns[0]);
showWholeMap();
document.body.dataset.ready = "yes";
})();
