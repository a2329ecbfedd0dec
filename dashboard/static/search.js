// Search from anywhere: "/" comes to the field, arrows go through the hits, Enter opens one. Hits are those of the page of
// the search, so that names are escaped, and addresses are made, in one place.
const field = document.getElementById("find"), list = document.getElementById("found");
// The field shows the first few of each kind.
const MOST_OF_KIND = 4, WAIT_MS = 150, SHORTEST = 2;
let pending = null, latest = 0, chosen = -1;

function close() {
  latest += 1;
  list.hidden = true;
  chosen = -1;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function choose(place) {
  const options = [...list.children];
  if (!options.length) return;
  chosen = (place + options.length) % options.length;
  options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
  field.setAttribute("aria-activedescendant", options[chosen].id);
  options[chosen].scrollIntoView({ block: "nearest" });
}

async function find() {
  const text = field.value.trim();
  if (text.length < SHORTEST) { close(); return; }
  latest += 1;
  const asked = latest, parameters = new URLSearchParams(new FormData(field.form));
  const answer = await fetch(`/search?${parameters}`).catch(() => null);
  if (!answer?.ok || asked !== latest) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (asked !== latest) return;
  const links = Map.groupBy([...page.querySelectorAll("#hits a")], (link) => link.querySelector(".hit-kind").textContent);
  const hits = [...links.values()].flatMap((some) => some.slice(0, MOST_OF_KIND)).map((link, number) => {
    const option = document.createElement("li");
    option.id = `found-${number}`;
    option.role = "option";
    option.dataset.address = link.getAttribute("href");
    option.setAttribute("aria-selected", "false");
    option.append(...document.importNode(link, true).childNodes);
    return option;
  });
  chosen = -1;
  list.replaceChildren(...hits);
  list.hidden = !hits.length;
  field.setAttribute("aria-expanded", String(hits.length > 0));
}

field?.addEventListener("input", () => { clearTimeout(pending); pending = setTimeout(find, WAIT_MS); });
field?.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
  else if (event.key === "Enter" && chosen >= 0 && !list.hidden) location.assign(list.children[chosen].dataset.address);
  else if (event.key === "Escape" && !list.hidden) close();
  else return;
  event.preventDefault();
});
// Not on click: the field would lose the focus before.
list?.addEventListener("pointerdown", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) { event.preventDefault(); location.assign(option.dataset.address); }
});
field?.addEventListener("blur", close);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !field) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  field.focus();
  field.select();
});
