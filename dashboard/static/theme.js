// Before anything is painted: the theme and the zone of times that this browser chose.
{
  const chosen = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const theme = chosen("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  document.documentElement.dataset.zone = chosen("zone") === "local" ? "local" : "utc";
}
