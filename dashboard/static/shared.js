// What charts and swimlanes share.

// Return the value of a CSS property, such as a colour of the theme.
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Return what an address answers as JSON; null while the server is away: the page goes on showing what it has.
export async function read(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

// Colours that people who do not see all hues can distinguish (after Okabe and Ito), in their order.
const COLOURS = 8;
export const palette = () => Array.from({ length: COLOURS }, (_, number) => css(`--series-${number}`));

// Open this page for another range of time, in epoch ms.
export function showRange(since, until) {
  const to = new URL(location.href);
  for (const name of ["range", "from", "to", "page"]) to.searchParams.delete(name);
  to.searchParams.set("from", new Date(since).toISOString());
  to.searchParams.set("to", new Date(until).toISOString());
  location.assign(to);
}
