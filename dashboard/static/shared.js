// What charts and swimlanes share.

// Return the value of a CSS property, such as a colour of the theme.
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Return what an address answers as JSON; null while the server is away: the page goes on showing what it has.
export async function read(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
}
