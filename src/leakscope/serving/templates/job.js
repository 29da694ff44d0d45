// One audit: asks how it stands, then shows its result and lets the noise be moved.
// Text from the data reaches the page by textContent only.
(() => {
  "use strict";
  const byId = (name) => document.getElementById(name);
  const job = byId("progress").dataset.job;
  const here = "/api/jobs/" + encodeURIComponent(job);
  const BLUE = "#1f5a96";
  const ORANGE = "#d98243";
  const GREY = "#767676";
  const BINS = 40;

  const number = (value) => (value === null ? "–" : String(Number(value.toPrecision(3))));
  // What would round to 1 is not certainty, only beyond four digits.
  const fraction = (value) =>
    value === null ? "–" : value >= 0.9995 ? ">0.999" : value.toFixed(3);
  const percent = (value) =>
    (100 * value).toFixed(value < 0.0995 && value > 0 ? 1 : 0) + "%";

  function tell(sentence) {
    byId("problem").textContent = sentence;
    byId("problem").hidden = false;
    byId("again").hidden = false;
  }

  function show_progress(told) {
    const items = Array.from(byId("stages").children);
    const place = items.findIndex((item) => item.dataset.stage === told.stage);
    items.forEach((item, number_of) => {
      item.className = number_of < place ? "past" : number_of === place ? "now" : "";
    });
    byId("progress-line").textContent =
      told.state === "waiting"
        ? `Waiting: ${told.ahead} ${told.ahead === 1 ? "audit comes" : "audits come"} first.`
        : `Running for ${told.seconds.toFixed(0)} s.`;
  }

  async function ask() {
    let told;
    try {
      const response = await fetch(here);
      told = await response.json();
      if (!response.ok) throw new Error(told.error);
    } catch (error) {
      tell(error.message || "The server does not answer; is leakscope serve still running?");
      return;
    }
    if (told.state === "waiting" || told.state === "running") {
      show_progress(told);
      window.setTimeout(ask, told.state === "running" && told.seconds < 5 ? 200 : 700);
      return;
    }
    byId("progress").hidden = true;
    if (told.state === "done") show_result(told);
    else if (told.state === "cancelled") tell("This audit was cancelled.");
    else tell(told.problem);
  }

  byId("give-up").addEventListener("click", async () => {
    byId("give-up").disabled = true;
    byId("give-up").textContent = "Cancelling …";
    await fetch(here + "/give-up", { method: "POST" });
  });

  // Each of these asks for the same audit again, with something more.
  const more = {
    "advise-form": () => {
      const name = byId("measure").value;
      const asked = { [name]: byId("limit").value.trim() };
      return name === "threshold_ppv" ? { ...asked, prior: byId("prior").value.trim() } : asked;
    },
    "verify-form": () => ({ verify: true }),
    "compare-form": () => ({ against: byId("against").value }),
  };
  for (const [form, wanted] of Object.entries(more)) {
    byId(form).addEventListener("submit", async (event) => {
      event.preventDefault();
      const response = await fetch("/api/jobs", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ again: job, ...wanted() }),
      });
      const told = await response.json();
      if (response.ok) window.location.assign("/jobs/" + encodeURIComponent(told.job));
      else tell(told.error);
    });
  }

  function show_result(told) {
    const found = told.outcome;
    byId("verdict").textContent = found.verdict;
    byId("examined").textContent = found.examined;
    for (const part of document.querySelectorAll(".of-process")) part.hidden = found.noise === null && found.no_noise === null;
    for (const name of found.pages) {
      const page = "/jobs/" + encodeURIComponent(job) + "/pages/" + name;
      byId(name + "-open").href = page;
      byId(name + "-save").href = page + "?download";
      byId(name + "-ready").hidden = false;
    }
    byId("took").textContent = `${found.records} records, ${found.features} features, ${told.seconds.toFixed(1)} s.`;
    byId("warnings").replaceChildren(
      ...found.warnings.map((sentence) => {
        const line = document.createElement("p");
        line.className = "caution";
        line.textContent = "Warning: " + sentence;
        return line;
      }),
    );
    const report = "/jobs/" + encodeURIComponent(job) + "/report";
    byId("report-open").href = report;
    byId("report-save").href = report + "?download";
    byId("report-redacted").href = report + "?redact&download";
    byId("result").hidden = false;
    const frame = byId("report-frame");
    frame.addEventListener("load", () => fit(frame));
    frame.src = report;
    if (found.noise === null) {
      byId("no-noise").textContent = found.no_noise;
      byId("no-noise").hidden = found.no_noise === null;
      document.documentElement.dataset.drawn = "yes";
    } else {
      show_noise(found.noise).catch((error) => tell(error.message));
    }
  }

  // The report is as tall as what it holds, so that the page has one scroll bar.
  function fit(frame) {
    const inside = frame.contentDocument.documentElement;
    const resize = () => {
      frame.style.height = Math.ceil(inside.getBoundingClientRect().height) + 2 + "px";
    };
    resize();
    new ResizeObserver(resize).observe(inside);
  }

  const options = {
    // The interpreter instead of eval, and no style elements: the page's policy allows neither.
    ast: true,
    renderer: "svg",
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  const config = {
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
  };
  const common = { width: "container", autosize: { type: "fit", contains: "padding" }, config };

  function histogram(noise) {
    const most = Math.max(...noise.levels.map((level) => Math.max(...level.histogram)));
    return {
      ...common,
      height: 200,
      data: { name: "now", values: [] },
      mark: { type: "bar", color: BLUE, stroke: "white", strokeWidth: 0.5 },
      encoding: {
        x: { field: "from", type: "quantitative", bin: { binned: true, step: 1 / BINS }, title: "advantage", scale: { domain: [0, 1], nice: false }, axis: { grid: false, values: [0, 0.2, 0.4, 0.6, 0.8, 1], format: ".1f" } },
        x2: { field: "to" },
        y: { field: "records", type: "quantitative", title: "records", scale: { type: "symlog", domain: [0, most] }, axis: { values: [0, 1, 3, 10, 30, 100, 300, 1000, 3000], labelOverlap: true } },
        tooltip: [
          { field: "from", format: ".3f" },
          { field: "to", format: ".3f" },
          { field: "records" },
        ],
      },
    };
  }

  function curve(values, lines, title, domain, level) {
    const ends = [values[0].noise, values.at(-1).noise].map(Math.log10);
    const decades = Array.from({ length: Math.floor(ends[1] + 1e-9) - Math.ceil(ends[0] - 1e-9) + 1 }, (_, step) => 10 ** (Math.ceil(ends[0] - 1e-9) + step));
    const x = { field: "noise", type: "quantitative", title: "noise variance", scale: { type: "log", nice: false }, axis: { format: "~g", values: decades, labelOverlap: true } };
    return {
      ...common,
      height: 220,
      layer: [
        ...(level === undefined
          ? []
          : [{ data: { values: [{ level, what: "without any model" }] }, mark: { type: "rule", color: GREY }, encoding: { y: { field: "level", type: "quantitative" }, tooltip: [{ field: "what", title: "error" }, { field: "level", format: ".3f" }] } }]),
        ...lines.map(([field, colour]) => ({
          data: { values },
          mark: { type: "line", color: colour, strokeWidth: 2.5, point: { opacity: 0, size: 120 } },
          encoding: {
            x,
            y: { field, type: "quantitative", title, scale: { domain, nice: false } },
            tooltip: [
              { field: "noise", format: ".3g", title: "noise variance" },
              { field, format: ".3f", title: field },
            ],
          },
        })),
        {
          data: { name: "now", values: values.slice(0, 1) },
          mark: { type: "rule", strokeDash: [5, 4], color: "#1b1f24" },
          encoding: { x: { field: "noise", type: "quantitative" } },
        },
      ],
    };
  }

  // The charts' library is there once an audit is done.
  function library() {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = "/static/vega.js";
      script.onload = done;
      script.onerror = () => failed(new Error("The charts could not be loaded."));
      document.head.append(script);
    });
  }

  async function show_noise(noise) {
    byId("slider-box").hidden = false;
    await library();
    const slider = byId("slider");
    slider.max = String(noise.levels.length - 1);
    slider.value = String(noise.audited);
    byId("least").textContent = number(noise.levels[0].noise_variance);
    byId("most").textContent = number(noise.levels.at(-1).noise_variance);
    const classes = noise.task === "classification";
    const unit = noise.error_of_guessing || 1;
    // A share of wrong classes, or an error in units of the target's own spread.
    const error = (level) => (classes ? level.wrong_class : level.root_mean_squared_error / unit);
    const guessing = classes ? noise.error_of_guessing : 1;
    byId("error-name").textContent = classes ? "wrong class" : "typical error, of the target’s spread";
    byId("error-words").textContent = classes
      ? `How often a released answer about a record names a wrong class, by a model trained without that record; the most frequent class alone would be wrong ${percent(guessing)} of the time.`
      : `Root mean square error of a released answer about a record, by a model trained without that record; 1 is what the mean of the target alone would do, ${number(noise.target_scale * unit)} in the target’s own units.`;
    byId("error-caption").textContent = classes
      ? "Share of wrong classes; the grey line is without any model."
      : "Error as a share of the target’s spread; the grey line is without any model.";
    const values = noise.levels.map((level) => ({
      noise: level.noise_variance,
      "most exposed": level.largest_advantage,
      median: level.median_advantage,
      error: error(level),
    }));
    const worst = Math.max(guessing, ...values.map((value) => value.error));
    const charts = await Promise.all([
      window.vegaEmbed("#chart-histogram", histogram(noise), options),
      window.vegaEmbed("#chart-leakage", curve(values, [["most exposed", ORANGE], ["median", BLUE]], "advantage", [0, 1]), options),
      window.vegaEmbed("#chart-error", curve(values, [["error", BLUE]], classes ? "wrong classes" : "error", [0, Math.min(worst, 3 * guessing) * 1.05], guessing), options),
    ]).then((drawn) => drawn.map((one) => one.view));

    const before = new Map(noise.levels[noise.audited].top.map(([id], place) => [id, place + 1]));
    function move() {
      const level = noise.levels[Number(slider.value)];
      const audited = Number(slider.value) === noise.audited;
      byId("noise-value").textContent = number(level.noise_variance) + (audited ? " (as audited)" : "");
      slider.setAttribute("aria-valuetext", "noise variance " + number(level.noise_variance));
      byId("as-audited").disabled = audited;
      byId("fact-largest").textContent = fraction(level.largest_advantage);
      byId("fact-median").textContent = fraction(level.median_advantage);
      byId("fact-exposed").textContent = `${level.exposed} (${percent(level.exposed / noise.records)})`;
      byId("fact-error").textContent = classes ? percent(level.wrong_class) : error(level).toFixed(3);
      byId("untrusted").hidden = level.untrusted === 0;
      byId("untrusted").textContent = `At this noise variance double precision does not resolve ${level.untrusted} of ${noise.records} records to eight digits: read their numbers as approximate.`;
      byId("top-body").replaceChildren(
        ...level.top.map(([id, kl, advantage], place) => {
          const line = document.createElement("tr");
          const was = before.get(id);
          const rank = was === place + 1 || audited ? String(place + 1) : `${place + 1} (was ${was || "lower"})`;
          for (const [name, text] of [["n", rank], ["id", id], ["n", number(kl)], ["n", fraction(advantage)]]) {
            const cell = document.createElement("td");
            cell.className = name;
            cell.textContent = text;
            line.append(cell);
          }
          return line;
        }),
      );
      const bars = level.histogram.map((records, bin) => ({ from: bin / BINS, to: (bin + 1) / BINS, records }));
      charts[0].data("now", bars).runAsync();
      for (const chart of charts.slice(1)) chart.data("now", [{ noise: level.noise_variance }]).runAsync();
    }
    slider.addEventListener("input", move);
    byId("as-audited").addEventListener("click", () => {
      slider.value = String(noise.audited);
      move();
    });
    move();
    await Promise.all(charts.map((chart) => chart.runAsync()));
    document.documentElement.dataset.drawn = "yes";
  }

  ask();
})();
