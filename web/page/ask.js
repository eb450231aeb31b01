// Sends requests to the server with the token, which follows the # sign in the address. The token is sent in a header,
// because browsers send cookies to all other ports of this machine, too.
const key = "ductor-token";
let token = new URLSearchParams(location.hash.slice(1)).get("token");

try {
  if (token) sessionStorage.setItem(key, token);
  token ??= sessionStorage.getItem(key);
} catch {
  // The browser stores nothing for this page, so after a reload, the page has no token.
}
if (location.hash) history.replaceState(null, "", location.pathname + location.search);
addEventListener("hashchange", () => location.reload()); // the user opened the address of a newer ductor in this tab

const base = location.pathname.replace(/[^/]*$/, "api/");

export class Refused extends Error {}

// ask requests a path of the API. If the server returns an error, ask throws a Refused with the server's text. If the
// server does not answer, ask throws an error that tells the user to try again.
export async function ask(path, options = {}) {
  const request = { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } };
  const response = await fetch(base + path, request).catch((err) => {
    throw new Error("ductor does not answer. Check that it is running, and try again.", { cause: err });
  });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw Object.assign(new Refused(body.error ?? "ductor does not answer"), { status: response.status });
}
