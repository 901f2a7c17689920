// Put the page together.

document.getElementById("title").textContent = data.title;
document.getElementById("made").textContent = data.made;

const several = data.groups.some((group) => group.runs.length > 1);
const modes = ["mean, range of seeds", "median, quartiles"];
const seriesKeys = () => (data.groups.length > 1 ? data.groups.map((_, group) => seriesKey(group)) : null);
const keys = () => seriesKeys() && el("div", { class: "controls" }, seriesKeys());
const legend = el("div", { class: "controls" }, seriesKeys(),
  several ? choice("summary over seeds", modes, modes[0], (mode) => {
    view.median = mode === modes[1];
    charts.forEach(drawChart);
  }) : null);

const smooth = data.window > 1 ? `Lines are trailing means over ${data.window} steps` : "Lines are single steps";
const spread = several ? ", bands are over the seeds." : ", the faint line is each step by itself.";
const noSteps = () => empty("No step has been written yet. Make the report again when the run has gone on.");

const sections = [
  overview(),
  section("rewards", "Rewards", smooth + spread, legend, chartGrid("rewards") ?? noSteps()),
  evaluation(),
  creditViewer(),
  localization(),
  section("strategy", "Credit over training", "How evenly credit is spread, what it goes by, and where that told nothing.",
    keys(), chartGrid("credit") ?? noSteps(), replays()),
  section("cost", "Length and time", "Length of the responses, and mean seconds of each stage of a step.",
    keys(), chartGrid("length"), el("div", { class: "spaced" }, seconds())),
  section("health", "Health", "What shows that a run learns nothing, or too much at once.",
    el("details", { class: "more" }, el("summary", {}, "Spread of rewards, gradients, entropy, ratios"), chartGrid("health") ?? noSteps())),
];
document.getElementById("main").append(...sections);
document.getElementById("nav").append(...sections.map((own) =>
  el("a", { href: `#${own.id}` }, own.querySelector("h2").textContent)));
document.addEventListener("keydown", () => { keyboard = true; }, true);
document.addEventListener("pointerdown", () => { keyboard = false; }, true);
document.addEventListener("focusin", (event) => { now.inText = keyboard && event.target.matches(".text"); });
watchCharts();
if (data.responses.length) showResponse(0);
