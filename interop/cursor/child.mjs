// Runs a client as a child process and hands over its output line by line.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const modules = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');

// bun is run from the package that holds the binary: the script that would link it to
// node_modules/.bin is never run.
export const bun = join(modules, '@oven', readdirSync(join(modules, '@oven'))[0], 'bin', 'bun');

const limit = 40_000;

// conversation runs bun with args. Each line of standard output is parsed as JSON and given to
// onEvent, with a function that sends the child a signal. It resolves with the exit code and
// what came on standard error, and rejects if the child takes too long.
export function conversation(args, { env, cwd, input = '', onEvent }) {
  const child = spawn(bun, args, { env: { PATH: process.env.PATH, ...env }, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => {}).end(input);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => { stderr += chunk; });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{')) onEvent(JSON.parse(line), (signal) => child.kill(signal));
    else stderr += `${line}\n`;
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the client did not end within ${limit / 1000} s; it wrote: ${stderr}`));
    }, limit);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stderr });
    });
  });
}
