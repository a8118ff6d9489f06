// Runs the scenarios over one transport, since the client takes its server's address only once:
// node check.mjs http|https [PATTERN]. For https, TLS is the directory of cert.pem and key.pem.
import { join } from 'node:path';

import { Check } from '../cursor/suite.mjs';
import { scenarios } from './scenarios.mjs';
import { Sdk } from './sdk.mjs';

const [transport, pattern] = process.argv.slice(2);
const tls = transport === 'https' ? { cert: join(process.env.TLS, 'cert.pem'), key: join(process.env.TLS, 'key.pem') } : undefined;
const check = new Check(pattern);
await check.run(() => check.suite(Sdk, transport, scenarios, tls));
process.exit(); // the client keeps timers
