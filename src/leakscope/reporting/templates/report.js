// The page's own script: draws the charts, and searches, sorts and pages the table of records.
// Ids reach the page by textContent only.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("report-data").textContent);

  const options = {
    // The interpreter instead of eval: the page's policy allows no code but its own.
    ast: true,
    mode: "vega-lite",
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };
  const drawn = Object.entries(data.charts).map(([name, description]) => {
    const place = document.getElementById("chart-" + name);
    return place ? window.vegaEmbed(place, description, options) : null;
  });
  Promise.all(drawn).then(
    () => document.documentElement.setAttribute("data-drawn", "yes"),
    (error) => console.error(error),
  );

  const records = data.records;
  const body = document.getElementById("records-body");
  if (!records || !body) return;

  const PAGE = 25;
  const count = records.id.length;
  const every = Array.from({ length: count }, (_, row) => row);
  const search = document.getElementById("records-search");
  const status = document.getElementById("records-status");
  const back = document.getElementById("records-back");
  const next = document.getElementById("records-next");
  const headings = Array.from(document.querySelectorAll("#records th[data-key]"));
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  let sorted = { key: "rank", descending: false };
  let shown = every;
  let page = 0;

  const number = (value) => (value === null ? "–" : String(Number(value.toPrecision(4))));
  // What would round to 1 is not certainty, only beyond four digits.
  const fraction = (value) =>
    value === null ? "–" : value >= 0.99995 ? ">0.9999" : value.toFixed(4);
  const two = (value) =>
    value >= 0.995 && value < 1 ? ">0.99" : String(Number(value.toPrecision(2)));
  const range = (low, high) => (low === null ? "–" : low + "–" + high);
  // Each heading says which column stands below it, and in which form.
  const forms = {
    rank: (row) => String(row + 1),
    text: (row, key) => (records[key][row] === null ? "–" : String(records[key][row])),
    number: (row, key) => number(records[key][row]),
    fraction: (row, key) => fraction(records[key][row]),
    range: (row, key, upper) => range(records[key][row], records[upper][row]),
    between: (row, key, upper) =>
      records[key][row] === null ? "–" : two(records[key][row]) + " to " + two(records[upper][row]),
    yes: (row, key) => (records[key][row] ? "yes" : "NO"),
  };
  const cells = headings.map((heading) => [
    heading.dataset.key === "id" ? "id" : heading.className,
    (row) => forms[heading.dataset.form](row, heading.dataset.key, heading.dataset.upper),
  ]);

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    const fragment = document.createDocumentFragment();
    for (const row of shown.slice(page * PAGE, (page + 1) * PAGE)) {
      const line = document.createElement("tr");
      for (const [name, text] of cells) {
        const cell = document.createElement("td");
        cell.className = name;
        cell.textContent = text(row);
        line.appendChild(cell);
      }
      fragment.appendChild(line);
    }
    body.replaceChildren(fragment);
    const found = shown.length === count ? count + " in all" : shown.length + " of " + count;
    status.textContent = found + ", page " + (page + 1) + " of " + pages;
    back.disabled = page === 0;
    next.disabled = page === pages - 1;
  }

  function arrange() {
    const wanted = search.value.trim().toLowerCase();
    shown = wanted ? every.filter((row) => records.id[row].toLowerCase().includes(wanted)) : every.slice();
    const { key, descending } = sorted;
    if (key !== "rank") {
      const values = records[key];
      shown.sort((a, b) => {
        const x = values[a];
        const y = values[b];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        const order = typeof x === "string" ? compare(x, y) : x - y;
        return (descending ? -order : order) || a - b;
      });
    } else if (descending) {
      shown.reverse();
    }
    for (const heading of headings) {
      const ours = heading.dataset.key === key;
      heading.setAttribute("aria-sort", ours ? (descending ? "descending" : "ascending") : "none");
    }
    page = 0;
    draw();
  }

  for (const heading of headings) {
    heading.querySelector("button").addEventListener("click", () => {
      const key = heading.dataset.key;
      const measured = !["rank", "text", "range"].includes(heading.dataset.form);
      sorted = { key, descending: sorted.key === key ? !sorted.descending : measured };
      arrange();
    });
  }
  search.addEventListener("input", arrange);
  back.addEventListener("click", () => { page -= 1; draw(); });
  next.addEventListener("click", () => { page += 1; draw(); });
  arrange();
})();
