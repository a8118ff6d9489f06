// Runs the scenarios with each client, over HTTP/2 in the clear and over TLS, each pair with a
// server of its own: node check.mjs [PATTERN], where PATTERN is a regular expression for lines
// such as "omp TLS: read".
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Omp } from './omp.mjs';
import { OpenCode } from './opencode.mjs';
import { needs, scenarios } from './scenarios.mjs';
import { certificate, Server } from './server.mjs';

const pattern = new RegExp(process.argv[2] ?? '');
const top = mkdtempSync(join(tmpdir(), 'roost-'));
const count = { passed: 0, failed: 0 };
const servers = [];
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await end();
    process.exit(130);
  });
}

try {
  const tls = await certificate(join(top, 'tls'));
  // One client keeps one core busy.
  await Promise.all([Omp, OpenCode].map(async (Client) => {
    await suite(Client, 'h2c');
    await suite(Client, 'TLS', tls);
  }));
} finally {
  await end();
}
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exitCode = count.failed > 0 || count.passed === 0 ? 1 : 0;

// end stops what was started. The files stay if KEEP is set.
async function end() {
  await Promise.all(servers.map((server) => server.stop()));
  if (process.env.KEEP) console.log(`# kept ${top}`);
  else rmSync(top, { recursive: true, force: true });
}

// suite runs the scenarios with one client over one transport.
async function suite(Client, transport, tls) {
  const label = `${Client.label} ${transport}`;
  const wanted = Object.entries(scenarios).filter(([name]) => pattern.test(`${label}: ${name}`) && (!needs[name] || Client.does.has(needs[name])));
  if (wanted.length === 0) return;
  const place = join(top, `${Client.label}-${transport}`);
  const server = new Server(place, tls);
  servers.push(server);
  await server.start();
  for (const [i, [name, scenario]] of wanted.entries()) {
    await check(`${label}: ${name}`, server, () => scenario(world(Client, server, place, i)));
  }
  await server.stop();
}

// world is what a scenario gets: a conversation that has not begun, in a directory with files.
function world(Client, server, place, i) {
  const dir = join(place, 'work', String(i));
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'a.txt'), 'line one\nline two\nline three\n');
  writeFileSync(join(dir, 'b.txt'), 'bravo\n');
  writeFileSync(join(dir, 'c.md'), '# charlie\n');
  const t = { dir, server, client: new Client(server, join(place, 'home'), dir) };
  // find returns the one session that a conversation made.
  t.find = async (got) => {
    const ids = await server.created();
    assert.equal(ids.length, 1, `one conversation makes one session, not ${ids.length}; the client: ${got.error || got.stderr || got.answers}`);
    if (got.session) assert.equal(ids[0], got.session, 'the session has the id of the conversation');
    return { id: ids[0] };
  };
  t.session = async (got) => server.items((await t.find(got)).id);
  return t;
}

async function check(title, server, scenario) {
  const begun = Date.now();
  try {
    if (!server.running) await server.start();
    await server.created(); // those of a scenario that failed
    await scenario();
    assert.ok(server.running, 'the server ended');
    count.passed++;
    console.log(`ok ${title} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    count.failed++;
    console.log(`not ok ${title}\n${`${error.message}\n-- server --\n${server.lastWords()}`.replaceAll(/^/gm, '  # ')}`);
  }
}
