// A worker in another language: leases pages of a crawl on Valkey and settles them (docs/lease-protocol.md).
// node lease_worker.js HOST:PORT CRAWL PAGES     It keeps bodies in ./bodies and prints a line for each page.
const net = require('net'), fs = require('fs'), crypto = require('crypto');
const [server, crawl, wanted] = process.argv.slice(2), [host, port] = server.split(':');
const link = net.connect(Number(port), host).setEncoding('latin1'), waiting = [];
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms)), random = () => crypto.randomBytes(8).toString('latin1');
let data = '';

function parse(at) { // RESP: the value at a place, and where the next one begins; undefined while it is not whole
  const end = data.indexOf('\r\n', at), kind = data[at], size = Number(data.slice(at + 1, end)), next = end + 2;
  if (end < 0) return undefined;
  if (kind === ':') return [size, next];
  if (kind === '+' || kind === '-') return [kind === '-' ? new Error(data.slice(at + 1, end)) : data.slice(at + 1, end), next];
  if (size < 0) return [null, next];
  if (kind === '$') return data.length < next + size + 2 ? undefined : [data.slice(next, next + size), next + size + 2];
  const list = [];
  for (var after = next; list.length < size; after = found[1]) {
    var found = parse(after);
    if (!found) return undefined;
    list.push(found[0]);
  }
  return [list, after];
}
link.on('data', (more) => {
  data += more;
  for (let found; data && (found = parse(0)); data = data.slice(found[1])) {
    waiting.shift()[found[0] instanceof Error ? 1 : 0](found[0]);
  }
});
function ask(...words) {
  link.write(`*${words.length}\r\n` + words.map(String).map((word) => `$${word.length}\r\n${word}\r\n`).join(''), 'latin1');
  return new Promise((resolve, reject) => waiting.push([resolve, reject]));
}

async function main() {
  const holder = `js-${process.pid}`, out = fs.openSync('bodies', 'w'), longest = 30000;
  const [shards, library] = await ask('HMGET', `nephila:{${crawl}}:crawl`, 'shards', 'functions');
  const call = (shard, name, ...args) => ask('FCALL', `${library}_${name}`, 1, `nephila:{${crawl}:${shard}}`, '', ...args);
  for (let shard = 0, pages = 0, idle = 0, offset = 0; pages < wanted && idle < 50 * shards; shard = (shard + 1) % shards) {
    const answer = await call(shard, 'claim', 1, 60000, holder, random(), 0, holder, '{"quota":1}'), lease = answer[3][0];
    if (!lease) { idle++; await pause(20); continue; }
    const task = lease[15][0], url = task[2], until = lease[3] - answer[1], since = Date.now();
    const rest = Math.max(lease[5], lease[6], lease[7], until); // its delay, Crawl-delay, the policy's
    const release = { wait_ms: rest, delay_ms: lease[5], crawl_delay_ms: lease[6], elapsed_ms: 0 };
    const settle = (settlements, ...more) =>
      call(shard, 'settle', lease[0], lease[1], random(), 0, JSON.stringify({ settlements, release }), ...more);
    const rules = task[0] === 'r' ? [] : await call(shard, 'rules', new URL(url).origin);
    await pause(Math.max(0, until)); // the host may not be asked before
    const late = Date.now() - since > lease[4] - answer[1] - longest; // the lease could end before the answer has come
    if (late || task[0] === 'r' || (rules.length && rules[0] !== 'allow_all')) { // it reads no robots.txt: left to others
      await settle([]); idle++; continue;
    }
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(longest) });
    const body = Buffer.from(await response.arrayBuffer()); fs.writeSync(out, body); fs.fsyncSync(out);
    const outcome = { kind: 'done', status: response.status, segment: holder, offset, finish: offset += body.length };
    const page = { ...outcome, changed: true, page: response.status === 200 };
    const digest = crypto.createHash('sha256').update(body).digest('latin1');
    const settled = await settle([{ url, outcome: page }], task[1], digest, '', '');
    await call(shard, 'confirm', holder, offset); // its bytes are on the disk
    console.log(settled[1] ? 'settled' : 'refused', url, response.status); pages++; idle = 0;
  }
  link.end();
}
main().catch((error) => { console.error(error.message); process.exit(1); });
