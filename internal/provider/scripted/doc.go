// Package scripted is a model provider that answers from a script instead of a network: for
// tests, for demonstrations, and for trying roost without an account. The same script and
// the same history always give the same answer.
//
// A script is YAML. Its rules are tried in order against the last message of the person;
// the first that matches answers. The first pass since that message gets the first list of
// steps, the pass after its tools the second, and so on; the last list serves all further
// passes.
//
//	rules:
//	  - contains: use a tool            # without case; or  regex: '^slow (\d+) (.*)$'  or  default: true
//	    passes:
//	      - - think: A tool it is.
//	        - tool: {name: bash, input: {command: echo hello}}
//	      - - text: "The tool said: ${tool1}"
//
// Each step does one thing:
//
//	text: TEXT      the answer; think: TEXT is reasoning. Both take
//	                chunk: N (characters per piece; by words without it), every: DURATION
//	                (before each piece), rate: N (pieces a second), repeat: N (the whole
//	                text N times), cut: N (the connection breaks after N characters)
//	tool: {name, input}   a tool call; raw: TEXT instead of input is sent as it is; several
//	                in one pass run in parallel; cut: N breaks inside the input
//	delay: DURATION silence; hang: true is silence until the request is given up
//	error: {fault, message, retry_after}   the pass fails; with times: N on the step, only
//	                in the first N attempts of the pass
//	usage: {input, output, cache_read, cache_write, reasoning}   instead of an estimate
//	stop: end | length | tool_use | refusal   instead of what follows from the calls
//
// Faults are protocol, network, stalled, rate_limit, overload, auth, context, request and
// filter. Every string may hold ${1}, ${2}, … (what the regex captured), ${prompt} (the
// message itself), ${tool1}, ${tool2}, … (the results of the tools since the message) and
// ${tool1:5} (the first 5 lines of one). A duration is "300ms", or "2 * 200ms". Unknown
// names anywhere are errors.
//
// When a cut answer is to be continued, the pass goes on behind the text that came through:
// nothing is said twice, and what came before that text is not done again.
package scripted
