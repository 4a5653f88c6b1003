// What a person changes. Each asks before, tells after, and offers the way back where there is one.

import { get, post, put, remove } from "./api.js";
import { ask, attempt, notice } from "./talk.js";

const named = (domain) => `domains/${encodeURIComponent(domain)}`;

export const pause = (domain) => attempt(async () => {
  if (!await ask(`Pause ${domain}?`, { text: "Nothing more is asked of it from now on; what is queued stays queued.", go: "Pause it" })) return false;
  await post(`${named(domain)}/pause`);
  notice(`${domain} is paused.`, () => post(`${named(domain)}/resume`));
  return true;
});

export const resume = (domain) => attempt(async () => {
  await post(`${named(domain)}/resume`);
  notice(`${domain} goes on.`, () => post(`${named(domain)}/pause`));
  return true;
});

export const block = (pattern, reason) => attempt(async () => {
  if (!reason) {
    reason = await ask(`Block ${pattern}?`, {
      text: "It is not asked for any more, nor what lies below it. What is stored stays stored.", field: { label: "Why? Whoever asks later is told." }, go: "Block it", danger: true,
    });
    if (!reason) return false;
  }
  const made = await post("blocklist", { pattern, reason });
  notice(`${made.pattern} is blocked.`, () => remove("blocklist", { pattern: made.pattern }));
  return true;
});

export const takeDown = (what, isDomain) => attempt(async () => {
  const reason = await ask(`Take down ${what}?`, {
    text: `It is blocked, and what was stored of ${isDomain ? "this domain and all below it" : "this page"} is taken out of the archives for good. There is no way back but fetching it anew.`,
    field: { label: "Why? It is kept with the record." }, go: "Take it down", danger: true,
  });
  if (!reason) return false;
  const made = await post("takedowns", isDomain ? { domains: [what], reason } : { urls: [what], reason });
  const { running } = await get("status");
  const when = running ? "is being taken out" : "is taken out when a crawl runs here again, or at once by nephila purge";
  notice(`Takedown ${made.id} is on record: ${what} is blocked, and what was stored ${when}.`);
  return true;
});

export const unblock = (entry) => attempt(async () => {
  if (!await ask(`Lift the block on ${entry.pattern}?`, { text: `It was blocked because: ${entry.reason}`, go: "Lift it" })) return false;
  await remove("blocklist", { pattern: entry.pattern });
  notice(`${entry.pattern} may be asked again.`, () => post("blocklist", { pattern: entry.pattern, reason: entry.reason }));
  return true;
});

const policyOf = (domain) => `policies/${encodeURIComponent(domain)}`;

async function holding(domain) {
  const { domain: _, max_qps, ...rest } = await get(policyOf(domain));
  return rest;
}

// Changes a part of a policy, and answers what of it held before. The rest stays as it is by now, whoever has changed it
// since the page was opened: a domain that was paused meanwhile stays paused.
async function amend(domain, changes) {
  const before = await holding(domain);
  await put(policyOf(domain), { ...before, ...changes });
  return Object.fromEntries(Object.keys(changes).map((name) => [name, before[name]]));
}

export const setPolicy = (domain, changes) => attempt(async () => {
  if (!await ask(`Change the policy of ${domain}?`, { text: "It holds from the next request on.", go: "Change it" })) return false;
  const before = await amend(domain, changes);
  notice(`The policy of ${domain} is changed.`, () => amend(domain, before));
  return true;
});

export const dropPolicy = (domain) => attempt(async () => {
  if (!await ask(`Take back the policy of ${domain}?`, { text: "The settings of the crawl hold again.", go: "Take it back" })) return false;
  const before = await holding(domain);
  await remove(policyOf(domain));
  notice(`${domain} follows the settings of the crawl.`, () => put(policyOf(domain), before));
  return true;
});

export const again = (url) => attempt(async () => {
  if (!await ask("Fetch it again now?", { text: url, go: "Fetch it" })) return false;
  const answer = await post("recrawl", { urls: [url], priority: "immediate" });
  notice(answer.queued ? "It is first in line." : answer.unknown.length ? "This crawl has never met it: add it as a seed." : `Refused: ${answer.refused[0]?.detail || answer.refused[0]?.reason}`);
  return true;
});

export const revive = (urls) => attempt(async () => {
  const all = urls === null;
  if (!await ask(all ? "Put back all dead letters?" : "Put it back into the queue?", { text: all ? "Each is tried again, its retries forgiven." : urls[0], go: "Put back" })) return false;
  const answer = await post("dead-letters/retry", all ? { all: true } : { urls });
  notice(`${answer.revived} put back.`);
  return true;
});
