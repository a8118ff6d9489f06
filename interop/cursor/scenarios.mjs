// What each client must be able to do with roost. A scenario gets a fresh conversation with a
// directory of its own, and looks at three things: what the client shows, what is in the
// directory, and what roost has of the session.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { partsOf, prompted, spoken, toolsOf, whole } from './transcript.mjs';

const read = (t, name) => readFileSync(join(t.dir, name), 'utf8');

// What the model says to "do slow", which takes it ten seconds.
export const slow = 'one two three four five six seven eight nine ten '.repeat(10);

// one asks a single prompt and returns what the client got and what the session holds of it.
async function one(t, name, options) {
  const got = await t.client.ask([`do ${name} ${t.dir}`], options);
  assert.equal(got.error, '', `the client shows an error: ${got.error}`);
  assert.equal(got.code, 0, got.stderr);
  const items = await t.session(got);
  whole(items);
  assert.deepEqual(spoken(items), got.answers, 'the client shows what the session holds');
  return { ...got, items, answer: got.answers[0] };
}

// needs names what a client must be able to do for a scenario to make sense.
export const needs = { question: 'questions' };

export const scenarios = {
  'text': async (t) => {
    const { answer, items } = await one(t, 'text');
    assert.equal(answer, 'Hello from the script, in several pieces: äöü 漢字 🙂.');
    assert.equal(prompted(items).length, 1);
  },
  'thinking and text': async (t) => {
    const { answer, thinking, items } = await one(t, 'think');
    assert.equal(answer, 'That was easy.');
    assert.equal(thinking, 'Let me see what that is.');
    assert.deepEqual(partsOf(items, 'reasoning'), [thinking]);
  },

  'read': async (t) => {
    const { answer } = await one(t, 'read');
    assert.match(answer, /^It says: [^]*line one[^]*line two[^]*line three/);
  },
  'write': async (t) => {
    const { answer } = await one(t, 'write');
    assert.equal(answer, 'Writing. Written.');
    assert.equal(read(t, 'made/new.txt'), '  first\nsecond\n');
  },
  'edit': async (t) => {
    await one(t, 'edit');
    assert.equal(read(t, 'a.txt'), 'line one\nline 2\nline three\n');
  },
  'edit that does not fit': async (t) => {
    const { items } = await one(t, 'misedit');
    assert.equal(read(t, 'a.txt'), 'line one\nline two\nline three\n');
    assert.equal(toolsOf(items)[0].status, 'failed');
  },
  'delete': async (t) => {
    const { items } = await one(t, 'delete');
    const can = t.client.constructor.does.has('delete');
    assert.equal(existsSync(join(t.dir, 'b.txt')), !can);
    assert.equal(toolsOf(items)[0].status, can ? 'complete' : 'failed');
  },
  'ls': async (t) => {
    const { answer } = await one(t, 'ls');
    assert.match(answer, /a\.txt/);
    assert.match(answer, /b\.txt/);
  },
  'glob': async (t) => {
    const { answer } = await one(t, 'glob');
    assert.match(answer, /a\.txt/);
    assert.doesNotMatch(answer, /c\.md/);
  },
  'grep': async (t) => {
    const { answer } = await one(t, 'grep');
    assert.match(answer, /line two/);
    assert.match(answer, /line three/);
    // omp's search shows the lines around a match too, and marks the matches.
    assert.doesNotMatch(answer, /(^|[*\n])\d*:?line one/);
  },
  'shell': async (t) => {
    const { answer, tools } = await one(t, 'shell');
    assert.match(answer, /tick 1\s+tick 2\s+tick 3/);
    assert.equal(read(t, 'shell.txt'), 'made\n');
    if (t.client.constructor.does.has('streams')) assert.ok(tools[0].pieces >= 3, `${tools[0].pieces} pieces`);
  },
  'shell that fails': async (t) => {
    const { answer } = await one(t, 'fail');
    assert.match(answer, /before/);
    assert.match(answer, /oops/);
    if (t.client.constructor.does.has('exit code')) assert.match(answer, /\b3\b/);
  },
  'parallel tools': async (t) => {
    const { answer, items } = await one(t, 'parallel');
    assert.equal(toolsOf(items).length, 3);
    assert.match(answer, /line one/);
    if (t.client.constructor.does.has('parallel')) assert.match(answer, /^1: [^]*line one[^]* 2: [^]*tock[^]* 3: [^]*bravo/);
  },
  "the client's own tool": async (t) => {
    const { prompt, answer: wanted } = t.client.constructor.ownTool;
    const { answer } = await one(t, prompt);
    assert.match(answer, wanted);
  },
  'tool that nobody has': async (t) => {
    const { answer, items } = await one(t, 'unknowntool');
    assert.match(answer, /^It said: .+/);
    assert.equal(toolsOf(items)[0].status, 'failed');
  },
  'todo list': async (t) => {
    const { answer } = await one(t, 'todo');
    assert.equal(answer, 'Noted.');
  },
  'question': async (t) => {
    const { answer } = await one(t, 'ask');
    assert.match(answer, /^It said: .+/);
  },

  'turns in one process': async (t) => {
    const got = await t.client.ask([1, 2, 3].map((n) => `do turn ${n} ${t.dir}`));
    assert.deepEqual(got.answers, ['Answer 1.', 'Answer 2.', 'Answer 3.']);
    turnsIn(await t.session(got), 3);
  },
  'history in a new process': async (t) => {
    const first = await t.client.ask([`do turn 1 ${t.dir}`, `do read ${t.dir}`]);
    const id = await t.find(first);
    const then = await t.client.ask([`do turn 3 ${t.dir}`, `do shell ${t.dir}`]);
    assert.equal(then.answers[0], 'Answer 3.');
    assert.match(then.answers[1], /tick 3/);
    assert.deepEqual(await t.server.created(), [], 'it is the same session');
    turnsIn(await t.server.items(id), 4);
  },
  'server restarted between turns': async (t) => {
    const id = await t.find(await t.client.ask([`do turn 1 ${t.dir}`]));
    await t.server.stop('SIGTERM');
    await t.server.start();
    const then = await t.client.ask([`do turn 2 ${t.dir}`]);
    assert.deepEqual(then.answers, ['Answer 2.']);
    await t.server.stop('SIGKILL');
    await t.server.start();
    assert.deepEqual((await t.client.ask([`do turn 3 ${t.dir}`])).answers, ['Answer 3.']);
    assert.deepEqual(await t.server.created(), [], 'it is the same session');
    turnsIn(await t.server.items(id), 3);
  },

  'cancelled by the person': async (t) => {
    const stopped = await t.client.ask([`do slow ${t.dir}`], { interrupt: 'three' });
    assert.ok(!stopped.answers[0].includes('ten one'), `it was not stopped: ${stopped.answers[0]}`);
    const id = await t.find(stopped);
    const then = await t.client.ask([`do turn 2 ${t.dir}`]);
    assert.deepEqual(then.answers, ['Answer 2.']);
    assert.deepEqual(await t.server.created(), [], 'it is the same session');
    const items = await t.server.items(id);
    whole(items, ['complete', 'aborted']);
    assert.equal(prompted(items).length, 2);
    assert.ok(spoken(items)[0].startsWith('one two three'), spoken(items)[0]);
    assert.ok(spoken(items)[0].length < slow.length, 'a new prompt takes the place of what the old one asked for');
  },
  'error of the provider': async (t) => {
    const got = await t.client.ask([`do refused ${t.dir}`]);
    assert.match(got.error, /the test model refuses this/);
    assert.equal(prompted(await t.session(got)).length, 1);
    assert.deepEqual((await t.client.ask([`do turn 2 ${t.dir}`])).answers, ['Answer 2.'], 'the session can go on');
  },
  'error that passes': async (t) => {
    const { answer } = await one(t, 'hiccup');
    assert.equal(answer, 'After a pause.');
  },
  'unknown model': async (t) => {
    const model = t.client.constructor.strangeModel;
    const got = await t.client.ask([`do text ${t.dir}`], { model });
    assert.ok(got.error.includes(model), `the error does not name the model: ${got.error || got.answers}`);
  },
};

// turnsIn checks a session of n prompts with an answer each.
function turnsIn(items, n) {
  whole(items);
  assert.equal(prompted(items).length, n, 'no prompt is lost and none comes twice');
  assert.equal(spoken(items).length, n);
  spoken(items).forEach((text) => assert.notEqual(text, ''));
}
