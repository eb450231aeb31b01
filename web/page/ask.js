// Asks the server with the token, which the address holds behind its # sign. It goes into a header: a cookie would go to
// the programs behind all other ports of this machine too.
const key = "ductor-token";
let token = new URLSearchParams(location.hash.slice(1)).get("token");

try {
  if (token) sessionStorage.setItem(key, token);
  token ??= sessionStorage.getItem(key);
} catch {
  // the browser keeps nothing: after a reload the page asks for its address
}
if (location.hash) history.replaceState(null, "", location.pathname + location.search);
addEventListener("hashchange", () => location.reload()); // the address of a newer ductor was opened in this tab

const base = location.pathname.replace(/[^/]*$/, "api/");

export class Refused extends Error {}

// ask requests a path of the API. It throws a Refused with the server's words unless the answer is a success.
export async function ask(path, options = {}) {
  const response = await fetch(base + path, { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw Object.assign(new Refused(body.error ?? "ductor does not answer"), { status: response.status });
}
