package provider_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/provider"
)

func TestDelay(t *testing.T) {
	down := provider.Errorf(provider.FaultNetwork, "down")
	asked := func(d time.Duration) error { return &provider.Error{Fault: provider.FaultRateLimit, RetryAfter: d} }
	for _, tc := range []struct {
		name    string
		retry   provider.Retry
		attempt int
		err     error
		want    time.Duration
		ok      bool
	}{
		{"first", provider.Retry{}, 1, down, time.Second, true},
		{"second", provider.Retry{}, 2, down, 2 * time.Second, true},
		{"fourth", provider.Retry{}, 4, down, 8 * time.Second, true},
		{"fifth is the last", provider.Retry{}, 5, down, 0, false},
		{"capped", provider.Retry{Attempts: 100}, 7, down, time.Minute, true},
		{"far beyond", provider.Retry{Attempts: 1000}, 900, down, time.Minute, true},
		{"attempts from 0 are taken as 1", provider.Retry{}, 0, down, time.Second, true},
		{"wrapped", provider.Retry{}, 1, fmt.Errorf("pass 3: %w", down), time.Second, true},
		{"jitter", provider.Retry{Jitter: 1}, 3, down, 5 * time.Second, true},
		{"jitter out of range", provider.Retry{Jitter: 9}, 3, down, 5 * time.Second, true},
		{"jitter within the cap", provider.Retry{Attempts: 100, Jitter: 1}, 50, down, time.Minute, true},
		{"asked", provider.Retry{Jitter: 1}, 4, asked(3 * time.Second), 3 * time.Second, true},
		{"asked for an hour", provider.Retry{}, 1, asked(time.Hour), 10 * time.Minute, true},
		{"asked, but the last", provider.Retry{Attempts: 2}, 2, asked(time.Second), 0, false},
		{"not worth it", provider.Retry{}, 1, provider.Errorf(provider.FaultAuth, "no"), 0, false},
		{"canceled", provider.Retry{}, 1, context.Canceled, 0, false},
		{"no error", provider.Retry{}, 1, nil, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d, ok := tc.retry.Delay(tc.attempt, tc.err); d != tc.want || ok != tc.ok {
				t.Errorf("got %v, %v; want %v, %v", d, ok, tc.want, tc.ok)
			}
		})
	}
	if d, ok := provider.Delay(1, down); d != time.Second || !ok {
		t.Errorf("the default: %v, %v", d, ok)
	}
}

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		status        int
		code, message string
		want          provider.Fault
	}{
		{401, "", "", provider.FaultAuth},
		{403, "", "no", provider.FaultAuth},
		{429, "", "", provider.FaultRateLimit},
		{429, "rate_limit_exceeded", "maximum context tokens per minute", provider.FaultRateLimit},
		{429, "insufficient_quota", "", provider.FaultAuth},
		{400, "context_length_exceeded", "", provider.FaultContext},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", provider.FaultContext},
		{400, "", "This model's maximum context length is 8192 tokens", provider.FaultContext},
		{413, "", "", provider.FaultContext},
		{500, "", "context window", provider.FaultOverload},
		{503, "", "", provider.FaultOverload},
		{529, "overloaded_error", "", provider.FaultOverload},
		{408, "", "", provider.FaultOverload},
		{501, "", "", provider.FaultRequest},
		{400, "invalid_request_error", "bad", provider.FaultRequest},
		{404, "", "", provider.FaultRequest},
		{402, "", "", provider.FaultRequest},
		{400, "content_filter", "", provider.FaultFilter},
		{0, "overloaded_error", "Overloaded", provider.FaultOverload},
		{0, "", "server is overloaded", provider.FaultOverload},
		{0, "rate_limit_error", "", provider.FaultRateLimit},
		{0, "authentication_error", "", provider.FaultAuth},
		{0, "invalid_request_error", "", provider.FaultRequest},
		{0, "", "prompt is too long", provider.FaultContext},
		{0, "", "what", provider.FaultProtocol},
	} {
		if got := provider.Classify(tc.status, tc.code, tc.message); got != tc.want {
			t.Errorf("%d %q %q: %d, want %d", tc.status, tc.code, tc.message, got, tc.want)
		}
	}
}
