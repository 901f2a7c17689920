// Line charts: curves of the groups over the steps, with a crosshair that all charts share.

const HEIGHT = 158;
const EDGE = { top: 8, bottom: 20, left: 40 };
const charts = [];
const view = { median: false };

function lineChart(chart) {
  const figure = el("div", { class: "chart" }, el("h3", {}, chart.title), el("p", {}, chart.meaning));
  const drawing = svg("svg", { role: "img", "aria-label": describe(chart) });
  const tip = el("div", { class: "tip", hidden: true });
  figure.append(drawing, tip);
  const own = { chart, figure, drawing, tip, scale: null };
  charts.push(own);
  drawing.addEventListener("pointermove", (event) => pointAt(own, event));
  drawing.addEventListener("pointerleave", () => charts.forEach(clearCross));
  return figure;
}

function describe(chart) {
  const ends = chart.series.filter((series) => series.role === "value").map((series) => {
    const last = series.mean.filter((value) => value !== null).at(-1);
    return `${data.groups[series.group].label} ends at ${number(last)}`;
  });
  return `${chart.title}: ${ends.join(", ")}`;
}

function drawChart(own) {
  const width = own.figure.clientWidth;
  if (!width) return;
  const { chart, drawing } = own;
  const [middle, low, high] = view.median ? ["median", "lower", "upper"] : ["mean", "low", "high"];
  const shown = chart.series;
  // Names at the ends of lines where they are short; the key above the charts has them all.
  const longest = Math.max(...data.groups.map((group) => group.label.length));
  const named = data.groups.length > 1;
  const labels = named && longest > 14 ? []
    : shown.filter((series) => series.role === "value").map((series) => endLabel(series, middle, named));
  const right = Math.max(22, 10 + Math.max(0, ...labels.map((label) => label.text.length)) * 6.3); // 22: half of the last tick
  const steps = shown.flatMap((series) => [series.steps[0], series.steps.at(-1)]);
  const first = Math.min(...steps);
  const last = Math.max(...steps, first + 1);
  const values = shown.flatMap((series) => [...series[low], ...series[high], ...(series.raw ?? [])]).filter((value) => value !== null);
  const [bottom, top] = domain(values, chart.bounds);
  const x = (step) => EDGE.left + ((step - first) / (last - first)) * (width - EDGE.left - right);
  const y = (value) => HEIGHT - EDGE.bottom - ((value - bottom) / (top - bottom)) * (HEIGHT - EDGE.bottom - EDGE.top);
  own.scale = { x, y, first, last, middle, low, high };
  drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  drawing.replaceChildren();
  for (const value of ticks(bottom, top, 4)) {
    drawing.append(
      svg("line", { class: "grid", x1: EDGE.left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value)));
  }
  drawing.append(svg("line", { class: "base", x1: EDGE.left, x2: width - right, y1: y(bottom), y2: y(bottom) }));
  const stepTicks = ticks(first, last, Math.max(2, Math.floor(width / 90))).filter(Number.isInteger);
  stepTicks.forEach((step, index) =>
    drawing.append(svg("text", { x: x(step), y: HEIGHT - 5, "text-anchor": "middle" }, index === stepTicks.length - 1 ? `step ${step}` : step)));
  for (const series of shown) drawSeries(drawing, series, own.scale);
  if (data.groups.length <= 5) placeLabels(drawing, labels, y, width - right + 5);
  drawing.append(svg("g", { class: "cross-marks" }));
}

function drawSeries(drawing, series, { x, y, middle, low, high }) {
  const group = svg("g", { class: seriesClass(series.group) });
  drawing.append(group);
  if (series.role === "floor") {
    group.append(svg("path", { class: "floor", d: path(series.steps, series.mean, x, y) }));
    return;
  }
  const several = Math.max(...series.runs) > 1;
  if (several) {
    const there = series.steps.map((step, i) => (series[low][i] === null ? null : `${x(step).toFixed(1)} ${y(series[high][i]).toFixed(1)}`));
    const back = series.steps.map((step, i) => (series[low][i] === null ? null : `${x(step).toFixed(1)} ${y(series[low][i]).toFixed(1)}`)).reverse();
    group.append(svg("path", { class: "band", d: `M${[...there, ...back].filter((point) => point).join("L")}Z` }));
  } else if (series.raw) {
    group.append(svg("path", { class: "raw", d: path(series.steps, series.raw, x, y) }));
  }
  group.append(svg("path", { class: "curve", d: path(series.steps, series[middle], x, y), "stroke-dasharray": dash(series.group) }));
  if (series.steps.length === 1) group.append(svg("circle", { class: "dot", cx: x(series.steps[0]), cy: y(series[middle][0]), r: 3.5 }));
}

/** At the end of its line stands a group's name or, where there is one group, its value. */
function endLabel(series, middle, named) {
  const value = series[middle].filter((known) => known !== null).at(-1);
  return { group: series.group, value, text: named ? data.groups[series.group].label : number(value) };
}

function placeLabels(drawing, labels, y, left) {
  const placed = labels.map((label) => ({ ...label, at: y(label.value) })).sort((a, b) => a.at - b.at);
  for (let i = 1; i < placed.length; i++) placed[i].at = Math.max(placed[i].at, placed[i - 1].at + 12);
  const over = placed.length ? Math.max(0, placed.at(-1).at - (HEIGHT - EDGE.bottom)) : 0;
  for (const label of placed) {
    drawing.append(svg("text", { class: `end ${seriesClass(label.group)}`, x: left, y: label.at - over + 4 }, label.text));
  }
}

function path(steps, values, x, y) {
  let d = "";
  let pen = "M";
  steps.forEach((step, i) => {
    if (values[i] === null) {
      pen = "M";
    } else {
      d += `${pen}${x(step).toFixed(1)} ${y(values[i]).toFixed(1)}`;
      pen = "L";
    }
  });
  return d;
}

function domain(values, [floor, ceiling]) {
  let low = values.length ? Math.min(...values) : 0;
  let high = values.length ? Math.max(...values) : 1;
  if (floor !== null) low = floor;
  if (ceiling !== null) high = ceiling;
  if (high - low < 1e-9 * Math.max(1, Math.abs(high))) {
    const room = Math.abs(high) / 2 || 1;
    if (floor === null) low -= room;
    high += room;
  }
  const room = (high - low) * 0.05;
  return [floor === null ? low - room : low, ceiling === null ? high + room : high];
}

function tickText(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  const text = size < 1e-3 || size >= 1e5 ? value.toExponential() : String(Number(value.toPrecision(4)));
  return text.replace(/-/g, "−").replace("e+", "e");
}

function pointAt(own, event) {
  if (!own.scale) return;
  const box = own.drawing.getBoundingClientRect();
  const { x, first, last } = own.scale;
  const share = (event.clientX - box.left - x(first)) / (x(last) - x(first));
  const step = Math.round(first + Math.min(1, Math.max(0, share)) * (last - first));
  charts.forEach((other) => cross(other, step, other === own));
}

function cross(own, step, withTip) {
  clearCross(own);
  if (!own.scale || step < own.scale.first || step > own.scale.last) return;
  const { x, y, middle, low, high } = own.scale;
  const marks = own.drawing.lastChild;
  marks.append(svg("line", { class: "cross", x1: x(step), x2: x(step), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }));
  const lines = [el("b", {}, `step ${step}`)];
  for (const series of own.chart.series) {
    const i = nearest(series.steps, step);
    const value = series[middle][i];
    if (value === null || series.steps[i] !== step) continue;
    if (series.role === "value") marks.append(svg("circle", { class: `dot ${seriesClass(series.group)}`, cx: x(step), cy: y(value), r: 3.5 }));
    const spread = series.runs[i] > 1 ? ` (${number(series[low][i])} to ${number(series[high][i])}, ${count(series.runs[i], "run")})` : "";
    const name = series.role === "floor" ? "noise floor" : data.groups[series.group].label;
    lines.push(el("div", { class: seriesClass(series.group) }, `${name} ${number(value)}${spread}`));
  }
  if (!withTip) return;
  own.tip.replaceChildren(...lines);
  own.tip.hidden = false;
  const width = own.figure.clientWidth;
  const left = Math.min(Math.max(0, x(step) + 10), Math.max(0, width - own.tip.offsetWidth));
  own.tip.style.left = `${left}px`;
  own.tip.style.top = `${own.drawing.offsetTop + HEIGHT}px`;
}

function clearCross(own) {
  own.tip.hidden = true;
  if (own.scale) own.drawing.lastChild.replaceChildren();
}

function nearest(steps, step) {
  let best = 0;
  for (let i = 1; i < steps.length; i++) if (Math.abs(steps[i] - step) < Math.abs(steps[best] - step)) best = i;
  return best;
}

/** Charts are drawn when they have a width: at first, after a resize, and when a closed part is opened. */
function watchCharts() {
  const observer = new ResizeObserver((entries) => {
    for (const entry of entries) drawChart(charts.find((own) => own.figure === entry.target));
  });
  charts.forEach((own) => observer.observe(own.figure));
}

/** The charts of a section; those beyond the first dozen are there when asked for. */
function chartGrid(name, most = 12) {
  const found = data.sections.find((own) => own.name === name).charts.map(lineChart);
  if (!found.length) return null;
  const more = found.slice(most);
  return el("div", {}, el("div", { class: "charts" }, found.slice(0, most)),
    more.length ? el("details", { class: "more" }, el("summary", {}, `${more.length} more`), el("div", { class: "charts" }, more)) : null);
}
