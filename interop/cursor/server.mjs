// A roost server of this harness's own: started in a directory of its own, ended by its process.
import { execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const roost = process.env.ROOST ?? join(here, '../../bin/roost');
const config = join(here, 'roost.yaml');

// Go's own generator makes a certificate that is its own authority, so nothing but Go is needed.
export async function certificate(dir) {
  mkdirSync(dir, { recursive: true });
  const { stdout } = await run('go', ['env', 'GOROOT']);
  const generator = join(stdout.trim(), 'src/crypto/tls/generate_cert.go');
  await run('go', ['run', generator, '--host', '127.0.0.1,localhost', '--ca', '--ecdsa-curve', 'P256', '--duration', '24h'], { cwd: dir });
  return { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
}

export class Server {
  #process;
  #known = new Set();

  // tls is what certificate returned, or undefined for HTTP/2 in the clear.
  constructor(dir, tls) {
    this.dir = dir;
    this.tls = tls;
    this.data = join(dir, 'data');
    this.log = join(dir, 'roost.log');
    // Nothing of the person who runs this gets in: no configuration, no keys.
    this.env = { PATH: process.env.PATH, HOME: dir, XDG_CONFIG_HOME: join(dir, 'config') };
    mkdirSync(dir, { recursive: true });
  }

  // start resolves once the server says that it is ready. A later start takes the same port.
  async start() {
    const args = ['serve', '--config', config, '--data', this.data, '--listen', this.url ? new URL(this.url).host : '127.0.0.1:0'];
    if (this.tls) args.push('--tls-cert', this.tls.cert, '--tls-key', this.tls.key);
    const log = openSync(this.log, 'a');
    this.#process = spawn(roost, args, { env: this.env, stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    this.url = await this.#ready();
    this.token = readFileSync(join(this.data, 'token'), 'utf8').trim();
  }

  #ready() {
    return new Promise((resolve, reject) => {
      let said = '';
      const limit = setTimeout(() => reject(new Error(`the server is not ready after 20 s: ${said}`)), 20_000);
      this.#process.stdout.setEncoding('utf8').on('data', (chunk) => {
        said += chunk;
        const ready = /^ready .*\bhttp=(\S+)/m.exec(said);
        if (!ready) return;
        clearTimeout(limit);
        resolve(ready[1]);
      });
      this.#process.once('error', reject);
      this.#process.once('exit', (code) => {
        clearTimeout(limit);
        reject(new Error(`the server ended with ${code}: ${this.lastWords()}`));
      });
    });
  }

  get running() {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async stop(signal = 'SIGTERM') {
    if (!this.running) return;
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    const limit = setTimeout(() => this.#process.kill('SIGKILL'), 15_000);
    this.#process.kill(signal);
    await ended;
    clearTimeout(limit);
  }

  // command runs one of roost's own commands against the server and returns what it prints.
  async command(...args) {
    const { stdout } = await run(roost, [...args, '--data', this.data, '--config', config], { env: this.env, maxBuffer: 64 << 20 });
    return stdout;
  }

  // created returns the ids of the sessions that came since it was last called.
  async created() {
    const ids = lines(await this.command('sessions', '--json')).map((session) => session.id);
    const fresh = ids.filter((id) => !this.#known.has(id));
    ids.forEach((id) => this.#known.add(id));
    return fresh;
  }

  // items returns a session's transcript, the first line, which is about the session, left out.
  async items(id) {
    return lines(await this.command('export', id, '--format', 'jsonl')).slice(1);
  }

  lastWords() {
    return existsSync(this.log) ? readFileSync(this.log, 'utf8').trimEnd().split('\n').slice(-15).join('\n') : '';
  }
}

const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
