// Drives a roost server with the published client of pi's protocol, version 1, and checks what
// a user of that client relies on: node check.mjs ROOST_BINARY
//
// The server is started here, and killed without warning in the middle of an answer.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { PiClient } from '@earendil-works/pi-client';
import { createUnixTransportFactory } from '@earendil-works/pi-client/unix';
import { RemoteSession } from '@earendil-works/pi-coding-agent/client';

const roost = process.env.ROOST ?? 'bin/roost';
const home = mkdtempSync(join(tmpdir(), 'roost-interop-'));
const socket = join(home, 'roost.sock');
const USE_TOOL = 'please use a tool';
const SLOWLY = 'slow 2 one two three four five six';

let server;

// start runs the server and resolves once it says that it is ready.
function start() {
  server = spawn(roost, ['serve', '--config', new URL('roost.yaml', import.meta.url).pathname, '--data', join(home, 'data'), '--socket', socket, '--listen', '127.0.0.1:0']);
  server.stderr.resume();
  return new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', (chunk) => {
      said += chunk;
      if (/^ready/m.test(said)) resolve();
    });
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
}

function stop(signal) {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill(signal);
  return ended;
}

async function connected() {
  const client = new PiClient({ transportFactory: createUnixTransportFactory({ path: socket }) });
  const faults = [];
  client.onConnectionStateChange((change) => change.error && faults.push(change.error.message));
  const hello = await client.connect();
  return { client, hello, faults };
}

// until waits for a condition on a session's view, and gives up after a while.
function until(session, what, condition, ms = 15000) {
  return new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    const timer = setTimeout(() => { unsubscribe(); reject(new Error(`never: ${what}`)); }, ms);
    const look = () => {
      if (!condition(session.state)) return;
      clearTimeout(timer);
      queueMicrotask(() => unsubscribe());
      resolve();
    };
    unsubscribe = session.subscribe(look);
    look();
  });
}

const refused = (promise, code) => assert.rejects(promise, (error) => error.code === code);
const said = (state) => state.transcript.filter((i) => i.role === 'assistant').map((i) => i.content.map((c) => c.text ?? '').join('')).join('|');
const statuses = (state) => state.transcript.map((i) => `${i.role}:${i.status ?? ''}`);

before(start);
after(async () => {
  await stop('SIGTERM');
  rmSync(home, { recursive: true, force: true });
});

test('a turn with a tool, seen by two connections', async () => {
  const a = await connected();
  const b = await connected();
  assert.equal(a.hello.protocolVersion, 1);
  assert.ok(a.hello.models.length > 0);
  await refused(a.client.acquireSession('nowhere', { mode: 'shared' }), 'not_found');

  const mine = await RemoteSession.create(a.client, { cwd: home });
  const theirs = await RemoteSession.open(b.client, mine.id);
  const seen = new Set();
  let longest = '';
  mine.subscribe((state) => {
    statuses(state).forEach((s) => seen.add(s));
    const text = said(state);
    assert.ok(text.length >= longest.length, `the text shrank from ${longest} to ${text}`);
    longest = text;
  });
  await mine.submit(USE_TOOL);
  assert.equal(mine.phase, 'idle');
  assert.ok(seen.has('assistant:streaming'), [...seen].join(' '));
  assert.ok(mine.state.transcript.some((i) => i.role === 'tool' && i.status === 'complete' && i.toolName === 'bash'));
  assert.ok(!statuses(mine.state).some((s) => /streaming|running/.test(s)));
  await until(theirs, 'equal views', (state) => JSON.stringify(state.transcript) === JSON.stringify(mine.state.transcript));

  const { id } = mine;
  await theirs.dispose();
  await mine.dispose();
  assert.ok((await a.client.listSessions()).some((s) => s.id === id && s.cwd === home));
  assert.deepEqual([...a.faults, ...b.faults], []);
  a.client.disconnect();
  b.client.disconnect();
});

test('busy, steer and abort from another connection', async () => {
  const a = await connected();
  const b = await connected();
  const c = await connected();
  const mine = await RemoteSession.create(a.client, { cwd: home, thinkingLevel: 'low' });
  const theirs = await RemoteSession.open(b.client, mine.id);
  const raw = await c.client.acquireSession(mine.id, { mode: 'shared' });
  await refused(raw.steer('too early'), 'busy');
  await refused(raw.abort(), 'busy');
  await raw.setThinking('high');
  await until(mine, 'the new thinking level', (state) => state.snapshot.thinkingLevel === 'high');

  const turn = mine.submit(SLOWLY);
  await until(theirs, 'the answer streams', (state) => said(state) !== '');
  await refused(raw.prompt('no'), 'busy');
  await refused(raw.setThinking('off'), 'busy');
  await theirs.submit('a steer');
  assert.ok(JSON.stringify(theirs.state.transcript).includes('a steer'));
  await theirs.abort();
  await turn;
  assert.equal(mine.phase, 'idle');
  assert.ok(statuses(mine.state).includes('assistant:aborted'));
  assert.equal(mine.state.snapshot.queuedSteerCount, 0);

  await mine.submit('again');
  assert.equal(statuses(mine.state).at(-1), 'assistant:complete');
  assert.deepEqual([...a.faults, ...b.faults, ...c.faults], []);
  [a, b, c].forEach((x) => x.client.disconnect());
});

test('the server is killed in the middle of an answer', async () => {
  const a = await connected();
  const mine = await RemoteSession.create(a.client, { cwd: home });
  const turn = mine.submit(SLOWLY).catch(() => 'lost');
  await until(mine, 'some words', (state) => said(state).includes('two'));
  const before = said(mine.state);
  await stop('SIGKILL');
  assert.equal(await turn, 'lost');
  await start();

  const b = await connected();
  assert.ok(b.hello.sessions.some((s) => s.id === mine.id));
  const again = await RemoteSession.open(b.client, mine.id);
  assert.ok(said(again.state).startsWith(before), `${said(again.state)} does not begin with ${before}`);
  await until(again, 'the end of the answer', (state) => state.snapshot.phase === 'idle', 30000);
  const words = said(again.state).split(/\s+/).filter((w) => /^(one|two|three|four|five|six)$/.test(w));
  assert.deepEqual(words, ['one', 'two', 'three', 'four', 'five', 'six'], 'no word is lost and none comes twice');
  assert.equal(statuses(again.state).join(' '), 'user: assistant:complete');
  await again.submit('and on');
  assert.deepEqual(b.faults, []);
  b.client.disconnect();
});
