// Small helpers: elements, numbers, and how a series looks.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element. Strings among the children become text, never markup. */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A number as a person reads it: three digits that count, a true minus sign. */
function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) text = value.toExponential(1);
  else if (size >= 1000) text = value.toFixed(0);
  else if (size >= 100) text = value.toFixed(1);
  else text = size >= 10 ? value.toFixed(2) : value.toFixed(digits);
  return text.replace(/-/g, "−");
}

function signed(value, digits = 3) {
  return (value > 0 ? "+" : "") + number(value, digits);
}

function count(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2"];

function seriesClass(group) {
  return `s${group % DASHES.length}`;
}

/** The eighth group has the first one's colour, and another dash. */
function dash(group) {
  return DASHES[(group + Math.floor(group / DASHES.length)) % DASHES.length] || null;
}

/** The line of a group as it is drawn in charts, with its name. */
function seriesKey(group) {
  const line = svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, class: "curve", "stroke-dasharray": dash(group) });
  const sample = svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, line);
  const words = data.groups[group].label.split(/(?<==)/).flatMap((part) => [part, el("wbr")]); // a line may end behind =
  return el("span", { class: `key ${seriesClass(group)}` }, sample, el("span", {}, words));
}

/** Buttons of which one is pressed. */
function choice(name, options, chosen, onchoose) {
  const buttons = options.map((option) =>
    el("button", {
      type: "button",
      "aria-pressed": String(option === chosen),
      onclick: () => {
        buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(options[index] === option)));
        onchoose(option);
      },
    }, option));
  return el("span", { class: "choice", role: "group", "aria-label": name }, buttons);
}

function table(heads, rows, attributes = {}) {
  const cell = (tag) => (content, index) =>
    content instanceof HTMLTableCellElement ? content : el(tag, { class: index === 0 ? "l" : null }, content);
  const head = el("thead", {}, el("tr", {}, heads.map(cell("th"))));
  const body = el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))));
  return el("div", { class: "scroll" }, el("table", attributes, head, body));
}

function section(id, title, lead, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), el("p", { class: "lead" }, lead), children);
}

function empty(...children) {
  return el("p", { class: "empty" }, children);
}

/** About `wanted` round values that cover low to high. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}
