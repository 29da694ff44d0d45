// The start page: sends a file, offers its columns, asks for an audit.
// Names from the file reach the page by textContent and option values only.
(() => {
  "use strict";
  const byId = (name) => document.getElementById(name);
  const file = byId("file");
  const drop = byId("drop");
  const status = byId("upload-status");
  const form = byId("columns");
  const problem = byId("problem");
  let inspected = null;

  const size = (bytes) =>
    bytes < 1e6 ? (bytes / 1e3).toFixed(0) + " kB" : (bytes / 1e6).toFixed(1) + " MB";

  function tell(sentence) {
    problem.textContent = sentence || "";
    problem.hidden = !sentence;
    if (sentence) problem.scrollIntoView({ block: "nearest" });
  }

  async function answer(response) {
    const told = (response.headers.get("content-type") || "").includes("json")
      ? await response.json()
      : { error: await response.text() };
    if (!response.ok) throw new Error(told.error || "The server refused.");
    return told;
  }

  async function ask(wanted) {
    tell("");
    try {
      const response = await fetch("/api/jobs", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(wanted),
      });
      window.location.assign("/jobs/" + encodeURIComponent((await answer(response)).job));
    } catch (error) {
      tell(error.message);
    }
  }

  function send(chosen) {
    tell("");
    form.hidden = true;
    inspected = null;
    const limit = Number(file.dataset.limit);
    if (chosen.size > limit) {
      tell(`${chosen.name} is larger than ${limit / 1e6} MB; start leakscope serve with a larger --max-upload.`);
      return;
    }
    const request = new XMLHttpRequest();
    request.open("POST", "/api/uploads?name=" + encodeURIComponent(chosen.name));
    request.responseType = "json";
    request.upload.onprogress = (event) => {
      status.textContent =
        event.loaded < event.total
          ? `Sending ${size(event.loaded)} of ${size(event.total)} …`
          : "Looking at the columns …";
    };
    request.onload = () => {
      status.textContent = "";
      const told = request.response || {};
      if (request.status === 200) offer(told);
      else tell(told.error || "The server refused the file.");
    };
    request.onerror = () => {
      status.textContent = "";
      tell("The file could not be sent; is leakscope serve still running?");
    };
    status.textContent = `Sending ${size(chosen.size)} …`;
    request.send(chosen);
    file.value = "";
  }

  function fill(select, names, chosen, none) {
    const options = names.map((name) => {
      const option = document.createElement("option");
      option.value = name;
      option.textContent = name;
      option.selected = name === chosen;
      return option;
    });
    if (none) {
      const option = document.createElement("option");
      option.value = "";
      option.textContent = none;
      option.selected = chosen === null;
      options.unshift(option);
    }
    select.replaceChildren(...options);
    // An empty choice and a column without a name look alike: the first option is the empty one.
    select.dataset.none = none ? "yes" : "";
  }

  function offer(found) {
    inspected = found;
    const names = found.columns.map((column) => column.name);
    byId("file-name").textContent = found.name;
    byId("file-facts").textContent = `${found.records} records, ${names.length} columns`;
    fill(byId("target"), names, found.offered.target);
    fill(byId("id_column"), names, found.offered.id_column, "the row number");
    fill(byId("group_column"), names, null, "no: each row is its own unit");
    fill(byId("by"), names, null, "no");
    byId("task").value = found.offered.task;
    byId("missing").value = found.offered.missing;
    const empty = found.columns.filter((column) => column.empty);
    byId("empty-facts").textContent = empty.length
      ? `${empty.reduce((sum, column) => sum + column.empty, 0)} in ${empty.length} ${empty.length === 1 ? "column" : "columns"}`
      : "there are none";
    byId("na_values").value = (found.offered.na_values || []).join(" ");
    const written = [];
    if (found.offered.header === false) written.push("the first line is a record, so that the columns are called x0, x1 and so on");
    if (found.offered.decimal === ",") written.push("the comma is the decimal sign");
    byId("layout-facts").textContent = written.length ? `How the file seems to be written: ${written.join("; ")}.` : "";
    byId("layout-facts").hidden = !written.length;
    const ignored = new Set(found.offered.ignore);
    byId("ignored").replaceChildren(
      ...found.columns.map((column) => {
        const label = document.createElement("label");
        const box = document.createElement("input");
        box.type = "checkbox";
        box.checked = ignored.has(column.name);
        const words = document.createElement("span");
        words.textContent = column.name;
        const kind = document.createElement("small");
        kind.textContent = column.kind;
        label.append(box, words, kind);
        return label;
      }),
    );
    count();
    byId("ignored-box").open = ignored.size > 0;
    form.hidden = false;
    form.scrollIntoView({ block: "start" });
  }

  function left_out() {
    return Array.from(byId("ignored").querySelectorAll("input"))
      .map((box, place) => (box.checked ? inspected.columns[place].name : null))
      .filter((name) => name !== null);
  }

  function count() {
    const names = left_out();
    byId("ignored-count").textContent =
      names.length === 0 ? "none" : names.length <= 4 ? names.join(", ") : `${names.length} of them`;
  }

  // The model and the settings that go with it; which ones, the server says.
  const goes_with = (field, model) => !field.dataset.models || field.dataset.models.split(" ").includes(model);

  const settings = () =>
    Object.fromEntries(
      Array.from(document.querySelectorAll("[data-setting]"))
        .filter((field) => goes_with(field.closest("label"), byId("model").value))
        .map((field) => [field.name, field.value.trim()]),
    );

  function model_chosen() {
    for (const label of document.querySelectorAll("[data-models]")) {
      label.hidden = !goes_with(label, byId("model").value);
    }
  }
  byId("model").addEventListener("change", model_chosen);
  model_chosen();

  const chosen = (name) => {
    const select = byId(name);
    return select.dataset.none && select.selectedIndex === 0 ? null : select.value;
  };

  byId("target").addEventListener("change", () => {
    const column = inspected.columns.find((one) => one.name === byId("target").value);
    byId("task").value = column.classes || !column.usable ? "classification" : "regression";
  });
  byId("ignored").addEventListener("change", count);
  file.addEventListener("change", () => file.files.length && send(file.files[0]));
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", () => ask({ example: button.dataset.example, ...settings() }));
  }
  // Back from an audit, the file and what was said of it are still there, in this tab only.
  const KEPT = "leakscope-columns";
  const fields = () =>
    Array.from(document.querySelectorAll("[data-setting], #columns select, #columns input:not([type=checkbox])"));

  function keep() {
    const values = Object.fromEntries(fields().map((field) => [field.id, field.value]));
    try {
      window.sessionStorage.setItem(KEPT, JSON.stringify({ inspected, values, ignored: left_out() }));
    } catch {
      // Too many columns for the browser to keep: the file is uploaded again.
    }
  }

  function restore() {
    let kept = null;
    try {
      kept = JSON.parse(window.sessionStorage.getItem(KEPT));
    } catch {
      return;
    }
    if (!kept || !kept.inspected) return;
    offer({ ...kept.inspected, offered: { ...kept.inspected.offered, ignore: kept.ignored } });
    for (const field of fields()) if (field.id in kept.values) field.value = kept.values[field.id];
    model_chosen();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep();
    const used = [chosen("target"), chosen("id_column"), chosen("group_column")];
    ask({
      upload: inspected.upload,
      target: chosen("target"),
      task: byId("task").value,
      id_column: chosen("id_column"),
      group_column: chosen("group_column"),
      by: chosen("by") === null ? [] : [chosen("by")],
      missing: byId("missing").value,
      header: inspected.offered.header,
      decimal: inspected.offered.decimal,
      na_values: byId("na_values").value.split(/\s+/).filter((text) => text),
      ignore: left_out().filter((name) => !used.includes(name)),
      ...settings(),
    });
  });
  restore();
})();
