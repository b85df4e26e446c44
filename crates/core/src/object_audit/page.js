"use strict";
// Shows the report that lies in the page. Whatever it says is text: elements get it by `append`, never as markup.
const report = JSON.parse(document.getElementById("report").textContent);
const place = (id) => document.getElementById(id);
const make = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const add = (of) => (sum, item) => sum + item[of];
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const badge = (kind, text = kind) => make("span", { class: `badge ${kind}` }, text);

// Code in sentences: what stands in backticks or quotes, names of fields with the value after their colon, and annotations.
const CODE = /`[^`]+`|"[^"]*"|\b(?:[a-z]+(?:[A-Z]\w*)+|version)(?:[.[][\w.-]+\]?)*(?:: (?:"[^"]*"|[\w-]+))?|\b(?:num-[cg]pus|max-cpu|max-memory|resize-timeout)(?:: "[^"]*")?|\b[\w.-]+\.\w+\/[\w.-]*\w/g;
const sentence = (text) => {
  const parts = [];
  let end = 0;
  for (const { 0: code, index } of text.matchAll(CODE)) {
    if (code === "version") continue;
    parts.push(text.slice(end, index), make("code", {}, code.replaceAll("`", "").replace(/\.$/, "")));
    end = index + code.replace(/\.$/, "").length;
  }
  return [...parts, text.slice(end)];
};

const objects = report.findings.map((object) => {
  const name = (object.namespace ? `${object.namespace}/` : "") + object.name;
  const findings = object.findings.map((finding) => {
    const state = finding.exempt ? "exempt" : { enforce: "denied", warn: "warned", audit: "recorded", off: "off" }[finding.mode];
    const words = [finding.rule, finding.path, finding.problem, finding.why, finding.fix, state, object.kind, name, object.team];
    return { ...finding, state, text: words.join(" ").toLowerCase() };
  });
  const worst = findings.some((finding) => finding.state === "denied") ? 0 : findings.some((finding) => finding.wouldDeny) ? 1 : 2;
  return { ...object, key: `${object.kind} ${name}`, label: name, findings, worst };
});
const names = Object.fromEntries(report.rules.map((rule) => [rule.rule, rule]));

const SHOWN = {
  "": () => true,
  denied: (finding) => finding.state === "denied",
  deny: (finding) => finding.state === "denied" || finding.wouldDeny,
  patch: (_, object) => object.patch.length > 0,
  new: (finding) => finding.new,
};

// The command that mends an object. A name that is none in Kubernetes gets none: a shell or kubectl could obey it.
const command = (object) => {
  const isName = (text) => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text);
  if (!isName(object.name) || (object.namespace && !isName(object.namespace))) return null;
  const operations = object.patch.map((operation) => `  ${JSON.stringify(operation)}`).join(",\n");
  const namespace = object.namespace ? ` -n ${object.namespace}` : "";
  return `kubectl patch ${object.kind.toLowerCase()} ${object.name}${namespace} --type=json -p '[\n${operations.replaceAll("'", "'\\''")}\n]'`;
};

const copied = (button, text) => async () => {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
};

const patch = (object) => {
  const text = object.patch.length > 0 && command(object);
  if (!text) return [make("p", { class: "why" }, "No patch: each of these needs a decision of its owner.")];
  const left = object.findings.length - object.mended;
  const rest = left > 0 ? `; ${left} more ${left === 1 ? "needs" : "need"} a decision of its owner.` : ".";
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", copied(button, text));
  return [
    make("p", { class: "patch" }, make("span", {}, `The patch mends ${plural(object.mended, "finding")}${rest} Mend the file in Git in the same way.`), button),
    make("pre", { tabindex: 0 }, make("code", {}, text)),
  ];
};

const finding = (found) => {
  const kind = found.state !== "denied" && found.wouldDeny ? "would" : found.state;
  const title = make("p", {}, make("a", { href: `#rule=${found.rule}` }, found.rule), ` ${names[found.rule]?.name ?? ""} `, badge(found.state));
  if (kind === "would") title.append(" ", badge("would", "would be denied"));
  if (found.new) title.append(" ", badge("new"));
  const policy = found.policy ? [" ", make("span", { class: "why" }, `By policy ${found.policy}.`)] : [];
  return make("div", { class: `finding ${kind}` }, title,
    make("p", {}, make("code", {}, found.path), " ", ...sentence(`${found.problem}.`)),
    make("p", { class: "why" }, ...sentence(found.why)),
    make("p", {}, make("b", {}, "Fix: "), ...sentence(found.fix), ...policy));
};

// Open objects stay open while one searches; a body is made when it is first looked at.
const opened = new Set();
const details = (group, { object, findings }) => {
  const key = `${group} ${object.key}`;
  const rules = [...new Set(findings.map((found) => found.rule))];
  const summary = make("summary", {}, make("b", {}, object.label), make("span", { class: "kind" }, object.kind),
    ...[[badge("denied")], [badge("would", "would be denied")], []][object.worst]);
  if (findings.some((found) => found.new)) summary.append(badge("new"));
  if (place("by").value === "rule") summary.append(make("span", { class: "kind" }, object.team));
  summary.append(make("span", { class: "rules" }, rules.join(" ")));
  const element = make("details", {}, summary);
  const fill = () => {
    if (element.open) opened.add(key);
    else opened.delete(key);
    if (element.open && element.childElementCount === 1)
      element.append(make("div", { class: "body" }, ...findings.map(finding), ...patch(object)));
  };
  element.addEventListener("toggle", fill);
  element.fill = fill;
  element.open = opened.has(key);
  fill();
  return element;
};

// The team or rule that the address chooses, to send to a team: `#team=research`, `#rule=RF105`.
const chosen = () => new URLSearchParams(location.hash.slice(1));

const list = () => {
  const words = place("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  const shows = SHOWN[place("show").value];
  const [team, rule, byRule] = [chosen().get("team"), chosen().get("rule"), place("by").value === "rule"];
  const groups = new Map();
  let count = 0;
  for (const object of objects) {
    if (team !== null && object.team !== team) continue;
    const found = object.findings.filter((finding) =>
      (rule === null || finding.rule === rule) && shows(finding, object) && words.every((word) => finding.text.includes(word)));
    if (found.length > 0) count += 1;
    for (const finding of found) {
      const key = byRule ? finding.rule : object.team;
      const group = groups.get(key) ?? groups.set(key, new Map()).get(key);
      const entry = group.get(object) ?? group.set(object, { object, findings: [] }).get(object);
      entry.findings.push(finding);
    }
  }
  const sections = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, group]) => {
    const entries = [...group.values()].sort((a, b) => a.object.worst - b.object.worst);
    const title = make("h2", {}, byRule ? `${key} ${names[key]?.name ?? ""}` : key, make("small", {}, plural(entries.length, "object")));
    const why = byRule ? [make("p", { class: "why" }, ...sentence(names[key]?.summary ?? ""))] : [];
    return make("section", {}, title, ...why, ...entries.map((entry) => details(key, entry)));
  });
  const what = [team !== null && `of team ${team}`, rule !== null && `with ${rule}`].filter(Boolean).join(" ");
  place("count").textContent = `${plural(count, "object")} ${what}`.trim() + ` of ${objects.length} with findings`
    + (report.leftOut > 0 ? `; ${report.leftOut} more did not fit into this page: rayfit rollout -o json has them` : "");
  place("clear").hidden = count === objects.length && !what;
  place("list").replaceChildren(...sections, ...gone());
};

const gone = () => {
  if (!report.earlier?.gone.length) return [];
  const items = report.earlier.gone.map(({ object, rule, team }) => make("li", {}, `${object}: ${rule}`, make("span", { class: "why" }, ` ${team}`)));
  const summary = make("summary", {}, make("b", {}, `Gone ${since()}: mended or deleted`));
  return [make("section", {}, make("details", {}, summary, make("div", { class: "body" }, make("ul", { class: "gone" }, ...items))))];
};
const since = () => (report.earlier.at ? `since ${report.earlier.at.slice(0, 10).replaceAll("-", "\u2011")}` : "since the earlier report");

const tiles = () => {
  const tile = (value, text, kind = "") => make("div", {}, make("b", { class: value > 0 ? kind : "" }, value), make("span", {}, text));
  const patched = objects.filter((object) => object.patch.length > 0).length;
  const all = [
    tile(report.objects, "Ray objects"),
    tile(report.denied, "would be denied now", "denied"),
    tile(report.wouldDeny, "more if all were enforced", "would"),
    tile(patched, "have a patch here"),
  ];
  if (report.earlier) all.push(
    tile(report.teams.reduce(add("gone"), 0), `findings gone ${since()}`, "good"),
    tile(report.earlier.new, `findings new ${since()}`, "would"));
  if (report.workerPods) {
    const idle = report.workerPods.map((cluster) => cluster.idle ?? {});
    const money = report.workerPods.some(({ have }) => have.perHour > 0);
    const sum = (of) => rounded(idle.reduce((total, amounts) => total + (amounts[of] ?? 0), 0));
    all.push(tile(sum("pods"), "idle worker pods", "would"), tile(sum(money ? "perHour" : "cpus"), money ? "what these cost an hour" : "CPUs that these have", "would"));
  }
  place("tiles").append(...all);
};
const rounded = (number) => Math.round(number * 100) / 100;

const table = (title, key, columns, rows) => {
  const cell = (row, [, of, kind]) =>
    make("td", { class: kind === undefined ? "" : `n ${row[of] === 0 ? "zero" : kind}` }, row[of]);
  const head = make("tr", {}, make("th", { scope: "col" }, title), ...columns.map(([text, , kind]) => make("th", { scope: "col", class: kind === undefined ? "" : "n" }, text)));
  const body = rows.map((row) => make("tr", {}, make("td", { title: row[key] }, key === "cluster" ? row[key] : make("a", { href: `#${key}=${encodeURIComponent(row[key])}` }, row[key])), ...columns.map((column) => cell(row, column))));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `By ${key}` },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
};

const tables = () => {
  const counts = [["Denied", "denied", "denied"], ["If enforced", "wouldDeny", "would"]];
  const teams = report.teams.map((row) => {
    const [all, old] = [row.gone + row.findings - row.new, row.gone];
    const bar = make("progress", { max: all || 1, value: all ? old : 1, "aria-label": `${old} of ${all} findings gone` });
    return { ...row, bar: make("span", { class: old > 0 ? "good" : "" }, bar, ` ${old}`) };
  });
  teams.sort((a, b) => b.denied - a.denied || b.wouldDeny - a.wouldDeny || b.findings - a.findings);
  const progress = report.earlier ? [["New", "new", "would"], ["Gone", "bar", ""]] : [];
  place("tables").append(
    table("Team", "team", [["Objects", "objects", ""], ...counts, ...progress], teams),
    table("Rule", "rule", [["Name", "name"], counts[0], ["Warned", "warned", ""], ["Recorded", "audited", ""], ["Exempt", "exempt", ""], counts[1]], report.rules),
    ...workers());
};

// The worker pods of each RayCluster: what they have, and what of it could be saved; in brackets the price of an hour.
const amounts = (has) => {
  const parts = Object.entries({ CPU: has.cpus, GiB: has.gib, GPU: has.gpus }).filter(([, amount]) => amount > 0);
  const price = has.perHour > 0 ? ` (${has.perHour.toFixed(2)})` : "";
  return parts.map(([unit, amount]) => `${rounded(amount)} ${unit}`).join(", ") + price;
};
const workers = () => {
  const rows = report.workerPods?.map(({ cluster, have, idle, notAskedFor, notKnown }) => ({
    cluster, pods: have.pods, have: amounts(have), idle: idle?.pods ?? "?", spare: idle ? amounts(idle) : "",
    free: notAskedFor ? amounts(notAskedFor) : "", why: notKnown ?? "",
  }));
  const columns = [["Pods", "pods", ""], ["Have", "have"], ["Idle for 5 min", "idle", "would"], ["These have", "spare"], ["Not asked for", "free"], ["Not known, because", "why"]];
  return rows ? [table("Worker pods of", "cluster", columns, rows)] : [];
};

const openAll = (open) => {
  for (const element of document.querySelectorAll("#list details")) {
    element.open = open;
    element.fill?.();
  }
};

const follow = () => {
  for (const by of ["team", "rule"]) if (chosen().has(by)) place("by").value = by;
  list();
};

tiles();
tables();
follow();
place("bar").hidden = false;
if (!report.earlier) place("show").querySelector("[value=new]").remove();
for (const id of ["query", "show", "by"]) place(id).addEventListener("input", list);
addEventListener("hashchange", () => {
  follow();
  if (location.hash) place("list").scrollIntoView({ block: "nearest" });
});
place("clear").addEventListener("click", () => {
  place("query").value = place("show").value = "";
  list();
});
place("all").addEventListener("click", ({ currentTarget: button }) => {
  const open = button.getAttribute("aria-pressed") === "false";
  button.setAttribute("aria-pressed", open);
  button.textContent = open ? "Close all" : "Open all";
  openAll(open);
});
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, select");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    place("query").focus();
  } else if (event.key === "Escape" && event.target === place("query")) {
    place("query").value = "";
    list();
  }
});
// On paper everything is open.
let before = [];
addEventListener("beforeprint", () => {
  before = [...opened];
  openAll(true);
});
addEventListener("afterprint", () => {
  openAll(false);
  before.forEach((key) => opened.add(key));
  list();
});
