// Runs the scenarios with each client, over HTTP/2 in the clear and over TLS, each pair with a
// server of its own: node check.mjs [PATTERN], where PATTERN is a regular expression for lines
// such as "omp TLS: read".
import { Omp } from './omp.mjs';
import { OpenCode } from './opencode.mjs';
import { scenarios } from './scenarios.mjs';
import { Check } from './suite.mjs';

const check = new Check(process.argv[2]);
await check.run(async () => {
  const tls = await check.certificate();
  // One client keeps one core busy.
  await Promise.all([Omp, OpenCode].map(async (Client) => {
    await check.suite(Client, 'h2c', scenarios);
    await check.suite(Client, 'TLS', scenarios, tls);
  }));
});
