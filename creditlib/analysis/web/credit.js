// The viewer: one response at a time, each token coloured by its advantage.

// Colour-blind safe. Full colour stands for FULL times an even share of the response's largest advantage.
const ORANGE = [213, 94, 0];
const BLUE = [0, 114, 178];
const STRONGEST = 0.6; // opacity at full colour; text stays readable on it in light and dark
const FULL = 3;
const ALL = -1; // instead of a reward's index: the final advantage

// `panel` is the text that a narrow screen shows, which has no room for two.
const now = { response: 0, reward: ALL, token: null, inText: false, panel: "own", unpacked: null };
const parts = {}; // the elements that a change of response or reward rewrites

/** The numbers of a response: float32, little endian, one row of T after the other. */
function unpack(response) {
  const bytes = Uint8Array.from(atob(response.numbers), (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const T = response.pieces.length;
  let row = 0;
  const next = () => {
    const start = 4 * T * row++;
    return Float32Array.from({ length: T }, (_, t) => view.getFloat32(start + 4 * t, true));
  };
  const logp = next();
  const advantage = next();
  const rewards = response.rewards.map(() => ({ relevance: next(), weight: next(), advantage: next() }));
  const largest = Math.max(...response.rewards.map((reward) => Math.abs(reward.advantage)));
  // What a method adds belongs to no reward; without one, only the same rest is left for every token.
  const added = advantage.map((value, t) => value - rewards.reduce((sum, reward) => sum + (reward.advantage[t] || 0), 0));
  const mean = advantage.reduce((sum, value) => sum + Math.abs(value), 0) / Math.max(1, T);
  const adds = Math.max(...added) - Math.min(...added) > 1e-4 * (mean + 1e-6);
  const even = !adds && largest > 0 && rewards.every((reward, k) => response.rewards[k].advantage === 0 || reward.weight.every((weight) => weight === 1));
  // The rewards share a scale, so that they can be compared; their sum has its own.
  const full = (k) => FULL * (k === ALL ? Math.max(largest, Math.abs(response.advantage), adds ? mean : 0) : largest);
  const replayed = rewards.map((reward, k) => response.rewards[k].measure === "distance" && reward.relevance.some((value) => !Number.isNaN(value)));
  return { logp, advantage, rewards, full, even, replayed, added: adds ? added : null };
}

/** How strongly a token is marked, 0 to 1. */
function strength(advantage, full) {
  return full > 0 ? Math.min(1, Math.abs(advantage) / full) : 0;
}

/** Colour and line of an advantage: orange and underlined, or blue and overlined, the thicker the more. */
function mark(node, advantage, full) {
  const share = strength(advantage, full);
  const [r, g, b] = advantage > 0 ? ORANGE : BLUE;
  node.style.backgroundColor = share > 0 ? `rgba(${r}, ${g}, ${b}, ${(STRONGEST * share).toFixed(4)})` : "";
  const thickness = share > 0.02 ? Math.ceil(share * 3 - 0.01) : 0; // even shares, a third, are 1 pixel
  const side = advantage > 0 ? "underline" : "overline";
  node.style.textDecoration = thickness ? `${side} ${thickness}px var(${advantage > 0 ? "--orange" : "--blue"})` : "";
}

function creditViewer() {
  const lead = "Each token's share of an advantage, and what a method adds to it. Orange and underlined: made more likely. Blue and overlined: made less likely. " +
    "The stronger and thicker, the more. ⟨ ⟩ enclose what the verifier read. A is the whole response's advantage, which uniform credit gives to each token.";
  if (!data.responses.length) {
    return section("credit", "Where the credit went", lead,
      empty("No token ledger in these runs. A run writes one where ", el("code", {}, "ledger.steps"), " is above 0, from its first logged step on."));
  }
  parts.jump = el("select", { "aria-label": "response", onchange: (event) => showResponse(Number(event.target.value)) },
    data.responses.map((response, index) => el("option", { value: index }, responseName(response))));
  parts.place = el("span", {});
  parts.meta = el("p", { class: "meta" });
  parts.question = el("pre", { class: "question", tabindex: 0, role: "group", "aria-label": "question" });
  parts.rewards = el("div", { class: "rewards", role: "group", "aria-label": "reward" });
  parts.legend = el("div", { class: "legend" });
  parts.readout = el("div", { class: "readout", "aria-live": "polite" });
  parts.panels = el("div", { class: "panels" });
  parts.made = el("div", {});
  parts.told = el("div", {});
  parts.root = el("div", { class: "viewer" },
    el("div", { class: "toolbar" },
      el("button", { type: "button", "aria-label": "previous response", onclick: () => showResponse(now.response - 1) }, "←"),
      el("button", { type: "button", "aria-label": "next response", onclick: () => showResponse(now.response + 1) }, "→"),
      parts.place, parts.jump),
    parts.meta,
    parts.question,
    el("div", { class: "sides" }, parts.rewards,
      el("div", {}, el("div", { class: "head" }, parts.legend, parts.readout), parts.panels, parts.made, parts.told)),
    el("p", { class: "keys" }, el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " response   ",
      el("kbd", {}, "1"), " … ", el("kbd", {}, "9"), " reward   ", el("kbd", {}, "0"), " all   ",
      el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " next and previous reward   ",
      el("kbd", {}, "Tab"), " through rewards and into the text, where ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " go from token to token and ",
      el("kbd", {}, "Esc"), " back"));
  parts.panels.addEventListener("pointerover", (event) => pick(event.target));
  document.addEventListener("keydown", onKey);
  return section("credit", "Where the credit went", lead, parts.root);
}

function responseName(response) {
  const verdicts = response.rewards.filter(applies).slice(0, 13).map(verdict).join("");
  return `step ${response.step} · ${verdicts} · ${response.prompt} #${response.index} · ${response.run}`;
}

function applies(reward) {
  return reward.score !== null;
}

/** Satisfied, violated, or something between. */
function verdict({ score, best }) {
  if (best === null) return ""; // a reward model's score has no best
  if (score > best - 1e-6) return "✓"; // scores are float32
  return score <= 0 ? "✗" : "~";
}

function showResponse(index) {
  now.response = (index + data.responses.length) % data.responses.length;
  const response = data.responses[now.response];
  now.unpacked = unpack(response);
  if (now.reward !== ALL && !(response.rewards[now.reward] && applies(response.rewards[now.reward]))) now.reward = ALL;
  parts.jump.value = String(now.response);
  parts.place.textContent = `${now.response + 1} of ${data.responses.length}`;
  const ending = response.finish === "length" ? "cut off at the length limit" : "ended by itself";
  parts.meta.replaceChildren(seriesKey(response.group),
    ` · ${response.run} · step ${response.step} · ${response.prompt} #${response.index} · ${count(response.pieces.length, "token")}, ${ending}`);
  parts.question.textContent = response.question;
  parts.question.scrollTop = parts.question.scrollHeight; // what is asked mostly stands at the end
  listRewards(response);
  showReward(now.reward);
}

function listRewards(response) {
  const shown = response.rewards.map((reward, k) => ({ reward, k })).filter(({ reward }) => applies(reward));
  const hidden = response.rewards.length - shown.length;
  const rows = shown.map(({ reward, k }, place) => rewardButton(k, place < 9 ? String(place + 1) : "", reward));
  const total = { name: "all rewards", kind: "all rewards", score: null, flags: [], advantage: response.advantage, reason: "final advantage, as it is in the loss" };
  parts.rewards.classList.toggle("many", shown.length > 5);
  parts.rewards.replaceChildren(rewardButton(ALL, "0", total), ...rows, ...(hidden ? [el("p", { class: "note" }, `${count(hidden, "reward")} more do not apply here`)] : []));
}

function rewardButton(k, key, reward) {
  const { advantage, full } = now.unpacked;
  const values = k === ALL ? advantage : now.unpacked.rewards[k].advantage;
  const digits = Number.isInteger(reward.score) ? 0 : 2;
  const score = reward.score === null ? "" : `${verdict(reward)} ${number(reward.score, digits)}`;
  const reason = [reward.reason, ...reward.flags].filter(Boolean).join(" · ");
  return el("button", { type: "button", "data-k": k, onclick: () => showReward(k), onfocus: () => keyboard && showReward(k) },
    el("span", { class: "top" }, key ? el("kbd", {}, key) : null, el("span", { class: "name" }, rewardName(reward)),
      el("span", { class: "num" }, score, el("span", { class: "soft" }, "A "), signed(reward.advantage, 2))),
    strip(values, full(k), reward.read), el("span", { class: "reason" }, reason || "no reason given"));
}

/** In instruction following a reward is a slot, and its kind says which constraint it is here. */
function rewardName(reward) {
  return reward.kind === reward.name ? reward.name : `${reward.name} ${reward.kind}`;
}

/** The response as one line: bars up are reinforced tokens, bars down suppressed ones, a line what was read. */
const MIDDLE = 13; // of a strip's height
function strip(values, full, read) {
  const T = values.length;
  let up = "";
  let down = "";
  values.forEach((value, t) => {
    const height = strength(value, full) * MIDDLE;
    if (height < 0.15) return;
    if (value > 0) up += `M${t} ${MIDDLE}v${-height}h1v${height}z`;
    else down += `M${t} ${MIDDLE}v${height}h1v${-height}z`;
  });
  const spans = (read ?? []).map(([start, end]) => svg("line", { class: "saw", x1: start, x2: end, y1: 2 * MIDDLE - 1, y2: 2 * MIDDLE - 1, "vector-effect": "non-scaling-stroke" }));
  return svg("svg", { viewBox: `0 0 ${T} ${2 * MIDDLE}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "axis", x1: 0, x2: T, y1: MIDDLE, y2: MIDDLE, "vector-effect": "non-scaling-stroke" }),
    svg("path", { class: "up", d: up }), svg("path", { class: "down", d: down }), spans);
}

function showReward(k) {
  now.reward = k;
  now.token = null;
  for (const button of parts.rewards.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.k) === k));
  const response = data.responses[now.response];
  const { full, even } = now.unpacked;
  const values = k === ALL ? now.unpacked.advantage : now.unpacked.rewards[k].advantage;
  const whole = k === ALL ? response.advantage : response.rewards[k].advantage;
  const read = k === ALL ? null : response.rewards[k].read;
  const method = data.groups[response.group].credit;
  const own = textPanel("own", even ? `${method}: an even share for each token` : method, response, values, read);
  if (even) {
    parts.panels.replaceChildren(own);
  } else {
    const uniform = textPanel("even", "uniform credit", response, values.map(() => whole), read);
    const kinds = { [method]: "own", "uniform credit": "even" };
    const names = Object.keys(kinds);
    const chosen = names.find((name) => kinds[name] === now.panel);
    const pickPanel = choice("credit", names, chosen, (name) => {
      now.panel = kinds[name];
      parts.panels.dataset.show = now.panel;
    });
    parts.panels.replaceChildren(el("div", { class: "narrow" }, pickPanel), own, uniform);
  }
  parts.panels.dataset.show = even ? "own" : now.panel;
  parts.made.replaceChildren(...madeOf(response, k));
  const told = response.rewards.filter((reward, index) => (k === ALL || k === index) && reward.information && now.unpacked.replayed[index]);
  parts.told.replaceChildren(...(told.length ? [el("details", { class: "more" }, el("summary", {}, "What replays told of the verifiers"),
    told.map((reward) => el("div", {}, el("h3", {}, rewardName(reward)), el("pre", { class: "told" }, reward.information))))] : []));
  drawLegend(full(k));
  showToken(null);
}

/** What a reward's weights were made of, as a strip of bars on its own scale. */
function madeOf(response, k) {
  const { measure, read } = k === ALL ? {} : response.rewards[k];
  const values = measure ? now.unpacked.rewards[k].relevance : [];
  const known = [...values].filter((value) => !Number.isNaN(value));
  if (!known.length) return [];
  const most = Math.max(...known.map(Math.abs));
  return [el("div", { class: "made" }, el("h3", {}, `${measure} of each token, up to ${number(most, 4)}`),
    strip([...values].map((value) => value || 0), most, read))];
}

function textPanel(kind, title, response, values, read) {
  const full = now.unpacked.full(now.reward);
  const text = el("div", { class: "text", tabindex: 0, role: "group", "aria-label": `response, ${title}`, "data-kind": kind });
  const starts = new Set((read ?? []).map(([start]) => start));
  const ends = new Set((read ?? []).map(([, end]) => end - 1));
  response.pieces.forEach((piece, t) => {
    const node = el("span", { class: `t${starts.has(t) ? " from" : ""}${ends.has(t) ? " to" : ""}`, "data-t": t }, ...glyphs(piece));
    mark(node, values[t], full);
    text.append(node);
  });
  return el("div", { class: `panel ${kind}` }, el("h3", {}, title), text);
}

/** A token's text, with a sign where there would be nothing to see: a line's end, or a token without text. */
function glyphs(piece) {
  if (piece === "") return [el("span", { class: "sign" }, "▪")];
  return piece.split(/(\n)/).filter(Boolean).map((text) => (text === "\n" ? [el("span", { class: "sign" }, "↵"), "\n"] : text)).flat();
}

function drawLegend(full) {
  if (!full) {
    parts.legend.replaceChildren("No reward has an advantage here: all responses to this question earned the same.");
    return;
  }
  const samples = [-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1].map((share) => {
    const edge = Math.abs(share) === 1 ? (share > 0 ? "≥ " : "≤ ") : "";
    const sample = el("span", {}, edge + signed(share * full, 2));
    mark(sample, share * full, full);
    return sample;
  });
  parts.legend.replaceChildren("token advantage", el("span", { class: "scale", "data-full": full }, samples));
}

function pick(target) {
  const node = target.closest?.("[data-t]");
  if (node) showToken(Number(node.dataset.t));
}

/** Before a token is picked: the ones that got most. */
function mostCredit() {
  const response = data.responses[now.response];
  const values = now.reward === ALL ? now.unpacked.advantage : now.unpacked.rewards[now.reward].advantage;
  const order = [...values.keys()].filter((t) => values[t] !== 0).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const hint = el("span", { class: "hint" }, matchMedia("(hover: none)").matches ? "Tap a token for its numbers." : "Point at a token for its numbers.");
  if (now.unpacked.even || !order.length) return [hint];
  const most = order.slice(0, 5).map((t) =>
    el("span", {}, el("span", { class: "token" }, shown(response, t)), " ", el("b", {}, signed(values[t], 2))));
  return [el("span", { class: "soft" }, "most:"), ...most, hint];
}

function shown(response, t) {
  return (response.tokens[t] ?? response.pieces[t]).replaceAll("\n", "↵").trim() || "␣";
}

function showToken(t) {
  for (const node of parts.panels.querySelectorAll(".current")) node.classList.remove("current");
  now.token = t;
  if (t === null) {
    parts.readout.replaceChildren(...mostCredit());
    return;
  }
  for (const node of parts.panels.querySelectorAll(`[data-t="${t}"]`)) node.classList.add("current");
  const response = data.responses[now.response];
  const { logp, advantage, rewards } = now.unpacked;
  const entry = (name, value) => el("dl", {}, el("dt", {}, `${name} `), el("dd", {}, el("b", {}, value)));
  const lines = [
    el("span", { class: "token" }, JSON.stringify(response.tokens[t] ?? response.pieces[t])),
    entry("token", `${t + 1} of ${response.pieces.length}`),
    response.parts[t] ? entry("part", response.parts[t]) : null,
    entry("logp", number(logp[t])),
  ];
  if (now.reward === ALL) {
    lines.push(entry("advantage", signed(advantage[t])), entry("uniform", signed(response.advantage)));
    response.rewards.forEach((reward, k) => applies(reward) && lines.push(entry(rewardName(reward), signed(rewards[k].advantage[t]))));
    if (now.unpacked.added) lines.push(entry("added", signed(now.unpacked.added[t])));
  } else {
    const { relevance, weight, advantage: share } = rewards[now.reward];
    const { measure, temperature } = response.rewards[now.reward];
    if (measure) lines.push(entry(measure, number(relevance[t], 4)));
    lines.push(entry("weight", number(weight[t])), entry("advantage", signed(share[t])),
      entry("uniform", signed(response.rewards[now.reward].advantage)), entry("all rewards", signed(advantage[t])));
    if (temperature !== null) lines.push(entry("temperature", number(temperature, 3)));
  }
  parts.readout.replaceChildren(...lines.filter(Boolean));
}

let keyboard = false; // was the last thing a key? Focus that comes with a click does not enter the text

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !inView()) return;
  const focus = document.activeElement;
  if (focus.matches("select, input, textarea")) return;
  const inText = focus.matches(".text") && now.inText;
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const places = [...parts.rewards.querySelectorAll("button")].map((button) => Number(button.dataset.k));
  const place = places.indexOf(now.reward);
  if (direction && inText) {
    const last = data.responses[now.response].pieces.length - 1;
    showToken(now.token === null ? 0 : Math.min(last, Math.max(0, now.token + direction)));
    parts.panels.querySelector(".current").scrollIntoView({ block: "nearest" });
  } else if (direction) {
    showResponse(now.response + direction);
  } else if (event.key === "Escape" && inText) {
    parts.rewards.querySelector('[aria-pressed="true"]').focus();
  } else if (/^[0-9]$/.test(event.key) && Number(event.key) < Math.min(10, places.length)) {
    showReward(places[Number(event.key)]);
  } else if (event.key === "j" || event.key === "k") {
    const step = event.key === "j" ? 1 : -1;
    showReward(places[(place + step + places.length) % places.length]);
  } else {
    return;
  }
  event.preventDefault();
}

/** Keys work while the viewer is on the screen, or holds the focus. */
function inView() {
  const box = parts.root.getBoundingClientRect();
  return parts.root.contains(document.activeElement) || (box.top < window.innerHeight && box.bottom > 0);
}
