// What is not a curve: the runs, held-out results, where a reward's distance lies, seconds.

function overview() {
  const names = [...new Set(data.groups.flatMap((group) => Object.keys(group.rewards)))];
  const shown = names.length <= 6 ? names : [];
  const rows = data.groups.map((group, index) => [
    el("th", { class: "l", scope: "row" }, seriesKey(index), el("span", { class: "note" }, group.seeds)),
    ...shown.map((name) => number(group.rewards[name])),
    el("td", { class: "l wide" }, states(group)),
  ]);
  const narrow = data.groups.map((group, index) => el("div", { class: "narrow" }, data.groups.length > 1 ? seriesKey(index) : null, states(group)));
  return section("runs", "Runs", `Runs that differ only in the seed are one curve. Rewards are the last trailing means over ${count(data.window, "step")}.`,
    table([el("th", { class: "l" }, "curve"), ...shown, el("th", { class: "l wide" }, "runs")], rows), narrow,
    data.notes.map((note) => el("p", { class: "note" }, note)));
}

/** The states of a group's runs; finished ones of the same length share a line. */
function states(group) {
  const lines = new Map();
  for (const run of group.runs) {
    const steps = run.steps === null || run.steps === run.step ? `step ${run.step}` : `step ${run.step} of ${run.steps}`;
    const resumed = run.resumed.length ? `, resumed from step ${run.resumed.join(", ")}` : "";
    const when = run.finished || !run.written ? "" : ` Still going or stopped, last written ${run.written}.`;
    const text = run.finished ? `finished at ${steps}${resumed}` : `not finished: ${steps}${resumed}.${when}`;
    lines.set(text, [...(lines.get(text) ?? []), run]);
  }
  return [...lines].map(([text, runs]) => el("div", { class: "runs" },
    runs.map((run, index) => [index ? ", " : null, el("code", {}, run.name)]),
    el("span", { class: runs[0].finished ? "state" : "state open" }, runs[0].finished ? text : `◌ ${text}`),
    [...new Set(runs.flatMap((run) => run.notes))].map((note) => el("span", { class: "note" }, note))));
}

function evaluation() {
  const lead = "The same held-out questions before (hollow) and after training (solid), with 95 % intervals over questions. " +
    "With several seeds a question counts with its mean over them, and the faint points are single seeds.";
  if (!data.evaluation.length) return section("evaluation", "Held-out questions", lead, empty("No evaluation has been written yet."));
  const splits = [...new Set(data.evaluation.map((row) => row.split))];
  const modes = [...new Set(data.evaluation.map((row) => row.mode))];
  let [split, mode] = [splits[0], modes[0]];
  const place = el("div");
  const draw = () => place.replaceChildren(...byScale(data.evaluation.filter((row) => row.split === split && row.mode === mode)).map(outcomes));
  draw();
  const during = chartGrid("evaluation");
  return section("evaluation", "Held-out questions", lead,
    el("div", { class: "controls" },
      splits.length > 1 ? choice("split", splits, split, (chosen) => { split = chosen; draw(); }) : null,
      modes.length > 1 ? choice("decoding", modes, mode, (chosen) => { mode = chosen; draw(); }) : null), place,
    during && el("details", { class: "more" }, el("summary", {}, "During training"), during));
}

/** Rewards between 0 and 1 share an axis, so that they compare; every other one has its own. */
function byScale(found) {
  const wide = new Set(found.filter((row) => [row.before, row.after].some((own) => own && (own.low < 0 || own.high > 1))).map((row) => row.reward));
  const share = found.filter((row) => !wide.has(row.reward));
  return [...(share.length ? [share] : []), ...[...wide].map((reward) => found.filter((row) => row.reward === reward))];
}

function outcomes(found) {
  const rewards = [...new Set(found.map((row) => row.reward))];
  const rows = found.toSorted((a, b) => rewards.indexOf(a.reward) - rewards.indexOf(b.reward) || a.group - b.group);
  const values = rows.flatMap((row) => [row.before, row.after].filter(Boolean).flatMap((interval) => [interval.low, interval.high]));
  const shares = values.every((value) => value >= 0 && value <= 1);
  const room = shares ? 0 : (Math.max(...values) - Math.min(...values)) * 0.04;
  const [low, high] = shares ? [0, 1] : [Math.min(...values) - room, Math.max(...values) + room];
  const at = (value) => `${(((value - low) / (high - low)) * 100).toFixed(2)}%`;
  const lines = rows.map((row, index) => {
    const first = index === 0 || rows[index - 1].reward !== row.reward;
    const marks = svg("svg", { height: 30, class: seriesClass(row.group), role: "img", "aria-label": outcomeText(row) },
      ticks(low, high, 4).map((value) => svg("line", { class: "axis", x1: at(value), x2: at(value), y1: 0, y2: 30 })),
      row.runs.length > 1 ? row.runs.flatMap(([before, after]) => [dotAt(at, before, 10, "one", 2.5), dotAt(at, after, 21, "one", 2.5)]) : [],
      whisker(at, row.before, 10, "whisker then"), dotAt(at, row.before.mean, 10, "hollow", 4.5),
      row.after ? [whisker(at, row.after, 21, "whisker"), dotAt(at, row.after.mean, 21, "solid", 5)] : []);
    return el("tr", { class: first ? "first" : null },
      el("th", { class: "l", scope: "row" }, first ? el("b", {}, row.reward) : null,
        data.groups.length > 1 ? el("div", {}, seriesKey(row.group)) : null),
      el("td", { class: "plot" }, marks),
      el("td", { class: "wide" }, number(row.before.mean)), el("td", { class: "wide" }, row.after ? number(row.after.mean) : "–"),
      el("td", {}, row.change ? [el("b", {}, signed(row.change.mean)), el("span", { class: "note" }, `${signed(row.change.low, 2)} to ${signed(row.change.high, 2)}`)] : el("span", { class: "note" }, "no second evaluation yet")));
  });
  const scale = svg("svg", { height: 16, "aria-hidden": "true" },
    ticks(low, high, 4).map((value) => svg("text", { x: at(value), y: 12, "text-anchor": "middle" }, tickText(value))));
  const head = el("tr", {}, el("th", { class: "l" }, `${count(rows[0].questions, "question")}`), el("th", { class: "plot" }, scale),
    el("th", { class: "wide" }, "before"), el("th", { class: "wide" }, "after"), el("th", {}, "change"));
  const widths = el("colgroup", {}, el("col", { class: "c-name" }), el("col"), el("col", { class: "c-num wide" }), el("col", { class: "c-num wide" }), el("col", { class: "c-change" }));
  return el("table", { class: "marks" }, widths, el("thead", {}, head), el("tbody", {}, lines));
}

function outcomeText(row) {
  const after = row.after ? `, after ${number(row.after.mean)}` : "";
  return `${row.reward}, ${data.groups[row.group].label}: before ${number(row.before.mean)}${after}`;
}

function whisker(at, interval, y, kind) {
  return svg("line", { class: kind, x1: at(interval.low), x2: at(interval.high), y1: y, y2: y });
}

function dotAt(at, value, y, kind, r) {
  return value === null ? null : svg("circle", { class: kind, cx: at(value), cy: y, r });
}

/** Stations as rows and groups as bars on one scale, so that lengths can be compared. */
function seconds() {
  const stations = [...new Set(data.seconds.flatMap((own) => Object.keys(own)))];
  if (!stations.length) return empty("No step has been timed yet.");
  const most = Math.max(...data.seconds.flatMap((own) => Object.values(own))) || 1;
  const bars = (pick) => data.seconds.map((own, group) => (pick(own) === undefined ? null : barRow(group, pick(own), most)));
  const total = (own) => Object.values(own).reduce((sum, value) => sum + value, 0);
  const rows = stations.map((station) => el("tr", { class: "first" }, el("th", { class: "l", scope: "row" }, station), el("td", { class: "plot" }, bars((own) => own[station]))));
  const sums = data.seconds.map((own, group) => (Object.keys(own).length ? el("div", {}, seriesKey(group), ` ${number(total(own), 2)} s`) : null));
  rows.push(el("tr", { class: "first" }, el("th", { class: "l", scope: "row" }, "in all"), el("td", { class: "l sums" }, sums)));
  return el("table", { class: "marks" }, el("colgroup", {}, el("col", { class: "c-name" }), el("col")), el("tbody", {}, rows));
}

function barRow(group, value, most) {
  const width = (value / most) * 82;
  return svg("svg", { height: 17, class: seriesClass(group) },
    svg("rect", { class: "fill", x: 0, y: 3, height: 11, width: `${width.toFixed(2)}%`, rx: 1.5 }),
    svg("text", { x: `${width.toFixed(2)}%`, y: 12.5, dx: 6 }, `${number(value, 2)} s`));
}

/** What became of each reward, as shares of responses that add up to all of them. */
function replays() {
  if (!data.replays.length) return null;
  const outcomes = {
    by_relevance: "by relevance", below_floor: "below the floor", no_information: "no information", overflow: "too long",
    one_token: "one token", not_finite: "not finite", no_advantage: "no advantage",
  };
  const heads = ["reward", "distance", "floor", ...Object.values(outcomes)];
  const rows = data.replays.map((row) => [
    el("th", { class: "l", scope: "row" }, row.reward, data.groups.length > 1 ? el("span", { class: "note" }, seriesKey(row.group)) : null),
    number(row.distance, 4), number(row.floor, 7), ...Object.keys(outcomes).map((key) => percent(row[key])),
  ]);
  return el("details", { class: "more" }, el("summary", {}, "How often weights went by relevance, and why not"),
    el("p", { class: "note" }, "Shares of responses. Without an advantage no weight matters; in the other cases weights are even."), table(heads, rows));
}

function percent(value) {
  if (value === null || value === undefined) return "–";
  const digits = value < 0.1 && !Number.isInteger(Number((value * 100).toFixed(6))) ? 1 : 0;
  return `${(value * 100).toFixed(digits)} %`;
}

function localization() {
  const lead = "How much of a reward's replay distance lies on the tokens that its verifier read, over the share of tokens there. " +
    "1 is an even spread; the scale is logarithmic. Shares are means over logged responses; there is no number below five of them.";
  if (!data.relevance.length) {
    return section("localization", "Where the verifier looked", lead,
      empty("No distances were logged. Strategies that replay responses have them, such as ", el("code", {}, "credit=mrtpo"), "."));
  }
  const groups = data.relevance.map((own) => data.groups[own.group].label);
  const place = el("div");
  const draw = (label) => {
    const own = data.relevance[groups.indexOf(label)];
    place.replaceChildren(ratios(own), el("div", { class: "charts spaced" }, own.held.map((held) => holders(own, held))));
  };
  draw(groups[0]);
  return section("localization", "Where the verifier looked", lead,
    groups.length > 1 ? el("div", { class: "controls" }, choice("curve", groups, groups[0], draw)) : null, place);
}

/** Ratios on a logarithmic scale, so that twice and half as much are equally far from even. */
function ratios(own) {
  const known = own.located.filter((row) => row.ratio !== null);
  const ends = known.flatMap((row) => [row.ratio, row.low, row.high]).filter((value) => value > 0);
  const low = Math.log2(Math.min(0.5, ...ends));
  const high = Math.log2(Math.max(4, ...ends));
  const at = (value) => `${(((Math.log2(Math.max(value, 2 ** low)) - low) / (high - low)) * 100).toFixed(2)}%`;
  const marks = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128].filter((value) => Math.log2(value) >= low && Math.log2(value) <= high);
  const scale = svg("svg", { height: 16, "aria-hidden": "true" }, marks.map((value) => svg("text", { x: at(value), y: 12, "text-anchor": "middle" }, value)));
  const lines = own.located.map((row, index) => {
    const first = index === 0 || own.located[index - 1].kind !== row.kind;
    const text = row.ratio === null ? `–, ${count(row.cases, "case")}` : `${number(row.ratio, 2)} (${number(row.low, 2)} to ${number(row.high, 2)})`;
    const drawing = svg("svg", { height: 30, class: seriesClass(own.group), role: "img", "aria-label": `${row.kind}, ${row.outcome}: ${text}` },
      marks.map((value) => svg("line", { class: value === 1 ? "tick" : "axis", x1: at(value), x2: at(value), y1: 0, y2: 30 })),
      row.ratio === null ? null : [whisker(at, row, 15, "whisker"), dotAt(at, row.ratio, 15, row.outcome === "pooled" ? "solid" : "hollow", 5)]);
    return el("tr", { class: first ? "first" : null },
      el("th", { class: "l", scope: "row" }, first ? el("b", {}, row.kind) : null, el("span", { class: "note" }, `${row.outcome === "pooled" ? "both" : row.outcome}, ${row.cases}`)),
      el("td", { class: "plot" }, drawing),
      el("td", { class: "wide" }, percent(row.distance)), el("td", { class: "wide" }, percent(row.tokens)),
      el("td", {}, row.ratio === null ? "–" : el("b", {}, `${number(row.ratio, 2)}×`),
        row.ratio === null ? null : el("span", { class: "note" }, `${number(row.low, 2)} to ${number(row.high, 2)}`)));
  });
  const head = el("tr", {}, el("th", { class: "l" }, "reward, cases"), el("th", { class: "plot" }, scale),
    el("th", { class: "wide" }, "distance"), el("th", { class: "wide" }, "tokens"), el("th", {}, "ratio"));
  const widths = el("colgroup", {}, el("col", { class: "c-name" }), el("col"), el("col", { class: "c-num wide" }), el("col", { class: "c-num wide" }), el("col", { class: "c-change" }));
  return el("table", { class: "marks" }, widths, el("thead", {}, head), el("tbody", {}, lines));
}

/** Who holds a reward's distance: parts of the response, and the tokens with most of it. */
function holders(own, held) {
  const parts = own.parts.filter((row) => row.kind === held.kind && row.distance !== null).toSorted((a, b) => b.distance - a.distance);
  const rows = [
    ...parts.map((row) => shareRow(own.group, row.part || "no part", row.distance, row.tokens)),
    ...held.top.filter(([, share]) => share !== null).map(([size, share], index) =>
      shareRow(own.group, `top ${percent(size)} of tokens`, share, size, index === 0)),
  ];
  return el("div", { class: "chart" }, el("h3", {}, held.kind), el("p", {}, `share of the distance; line: share of tokens. ${count(held.cases, "case")}`),
    rows.length ? el("table", { class: "marks shares" }, el("colgroup", {}, el("col", { class: "c-part" }), el("col"), el("col", { class: "c-share" })), el("tbody", {}, rows)) : "–");
}

function shareRow(group, name, share, tokens, first = false) {
  const at = `${(tokens * 100).toFixed(2)}%`;
  return el("tr", { class: first ? "first" : null }, el("th", { class: "l", scope: "row" }, name),
    el("td", { class: "plot" }, svg("svg", { height: 14, class: seriesClass(group), role: "img", "aria-label": `${percent(share)} on ${percent(tokens)} of the tokens` },
      svg("rect", { class: "fill", x: 0, y: 3, height: 8, width: `${(share * 100).toFixed(2)}%`, rx: 1 }),
      svg("line", { class: "tick", x1: at, x2: at, y1: 0, y2: 14 }))),
    el("td", {}, percent(share)));
}
