// Command bench measures a roost binary against its budgets, beside a direct connection to
// the same provider, in one run:
//
//	provider ◀── HTTP ── roost (a real process) ◀── pi's protocol ── bench
//	provider ◀── HTTP ──────────────────────────────────────────── bench   (direct)
//
// The provider is this program again, as a process of its own, and every token of its answers
// carries the time at which it was sent. So a delay is known for each token, and the provider's
// own unpunctuality cancels out. docs/performance.md says what each figure means.
//
// It reads /proc and therefore needs Linux.
package main
