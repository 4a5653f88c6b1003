// The control API, as anybody may use it. A token, where one is wanted, is kept for this tab only.

import { ask } from "./talk.js";

const base = new URL("api/v1/", document.baseURI);
const KEPT = "nephila-token";

export class Problem extends Error {
  constructor(status, body) {
    super([body.detail || body.title || `HTTP ${status}`, body.hint].filter(Boolean).join(": "));
    this.status = status;
    this.title = body.title || "It was refused";
  }
}

async function send(method, path, { query = {}, body } = {}) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) if (value !== "") url.searchParams.set(name, value);
  const headers = {};
  const token = sessionStorage.getItem(KEPT) || "";
  if (/^[!-~]+$/.test(token)) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, told);
  return told;
}

let asking = null, declined = false;

async function withToken(method, path, more) {
  for (;;) {
    try {
      return await send(method, path, more);
    } catch (problem) {
      if (problem.status !== 401 || declined) throw problem;
      asking ??= askForToken().finally(() => { asking = null; });
      if (!await asking) throw problem;
    }
  }
}

async function askForToken() {
  const wrong = sessionStorage.getItem(KEPT);
  const given = await ask("This crawl wants a token", {
    text: `${wrong ? "The one that was given is not known here. " : ""}Whoever started it has one: it stands in the file that was given with --token-file.`,
    field: { label: "Token", type: "password" },
    go: "Use it",
  });
  if (given) sessionStorage.setItem(KEPT, given);
  declined = !given;
  return !declined;
}

// Who has said no is asked again only when he says so.
export function askAgain() {
  declined = false;
}

export const get = (path, query) => withToken("GET", path, { query });
export const post = (path, body = {}) => withToken("POST", path, { body });
export const put = (path, body) => withToken("PUT", path, { body });
export const remove = (path, query) => withToken("DELETE", path, { query });
