// Complaints of a person who uses the page of a rollout that is open, a line each.
(async () => {
  const complaints = [];
  const expect = (what, is) => is || complaints.push(what);
  const place = (id) => document.getElementById(id);
  const objects = () => [...document.querySelectorAll("#list details summary")].filter((summary) => /Ray(Cluster|Job)/.test(summary.textContent));
  const type = (text) => {
    place("query").value = text;
    place("query").dispatchEvent(new Event("input"));
  };
  const go = async (hash) => {
    const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
    location.hash = hash;
    await changed;
  };
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

  expect("there are not two objects with findings", objects().length === 2);
  expect("nobody is told that the objects are denied", objects().every((summary) => summary.querySelector(".denied")));
  expect("what is gone is not there", place("list").textContent.includes("RayCluster gone/old: RF105"));
  press("/");
  expect("/ does not lead to the search", document.activeElement === place("query"));
  type("rf104 ONERROR");
  expect("the search does not find one object", objects().length === 1);
  type("no such words");
  expect("the search finds what is not there", objects().length === 0);
  press("Escape");
  expect("Escape does not end the search", objects().length === 2);

  await go("#team=research");
  expect("the address of a team does not show it alone", objects().length === 1 && objects()[0].textContent.includes("research/"));
  const opened = new Promise((resolve) => objects()[0].parentElement.addEventListener("toggle", resolve, { once: true }));
  objects()[0].click();
  await opened;
  const patch = document.querySelector("#list details[open] pre")?.textContent ?? "";
  expect(`the patch is ${patch}`, patch.startsWith("kubectl patch raycluster ") && patch.includes(" -n research --type=json -p '[\n"));
  await go("#rule=RF105");
  expect("the address of a rule does not show it alone", [...document.querySelectorAll("#list h2")].some((title) => title.textContent.startsWith("RF105")));
  await go("");
  place("by").value = "team";
  place("clear").click();

  const open = () => document.querySelectorAll("#list details[open]").length;
  expect("what was opened is closed", open() === 1);
  dispatchEvent(new Event("beforeprint"));
  const closed = [...document.querySelectorAll("#list details")].filter((element) => !element.open || !element.querySelector(".body"));
  expect(`${closed.length} objects are closed on paper`, closed.length === 0);
  // Of a hostile name there is no command that a shell could obey.
  expect("a command has a hostile name", ![...document.querySelectorAll("pre")].some((element) => element.textContent.includes("onerror")));
  expect("a name became markup", document.querySelectorAll("img, #list script").length === 0);
  dispatchEvent(new Event("afterprint"));
  expect("not what was open is open after printing", open() === 1);
  return complaints;
})()
