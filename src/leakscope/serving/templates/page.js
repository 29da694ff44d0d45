"use strict";
// The fields come from the declarations of the verbs; only the question whose the rows are stands here.
const GROUP = "group_column", $ = id => document.getElementById(id);
let folder, form, table = { columns: [], persons: [] }, filled = {}, asked = 0;

function make(tag, more = {}, ...inside) {
  const node = Object.assign(document.createElement(tag), more);
  node.append(...inside);
  return node;
}

async function ask(path, body) {
  const response = await fetch("/api/" + path, body && { method: "POST", body: JSON.stringify(body) });
  const json = (response.headers.get("content-type") || "").includes("json");
  return json ? response.json() : { error: await response.text() };
}

// What a field can be chosen from; null where it is typed.
function offered(field) {
  if (Object.keys(field.choices).length) return Object.keys(field.choices);
  if (field.metavar === "COLUMN" && (table.columns.length || field.name === GROUP)) return table.columns;
  if (field.metavar === "MODEL") return folder.models;
  if (field.switches.length) return null;
  return field.metavar === "FILE" ? folder.tables : folder.results;
}

function control(field) {
  const { name, multiple } = field, id = "f-" + name, now = filled[name], list = offered(field);
  const set = value => { filled[name] = value; changed(field); };
  if (field.flag)
    return make("input", { id, type: "checkbox", checked: now ?? Boolean(field.default), onchange() { set(this.checked); } });
  if (list && multiple) {
    const box = make("div", { id, className: "many" }, ...list.map(value =>
      make("label", {}, make("input", { type: "checkbox", value, checked: (now || []).includes(value) }), " " + value)));
    box.onchange = () => set([...box.querySelectorAll(":checked")].map(box => box.value));
    return box;
  }
  if (list) {
    const node = make("select", { id });
    const option = (value, text, more) => node.append(make("option", { value, text, ...more }));
    if (name === GROUP) {
      option("?", "?", { disabled: true });
      option("", "each row is a unit of its own");
    } else option("", field.default);
    for (const value of list) option(value, value + (field.choices[value] ? ` (${field.choices[value]})` : ""));
    if (field.metavar === "MODEL") option("…", "module:Name …");
    if (now && !list.includes(now)) option(now, now);
    node.value = now ?? (name === GROUP ? "?" : "");
    node.onchange = () => {
      if (node.value !== "…") return set(node.value);
      node.replaceWith(typed(field, set));
      $(id).focus();
    };
    return node;
  }
  return typed(field, set);
}

function typed(field, set) {
  const value = [filled[field.name] ?? []].flat().join("\n"), id = "f-" + field.name;
  const files = field.metavar.startsWith("FILE") ? "files" : "";
  const node = make(field.multiple ? "textarea" : "input", { id, value, placeholder: field.default, rows: 2 });
  if (files) node.setAttribute("list", files);
  node.oninput = () => set(field.multiple ? node.value.split("\n") : node.value);
  return node;
}

function shown(field) {
  const label = make("label", { htmlFor: "f-" + field.name }, field.label + (field.required ? " *" : field.name === GROUP ? ": whose rows are these?" : ""));
  const text = make("span", { className: "soft", textContent: field.text });
  const node = make("div", { className: "field" }, label, field.flag ? " " : "", control(field), text);
  if (field.name === GROUP && filled.file) {
    node.classList.toggle("asked", filled[GROUP] === undefined);
    if (table.persons.length) text.append(" → " + table.persons.join(", "));
  }
  return node;
}

function draw() {
  const parts = [make("div", { className: "fields" }, ...form.fields.map(shown))];
  parts.push(make("datalist", { id: "files" }, ...folder.files.map(value => make("option", { value }))));
  $("form").replaceChildren(...parts);
}

async function changed(field) {
  if (["file", "read"].includes(field.name) && form.fields.some(other => other.name === GROUP)) {
    if (field.name === "file") delete filled[GROUP];
    await look();
  } else if (field.name === GROUP) $("f-" + GROUP).parentNode.classList.remove("asked");
  await compose();
}

async function look() {
  const file = filled.file;
  const answer = file ? await ask("columns", { verb: form.verb, values: filled }) : {};
  if (file !== filled.file) return;
  table = { columns: answer.columns || [], persons: answer.persons || [], error: answer.error };
  const focus = document.activeElement.id;
  draw();
  $(focus)?.focus();
}

async function compose() {
  const number = ++asked;
  // What runs is what is shown.
  $("run").disabled = true;
  const answer = await ask("compose", { verb: form.verb, values: filled });
  if (number !== asked) return;
  $("command").textContent = (answer.commands || ["leakscope " + form.verb + " …"]).join("\n");
  const problem = table.error && filled.file ? table.error : answer.error;
  $("problem").textContent = problem || "";
  $("problem").hidden = !problem;
  $("run").disabled = Boolean(answer.error) || !$("cancel").hidden;
}

function choose(verb, values = {}) {
  form = folder.forms.find(other => other.verb === verb);
  filled = values;
  table = { columns: [], persons: [] };
  for (const button of $("verbs").children) button.setAttribute("aria-pressed", button.textContent === verb);
  $("summary").textContent = form.summary;
  draw();
  compose();
}

function links(pages) {
  return pages.map(page => make("a", { href: "/pages/" + page.split("/").map(encodeURIComponent).join("/"), target: "_blank", textContent: page.split("/").pop() }));
}

async function list() {
  folder = await ask("contents");
  $("folder").textContent = folder.folder;
  $("before").hidden = !Object.keys(folder.pages).length;
  $("runs").replaceChildren(...Object.entries(folder.pages).map(([run, pages]) =>
    make("li", {}, run, ...links(pages).flatMap(link => [" · ", link]))));
}

async function watch(started) {
  let end = 0, text = "", progress;
  do {
    progress = await ask("run?start=" + end);
    if (progress.error || progress.state === "none") return;
    const low = $("output").scrollHeight - $("output").scrollTop - $("output").clientHeight < 40;
    text += progress.output;
    end = progress.end;
    $("running").hidden = false;
    // A line that was written over shows its last state.
    $("output").textContent = progress.commands.map(command => "$ " + command).join("\n") + "\n\n" + text.replace(/[^\n]*\r(?!\n)/g, "");
    if (low) $("output").scrollTop = $("output").scrollHeight;
    if (started) $("running").scrollIntoView();
    started = false;
    const busy = progress.state === "running";
    $("state").textContent = progress.state + (busy || progress.status === null ? "" : `, exit status ${progress.status}`);
    $("cancel").hidden = !busy;
    $("links").replaceChildren(...links(progress.pages));
    if (busy) await new Promise(resolve => setTimeout(resolve, 500));
  } while (progress.state === "running");
  await list();
  await compose();
}

$("form").onsubmit = event => event.preventDefault();
$("copy").onclick = () => navigator.clipboard.writeText($("command").textContent);
$("cancel").onclick = () => ask("cancel", {});
$("run").onclick = async () => {
  $("run").disabled = true;
  const answer = await ask("run", { verb: form.verb, values: filled });
  if (answer.error) return compose();
  $("cancel").hidden = false;
  watch(true);
};

list().then(() => {
  $("verbs").append(...folder.forms.map(({ verb }) => make("button", { textContent: verb, onclick: () => choose(verb) })));
  choose("audit");
  watch();
});
