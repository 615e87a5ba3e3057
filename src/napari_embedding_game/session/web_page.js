"use strict";
(async () => {
const MISSING = 65535, MISSING_STEP = 255, MAX_LISTED = 30, MAX_DOTS = 60;
const byId = (id) => document.getElementById(id);
const make = (tag, text, more) =>
  Object.assign(document.createElement(tag), { textContent: text ?? "" }, more);
const commas = (n) => n.toLocaleString("en");
const percent = (share) => share > 0 && share < 0.0995
  ? `${Math.max(0.1, 100 * share).toFixed(1)}%` : `${Math.round(100 * share)}%`;

// --- What the page holds: length of the JSON, the JSON, then the arrays that it names.

async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const page = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const arrays = new Uint16Array(bytes.slice(4 + length).buffer);
  return [page, ({ start, stop }) => arrays.subarray(start, stop)];
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
const positions = placed(page);
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
const groups = columns.find((column) => column.name === page.groups);
const leveled = columns.filter((column) => column.levels);

// Genes: steps of their range, of rows that are not at its lower limit; a gap of 255 goes on.
const geneNames = page.genes.names;
const geneBytes = new Uint8Array(take(page.genes.bytes).slice().buffer);
const geneStarts = [0];
geneNames.forEach((_, i) =>
  geneStarts.push(geneStarts[i] + page.genes.n_gaps[i] + page.genes.n_values[i]));
const geneOf = new Map(geneNames.map((name, i) => [name.toLowerCase(), i]).reverse());
geneNames.forEach((name, i) => geneOf.set(name, i));
const readGenes = new Map();
// Of very many points the genes are known of the last ones, which are drawn above the others.
const firstKnown = n - page.genes.n_rows;
const partly = firstKnown > 0 ? ` Known of ${commas(n - firstKnown)} points, drawn at random; the others are grey.` : "";

function geneColumn(i) {
  if (readGenes.has(i)) return readGenes.get(i);
  const codes = new Uint16Array(n).fill(MISSING, 0, Math.max(0, firstKnown));
  const nGaps = page.genes.n_gaps[i];
  let row = firstKnown - 1, at = geneStarts[i] + nGaps;
  for (const gap of geneBytes.subarray(geneStarts[i], at)) {
    row += gap;
    if (gap === 255) continue;
    const step = geneBytes[at++];
    codes[++row] = step === MISSING_STEP ? MISSING
      : Math.round(step / page.genes.n_steps * (MISSING - 1));
  }
  const limits = [page.genes.lows[i], page.genes.highs[i]];
  const column = { name: geneNames[i], limits, codes, is_gene: true, values: scaled(codes, ...limits),
    about: `${page.unit} Rounded to ${page.genes.n_steps} steps of this range.${partly}`.trim() };
  readGenes.set(i, column);
  if (readGenes.size > MAX_DOTS) readGenes.delete(readGenes.keys().next().value);
  return column;
}

// A column or gene by its name; its case matters only where several have it.
function columnOf(name) {
  const text = name.toLowerCase();
  const named = columns.find((one) => one.name === name);
  const gene = geneOf.get(name) ?? geneOf.get(text);
  return named ?? (geneOf.has(name) ? geneColumn(gene) : undefined)
    ?? columns.find((one) => one.name.toLowerCase() === text)
    ?? (gene === undefined ? undefined : geneColumn(gene));
}

// Numbers are written as in the window; of large ones 65,534 parts of a range give five digits.
const numberText = (x, digits = 5) => Math.abs(x) < 999.5 ? `${Number(x.toPrecision(3))}`
  : Math.round(Number(x.toPrecision(digits))).toLocaleString("en");
const written = (column, row) => {
  if (column.codes[row] === MISSING) return "–";
  return column.levels ? column.levels[column.codes[row]] : numberText(column.values[row]);
};

// --- The map

const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
const back = isDark ? "#17171a" : "#ffffff", ink = isDark ? "#f2f2f4" : "#1c1c1e";
const grey = isDark ? "#4a4a50" : "#d0d0d4";
const size = Math.max(2, Math.min(6, 600 / Math.sqrt(n)));
const plot = reglScatterplot.default({
  canvas: byId("map"), width: "auto", height: "auto", pointSize: size, pointSizeSelected: 0,
  pointOutlineWidth: 0, colorBy: "valueA", opacity: 0.9, opacityInactiveMax: 0.12,
  backgroundColor: back, lassoColor: "#2563eb",
  pointColorHover: isDark ? "#ffffff" : "#000000", lassoMinDelay: 0,
});

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
  if (shown !== column) return;  // another one was chosen meanwhile
  listColumn(column.name);
  byId("column").value = column.name;
  byId("numbers").hidden = Boolean(column.levels);
  byId("legend").replaceChildren(...(column.levels ?? []).map(legendRow));
  byId("levels").hidden = (column.levels ?? []).length < 3;
  byId("unit").textContent = column.about;
  if (!column.levels) {
    byId("scale").style.background = `linear-gradient(to right, ${page.shades.join(",")})`;
    const ends = byId("limits").children;
    column.limits.forEach((end, i) => { ends[i].textContent = numberText(end, 15); });
  }
  placeNames();
  select(kept);
}

// Colours by a column that a person has chosen elsewhere: the search no longer says which.
function choose(column) {
  if (shownBefore) {
    byId("search").value = byId("found").textContent = "";
    suggest("");
  }
  shownBefore = null;
  return colorBy(column);
}

const allRows = () => Array.from({ length: n }, (_, row) => row);
const isShown = (row) => !hiddenLevels.has(shown.codes[row]);

function legendRow(level, code) {
  const row = make("li"), tick = make("input", "", { type: "checkbox", checked: true });
  tick.style.accentColor = shown.colors[code];
  tick.setAttribute("aria-label", `Show ${level}`);
  tick.onchange = () => hide(code, !tick.checked);
  const name = make("button", level, { type: "button", className: "plain", title: `Select ${level}` });
  name.setAttribute("aria-pressed", false);
  name.onclick = () => {
    const isOn = name.getAttribute("aria-pressed") !== "true";
    select(isOn && !hiddenLevels.has(code) ? allRows().filter((one) => shown.codes[one] === code) : []);
    name.setAttribute("aria-pressed", isOn);
  };
  row.append(tick, name, make("small", commas(shown.counts[code]), { className: "weak" }));
  return row;
}

function hide(code, isHidden) {
  isHidden ? hiddenLevels.add(code) : hiddenLevels.delete(code);
  updateHidden();
}

function updateHidden() {
  [...byId("legend").children].forEach((row, code) => {
    row.classList.toggle("hidden", hiddenLevels.has(code));
    row.firstChild.checked = !hiddenLevels.has(code);
  });
  hiddenLevels.size ? plot.filter(allRows().filter(isShown)) : plot.unfilter();
  placeNames();
  select(selected.filter(isShown));
}

byId("all").onclick = () => { hiddenLevels = new Set(); updateHidden(); };
byId("none").onclick = () => { hiddenLevels = new Set(shown.levels.keys()); updateHidden(); };

// --- Names of groups on the map, each at the point in the middle of its group

let labels = [];

function placeNames() {
  const column = shown.levels ? shown : groups;
  byId("labels").replaceChildren();
  labels = [];
  if (!column) return;
  const rows = column.levels.map(() => []);
  column.codes.forEach((code, row) => { if (code !== MISSING && isShown(row)) rows[code].push(row); });
  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  labels = rows.map((inside, code) => {
    if (!inside.length) return null;
    const [x, y] = positions.map((axis) => middle(Float32Array.from(inside, (row) => axis[row])));
    const far = (row) => (positions[0][row] - x) ** 2 + (positions[1][row] - y) ** 2;
    const spread = Math.sqrt(middle(Float32Array.from(inside, far)));
    return { text: column.levels[code], count: inside.length, spread,
      row: inside.reduce((best, row) => far(row) < far(best) ? row : best) };
  }).filter(Boolean).sort((a, b) => b.count - a.count);
  for (const label of labels) byId("labels").append(label.span = make("span", label.text));
  for (const label of labels) label.size = [label.span.offsetWidth, label.span.offsetHeight];
  moveNames();
}

// A name stands above a group that it would cover, and is left out if it would cover the name
// of a larger group.
function moveNames() {
  const taken = [];
  byId("labels").hidden = byId("named").getAttribute("aria-pressed") === "false" || isPlaying;
  const pixels = byId("map").clientHeight / 2 / plot.get("cameraDistance");
  for (const label of labels) {
    const [x, middle] = plot.getScreenPosition(label.row) ?? [-999, -999], [w, h] = label.size;
    const y = label.spread * pixels > h ? middle : middle - h;
    label.at = [x, y];
    label.isFree = !taken.some((one) => Math.abs(one.x - x) < (one.w + w) / 2 && Math.abs(one.y - y) < (one.h + h) / 2);
    if (label.isFree) taken.push({ x, y, w, h });
    Object.assign(label.span.style, { left: `${x}px`, top: `${y}px`, visibility: label.isFree ? "" : "hidden" });
  }
}

let isPlaying = false;
plot.subscribe("drawing", moveNames);
byId("named").onclick = () => {
  byId("named").setAttribute("aria-pressed", byId("named").getAttribute("aria-pressed") === "false");
  moveNames();
  noteView();
};

// --- The selection, and the composition of groups

function select(rows) {
  rows.length ? plot.select(rows, { preventEvent: true }) : plot.deselect({ preventEvent: true });
  selected = rows;
  describe();
}

function describe() {
  const rows = selected;
  const total = hiddenLevels.size ? allRows().filter(isShown).length : n;
  byId("download").hidden = !rows.length;
  byId("counted").textContent = rows.length
    ? `${commas(rows.length)} of ${commas(total)} selected`
    : "Click on a point, or draw a loop with Lasso.";
  for (const row of byId("legend").children) row.children[1].setAttribute("aria-pressed", false);
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
  compose();
  noteView();
}

function table(rows, areGenes = false) {
  const made = make("table");
  for (const cells of rows) {
    const row = made.insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
    if (areGenes && geneOf.has(cells[0])) {
      const button = make("button", cells[0], { type: "button", className: "plain", title: `Colour by ${cells[0]}` });
      button.onclick = () => choose(geneColumn(geneOf.get(cells[0])));
      row.cells[0].replaceChildren(button);
    }
  }
  return made;
}

// Bars of the levels of a column: which groups are in each, or how much of each is selected.
function compose() {
  const rows = leveled.find((one) => one.name === byId("parts").value);
  if (!byId("composition").open || !rows) return;
  const colored = shown.levels && shown !== rows ? shown : groups === rows
    ? leveled.find((one) => one !== rows) : groups;
  const isOfSelection = selected.length > 0;
  const chosen = new Set(selected);
  const totals = rows.levels.map(() => 0), parts = rows.levels.map(() => new Map());
  for (let row = 0; row < n; row++) {
    const level = rows.codes[row];
    if (level === MISSING || !isShown(row)) continue;
    totals[level] += 1;
    const part = isOfSelection ? Number(chosen.has(row)) : colored.codes[row];
    parts[level].set(part, (parts[level].get(part) ?? 0) + 1);
  }
  byId("meaning").textContent = isOfSelection
    ? `How much of each ${rows.name} is selected.`
    : `How each ${rows.name} is made up of ${colored.name}.`;
  byId("bars").replaceChildren(...rows.levels.flatMap((level, i) => {
    if (!totals[i]) return [];
    const head = make("div", "", { className: "bar-head" }), bar = make("div", "", { className: "bar" });
    const wanted = isOfSelection ? [1] : [...colored.levels.keys(), MISSING];
    const shares = wanted.map((part) => [part, (parts[i].get(part) ?? 0) / totals[i]]).filter(([, share]) => share > 0);
    const nameOf = (part) => isOfSelection ? "selected" : part === MISSING ? "unknown" : colored.levels[part];
    const falling = [...shares].sort((a, b) => b[1] - a[1]);
    const said = isOfSelection ? percent(shares[0]?.[1] ?? 0) : falling.slice(0, 1).map(([part, share]) => `${nameOf(part)} ${percent(share)}`).join("");
    head.append(make("span", level), make("span", isOfSelection ? `${said} of ${commas(totals[i])}` : said, { className: "weak" }));
    for (const [part, share] of shares) {
      const piece = make("div", "", { title: `${nameOf(part)}: ${percent(share)}` });
      piece.style.width = `${100 * share}%`;
      piece.style.background = isOfSelection ? "var(--accent)" : part === MISSING ? grey : colored.colors[part];
      bar.append(piece);
    }
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", `${level}, ${totals[i]} points: ${falling.map(([part, share]) => `${nameOf(part)} ${percent(share)}`).join(", ")}`);
    return [head, bar];
  }));
}

if (leveled.length > 1) {
  byId("composition").hidden = false;
  byId("parts").replaceChildren(...leveled.map((one) => make("option", one.name)));
  byId("parts").value = (leveled.find((one) => one.is_samples) ?? leveled.find((one) => one !== groups)).name;
  byId("parts").onchange = byId("composition").ontoggle = compose;
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

// --- What is in view: by button, keys and the address

// The library shows what lies from -1 to 1 upwards, whatever the width.
const extents = page.limits.map(([low, high]) => Math.max(0.05, 1.05 * (high - low) / 2 / half));
let wholeDistance = 1;
function showWholeMap() {
  const { width, height } = byId("map").getBoundingClientRect();
  wholeDistance = Math.max(extents[1], extents[0] * height / width);
  plot.reset();
  plot.set({ cameraDistance: wholeDistance });
}
const isWhole = () => Math.abs(plot.get("cameraDistance") - wholeDistance) < 1e-3
  && plot.get("cameraTarget").slice(0, 2).every((position) => Math.abs(position) < 1e-3);
byId("reset").onclick = showWholeMap;
new ResizeObserver(() => { if (isWhole()) showWholeMap(); }).observe(byId("map"));

byId("map").setAttribute("aria-label",
  `Map of ${commas(n)} points. Arrow keys move it, plus and minus enlarge, Home shows all.`);
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
byId("map").addEventListener("keydown", (event) => {
  const distance = plot.get("cameraDistance"), target = plot.get("cameraTarget");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in STEPS) plot.set({ cameraTarget: STEPS[event.key].map((step, axis) => target[axis] + 0.2 * distance * step) });
  else if ("+=".includes(event.key)) plot.set({ cameraDistance: distance / 1.25 });
  else if (event.key === "-") plot.set({ cameraDistance: distance * 1.25 });
  else if (event.key === "Home") showWholeMap();
  else return;
  event.preventDefault();
});

// The address behind # says which view is on show.
let isReading = true, noting = 0;
function viewText() {
  const view = new URLSearchParams({ color: shown.name });
  for (const code of hiddenLevels) view.append("hide", shown.levels[code]);
  if (byId("named").getAttribute("aria-pressed") === "false") view.set("names", "0");
  if (byId("search").value.trim()) view.set("search", byId("search").value.trim());
  if (!isWhole()) {
    const [x, y] = plot.get("cameraTarget");
    view.set("view", [x, y, plot.get("cameraDistance")].map((one) => one.toFixed(4)).join(","));
  }
  return `#${view}`;
}
function noteView() {
  if (isReading) return;
  clearTimeout(noting);
  noting = setTimeout(() => history.replaceState(null, "", viewText()), 200);
}
plot.subscribe("view", noteView);

async function readView() {
  const view = new URLSearchParams(location.hash.slice(1));
  isReading = true;
  byId("search").value = view.get("search") ?? "";
  byId("named").setAttribute("aria-pressed", view.get("names") !== "0");
  await search();
  await colorBy(columnOf(view.get("color") ?? "") ?? columns[0]);
  const hidden = new Set(view.getAll("hide"));
  hiddenLevels = new Set([...(shown.levels ?? []).keys()].filter((code) => hidden.has(shown.levels[code])));
  if (hiddenLevels.size) updateHidden();
  showWholeMap();
  const [x, y, distance] = (view.get("view") ?? "").split(",").map(Number);
  if (distance > 0 && Number.isFinite(x + y)) plot.set({ cameraTarget: [x, y], cameraDistance: distance });
  isReading = false;
}
addEventListener("hashchange", readView);

byId("link").onclick = async () => {
  history.replaceState(null, "", viewText());
  try {
    await navigator.clipboard.writeText(location.href);
    byId("found").textContent = "Copied. The link opens this view where this page lies, such as on a web server.";
  } catch {
    prompt("Copy this link:", location.href);
  }
};

// --- Fingers, of which the library knows nothing: one is a mouse, two are its wheel.

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

// --- What to colour by, and the search

const options = Object.fromEntries(["Columns", "Genes"].map((label) => [label, make("optgroup", "", { label })]));
options.Columns.append(...columns.map((column) => make("option", column.name)));
options.Genes.append(...geneNames.slice(0, MAX_LISTED).map((name) => make("option", name)));
byId("column").replaceChildren(options.Columns, ...(geneNames.length ? [options.Genes] : []));
function listColumn(name) {
  if (![...byId("column").options].some((one) => one.value === name)) options.Genes.append(make("option", name));
}
byId("column").onchange = (event) => choose(columnOf(event.target.value));

// Buttons of the genes whose names begin with a text.
function suggest(text) {
  const begins = text.length < 2 ? [] : geneNames.filter((name) => name.length > text.length
    && name.toLowerCase().startsWith(text)).slice(0, 8);
  byId("suggested").replaceChildren(...begins.map((name) => {
    const button = make("button", name, { type: "button", title: `Colour by ${name}` });
    button.onclick = () => { byId("search").value = ""; suggest(""); choose(geneColumn(geneOf.get(name))); };
    return button;
  }));
  return begins.length;
}

async function search() {
  const typed = byId("search").value.trim(), text = typed.toLowerCase();
  const column = text ? columnOf(typed) : undefined;
  if (isFound) select([]);
  isFound = false;
  byId("found").textContent = "";
  const nSuggested = suggest(text);
  if (column) {
    shownBefore ??= shown;
    return colorBy(column);
  }
  if (shownBefore) await colorBy(shownBefore);  // another name stands there now
  shownBefore = null;
  if (!text) return;
  const found = leveled.map((one) => ({ ...one,
    matches: new Set(one.levels.flatMap((level, code) => level.toLowerCase().includes(text) ? [code] : [])),
  })).filter((one) => one.matches.size);
  const rows = allRows().filter((row) => isShown(row) && (
    `${names[row]}\n${texts[row]}`.toLowerCase().includes(text)
    || found.some((one) => one.matches.has(one.codes[row]))));
  select(rows);
  isFound = rows.length > 0;
  const { n_all } = page.genes;
  const having = n_all ? `, which has ${commas(geneNames.length)} of ${commas(n_all)} genes` : "";
  byId("found").textContent = rows.length
    ? found.map((one) => `In ${one.name}: ${[...one.matches].map((code) => one.levels[code]).join(", ")}.`).join(" ")
    : nSuggested ? "" : `“${typed}” is not on this page${having}.`;
  noteView();
}
let searches = Promise.resolve();
byId("search").oninput = () => { searches = searches.then(search); };

// --- Files

function save(blob, name) {
  const link = make("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

byId("download").onclick = () => {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const lines = selected.map((row) => names[row]).sort(compare).join("\n") + "\n";
  save(new Blob([lines], { type: "text/plain" }), "selected.txt");
};

byId("picture").onclick = () => {
  const map = byId("map"), scale = map.width / map.clientWidth, wide = 240, top = 34;
  const levels = (shown.levels ?? []).map((level, code) => [level, shown.colors[code]])
    .filter((_, code) => !hiddenLevels.has(code));
  const picture = make("canvas", "", { width: map.width + wide * scale,
    height: Math.max(map.height, (70 + 18 * levels.length) * scale) + top * scale });
  const pen = picture.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = back;
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.drawImage(map, 0, top, map.clientWidth, map.clientHeight);
  const write = (text, x, y, font, align = "left", color = ink) => {
    Object.assign(pen, { font: `${font} system-ui, sans-serif`, textAlign: align, textBaseline: "middle" });
    Object.assign(pen, { strokeStyle: back, lineWidth: 4, lineJoin: "round" });
    pen.strokeText(text, x, y);
    pen.fillStyle = color;
    pen.fillText(text, x, y);
  };
  write(page.title, 12, top / 2, "600 15px");
  if (!byId("labels").hidden) {
    for (const { text, at: [x, y], isFree } of labels) {
      if (isFree && x >= 0 && x < map.clientWidth && y >= 0 && y < map.clientHeight) write(text, x, y + top, "600 13px", "center");
    }
  }
  const left = map.clientWidth + 12;
  write(shown.name, left, top + 12, "600 13px");
  levels.forEach(([level, color], i) => {
    pen.fillStyle = color;
    pen.beginPath();
    pen.arc(left + 6, top + 36 + 18 * i, 5, 0, 7);
    pen.fill();
    write(level.length > 32 ? `${level.slice(0, 31)}…` : level, left + 18, top + 36 + 18 * i, "12px");
  });
  if (!shown.levels) {
    const shades = pen.createLinearGradient(left, 0, left + 200, 0);
    page.shades.forEach((color, i) => shades.addColorStop(i / (page.shades.length - 1), color));
    pen.fillStyle = shades;
    pen.fillRect(left, top + 28, 200, 12);
    write(numberText(shown.limits[0], 15), left, top + 52, "12px");
    write(numberText(shown.limits[1], 15), left + 200, top + 52, "12px", "right");
  }
  picture.toBlob((blob) => save(blob, "map.png"));
};

// --- The dot plot: genes of all groups, by the size and colour of dots

const svg = (tag, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

// Mean of the known values, and share of all points above 0, of each group.
function summarize({ codes, values }) {
  const sums = groups.levels.map(() => ({ n: 0, known: 0, sum: 0, above: 0 }));
  groups.codes.forEach((code, row) => {
    if (code === MISSING || row < firstKnown) return;
    const one = sums[code];
    one.n += 1;
    if (codes[row] === MISSING) return;
    one.known += 1;
    one.sum += values[row];
    one.above += values[row] > 0;
  });
  return sums.map(({ n: all, known, sum, above }) => ({ mean: known ? sum / known : NaN, share: all ? above / all : 0 }));
}

function drawDots() {
  const typed = byId("dot-genes").value.split(/[\s,;]+/).filter(Boolean);
  const wanted = [...new Set(typed.map((name) => geneOf.get(name) ?? geneOf.get(name.toLowerCase())))];
  const absent = typed.filter((name) => !geneOf.has(name) && !geneOf.has(name.toLowerCase()));
  const indices = wanted.filter((i) => i !== undefined).slice(0, MAX_DOTS);
  const about = `Size: share of the points above 0. Colour: mean, from a gene's lowest group to its highest. ${page.unit}${partly && ` Of ${commas(n - firstKnown)} points.`}`;
  byId("dots-note").textContent = absent.length ? `Not on this page: ${absent.slice(0, 5).join(", ")}. ${about}` : about;
  const longest = Math.max(...groups.levels.map((level) => Math.min(level.length, 30)));
  const left = 12 + 7 * longest, top = 92, step = 22;
  const height = top + step * groups.levels.length + 12, width = left + step * indices.length + 130;
  const made = svg("svg", { width, height, role: "img", "aria-label": `Dot plot of ${indices.length} genes in ${groups.levels.length} groups`, xmlns: "http://www.w3.org/2000/svg", color: ink });
  const center = (i, j) => [left + step * (j + 0.5), top + step * (i + 0.5)];
  groups.levels.forEach((level, i) => {
    const text = level.length > 30 ? `${level.slice(0, 29)}…` : level;
    made.append(svg("text", { x: left - 8, y: center(i, 0)[1] + 4, "text-anchor": "end" }, text));
  });
  indices.forEach((index, j) => {
    const gene = geneColumn(index), groupsOf = summarize(gene);
    const means = groupsOf.map((one) => one.mean).filter(Number.isFinite);
    const low = Math.min(...means), high = Math.max(...means), [x] = center(0, j);
    const title = svg("text", { x: 0, y: 0, transform: `translate(${x + 4} ${top - 8}) rotate(-60)`, tabindex: 0, role: "button", "aria-label": `Colour by ${gene.name}` }, gene.name);
    title.onclick = () => { byId("dots").close(); choose(gene); };
    title.onkeydown = (event) => { if (event.key === "Enter") title.onclick(); };
    made.append(title);
    groupsOf.forEach(({ mean, share }, i) => {
      const [cx, cy] = center(i, j), shade = high > low ? (mean - low) / (high - low) : 0;
      const dot = svg("circle", { cx, cy, r: 1 + 8.5 * Math.sqrt(share), fill: Number.isFinite(mean) ? page.shades[Math.round(shade * 255)] : grey });
      dot.append(svg("title", {}, `${gene.name} in ${groups.levels[i]}: mean ${numberText(mean)}, ${percent(share)} above 0`));
      made.append(dot);
    });
  });
  const right = left + step * indices.length + 24;
  [0.25, 0.5, 1].forEach((share, i) => {
    const cy = top + 12 + 24 * i;
    made.append(svg("circle", { cx: right, cy, r: 1 + 8.5 * Math.sqrt(share), fill: "#8a8a92" }),
      svg("text", { x: right + 16, y: cy + 4 }, percent(share)));
  });
  for (let i = 0; i < 64; i++) {
    made.append(svg("rect", { x: right - 9 + i, y: top + 84, width: 1.5, height: 10, fill: page.shades[i * 4] }));
  }
  ["lowest", "highest"].forEach((word, i) => made.append(
    svg("text", { x: right - 9 + 64 * i, y: top + 108, "text-anchor": i ? "middle" : "start" }, word)));
  byId("plot").replaceChildren(made);
}

if (groups && geneNames.length) {
  byId("dotplot").hidden = false;
  const leading = groups.levels.flatMap((level) => (page.markers[level] ?? []).filter((gene) => geneOf.has(gene)).slice(0, 2));
  byId("dot-genes").value = [...new Set(leading.length ? leading : geneNames.slice(0, 10))].slice(0, MAX_DOTS).join(", ");
  byId("dotplot").onclick = () => { byId("dots").showModal(); drawDots(); };
  byId("dot-genes").onchange = drawDots;
  byId("close-dots").onclick = () => byId("dots").close();
  byId("save-dots").onclick = () => {
    const kept = byId("plot").firstChild.cloneNode(true);
    kept.prepend(svg("style", {}, `text{font:12px sans-serif;fill:${ink}}`), svg("rect", { width: "100%", height: "100%", fill: back }));
    save(new Blob([kept.outerHTML], { type: "image/svg+xml" }), "dot_plot.svg");
  };
}

// --- The card of the point under the mouse

plot.subscribe("pointOver", (row) => {
  const card = byId("card"), [x, y] = plot.getScreenPosition(row);
  const lines = [...columns, ...(columns.includes(shown) ? [] : [shown])]
    .map((one) => [one.name, written(one, row)]);
  card.replaceChildren(make("b", names[row]), table(lines), make("span", texts[row].slice(0, 240)));
  card.style.display = "block";
  const { width, height } = byId("map").getBoundingClientRect();
  card.style.left = `${Math.min(x + 16, width - card.offsetWidth - 8)}px`;
  card.style.top = `${Math.min(y + 16, height - card.offsetHeight - 8)}px`;
});
plot.subscribe("pointOut", () => { byId("card").style.display = "none"; });

// --- The run: frames of every few points, then the map again

if (page.frames.length) {
  const frames = page.frames.map(placed);
  byId("play").hidden = false;
  byId("play").onclick = async () => {
    byId("play").disabled = isPlaying = true;
    select([]);
    const values = valuesOf(shown).filter((_, row) => row % page.frame_step === 0);
    for (const frame of frames) {
      await draw(frame, values);
      await new Promise((done) => setTimeout(done, 100));
    }
    isPlaying = false;
    await colorBy(shown);
    byId("play").disabled = false;
  };
}

// --- Begin

byId("title").textContent = page.title;
const some = page.genes.n_all ? ` · ${commas(geneNames.length)} of ${commas(page.genes.n_all)} genes` : "";
const megabytes = byId("payload").textContent.length / 1e6;
byId("size").textContent = `${commas(n)} points${some} · ${megabytes < 0.1 ? "<0.1" : megabytes.toFixed(1)} MB`;
const [figures, sentence] = page.trust, trust = byId("trust").children;
trust[0].textContent = figures;
byId("trust").querySelector("span").textContent = sentence;
byId("trust").classList.toggle("doubt", page.is_doubtful);
const misplaced = columns.find((column) => column.name === page.misplaced);
byId("misplaced").hidden = !misplaced?.counts[0];
byId("misplaced").onclick = () => choose(misplaced);

await readView();
document.body.dataset.ready = "yes";
})();
