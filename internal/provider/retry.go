package provider

import (
	"errors"
	"time"
)

// The retry policy's figures.
const (
	DefaultAttempts = 5                // attempts for one pass, the first included
	firstDelay      = time.Second      // before the second attempt; doubled for each further one
	maxDelay        = time.Minute      // of the doubling
	maxRetryAfter   = 10 * time.Minute // a provider that asks for more is asked again then
)

// Retry decides whether and when to repeat a failed request. The zero value is the default
// policy.
type Retry struct {
	Attempts int // all attempts, the first included; 0 means DefaultAttempts

	// Jitter in [0, 1] spreads the doubling delays: it adds up to a quarter. It is a
	// parameter, so that the policy is a pure function and the caller decides about chance.
	Jitter float64
}

// Delay returns how long to wait after attempt (from 1) ended with err, or false when the
// request is not to be repeated: err is not an [*Error] worth a retry, or attempt was the
// last one. A RetryAfter of the provider counts as it is, up to 10 minutes; otherwise the
// delay is 1 s, 2 s, 4 s and so on up to a minute.
func (r Retry) Delay(attempt int, err error) (time.Duration, bool) {
	limit := r.Attempts
	if limit == 0 {
		limit = DefaultAttempts
	}
	fault, ok := errors.AsType[*Error](err)
	if !ok || !fault.Retryable() || attempt >= limit {
		return 0, false
	}
	if fault.RetryAfter > 0 {
		return min(fault.RetryAfter, maxRetryAfter), true
	}
	delay := maxDelay
	if shift := max(attempt, 1) - 1; shift < 6 {
		delay = firstDelay << shift
	}
	jitter := min(max(r.Jitter, 0), 1)
	return min(delay+time.Duration(jitter*float64(delay)/4), maxDelay), true
}

// Delay is [Retry.Delay] of the default policy without jitter.
func Delay(attempt int, err error) (time.Duration, bool) { return Retry{}.Delay(attempt, err) }
