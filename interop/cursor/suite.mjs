// Runs suites of scenarios and reports on each.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { needs } from './scenarios.mjs';
import { certificate, Server } from './server.mjs';

// Scenarios that have not begun after this long fail, so that a server that hangs ends CI's patience
// with a report.
const patience = 300_000;

export class Check {
  #begun = Date.now();
  #top = mkdtempSync(join(tmpdir(), 'roost-'));
  #servers = [];
  #passed = 0;
  #failed = 0;
  #pattern;

  // pattern is a regular expression for what to run, such as "omp TLS: read"; all by default.
  constructor(pattern = '') {
    this.#pattern = new RegExp(pattern);
  }

  certificate() {
    return certificate(join(this.#top, 'tls'));
  }

  // run calls body, which runs the suites, and sets the exit code of the process. Whatever
  // happens, the servers end.
  async run(body) {
    for (const signal of ['SIGINT', 'SIGTERM']) {
      process.once(signal, async () => {
        await this.#end();
        process.exit(130);
      });
    }
    try {
      await body();
    } finally {
      await this.#end();
    }
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    process.exitCode = this.#failed > 0 || this.#passed === 0 ? 1 : 0;
  }

  // The files stay if KEEP is set.
  async #end() {
    await Promise.all(this.#servers.map((server) => server.stop()));
    if (process.env.KEEP) console.log(`# kept ${this.#top}`);
    else rmSync(this.#top, { recursive: true, force: true });
  }

  // suite runs scenarios with one client over one transport, one after the other.
  async suite(Client, transport, scenarios, tls) {
    const label = `${Client.label} ${transport}`;
    const wanted = Object.entries(scenarios).filter(([name]) => this.#pattern.test(`${label}: ${name}`) && (!needs[name] || Client.does.has(needs[name])));
    if (wanted.length === 0) return;
    const place = join(this.#top, `${Client.label}-${transport}`);
    const server = new Server(place, tls);
    this.#servers.push(server);
    await server.start();
    for (const [i, [name, scenario]] of wanted.entries()) {
      await this.#scenario(`${label}: ${name}`, server, () => scenario(world(Client, server, place, i)));
    }
    await server.stop();
  }

  async #scenario(title, server, scenario) {
    const begun = Date.now();
    try {
      assert.ok(begun - this.#begun < patience, 'there is no time left');
      if (!server.running) await server.start();
      await server.created(); // those of a scenario that failed
      await scenario();
      assert.ok(server.running, 'the server ended');
      this.#passed++;
      console.log(`ok ${title} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
      this.#failed++;
      console.log(`not ok ${title}\n${`${error.message}\n-- server --\n${server.lastWords()}`.replaceAll(/^/gm, '  # ')}`);
    }
  }
}

// world is what a scenario gets: a conversation that has not begun, in a directory with files.
function world(Client, server, place, i) {
  const dir = join(place, 'work', String(i));
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'a.txt'), 'line one\nline two\nline three\n');
  writeFileSync(join(dir, 'b.txt'), 'bravo\n');
  writeFileSync(join(dir, 'c.md'), '# charlie\n');
  // find returns the one session that a conversation made.
  const find = async (got) => {
    const ids = await server.created();
    assert.equal(ids.length, 1, `one conversation makes one session, not ${ids.length}; the client: ${got.error || got.stderr || got.answers}`);
    if (got.session) assert.equal(ids[0], got.session, 'the session has the id of the conversation');
    return ids[0];
  };
  const session = async (got) => server.items(await find(got));
  return { dir, server, find, session, client: new Client(server, join(place, 'home'), dir) };
}
