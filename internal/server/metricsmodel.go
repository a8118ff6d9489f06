package server

import (
	"context"
	"errors"
	"iter"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/telemetry"
)

// requests counts what is asked of providers, and what came of it. It is safe for concurrent
// use.
type requests struct {
	open               *telemetry.Gauge
	ok, canceled       *telemetry.Counter
	faults             map[provider.Fault]*telemetry.Counter
	input, output      *telemetry.Counter
	cacheRead, cacheIn *telemetry.Counter
}

// faultNames are the outcomes of requests that have failed.
var faultNames = map[provider.Fault]string{
	provider.FaultProtocol: "protocol", provider.FaultNetwork: "network", provider.FaultStalled: "stalled",
	provider.FaultRateLimit: "rate_limit", provider.FaultOverload: "overload", provider.FaultAuth: "auth",
	provider.FaultContext: "context", provider.FaultRequest: "request", provider.FaultFilter: "filter",
}

func newRequests(set *telemetry.Set) *requests {
	const (
		name, help         = "roost_provider_requests_total", "Requests to model providers that have ended, by what came of them."
		tokens, tokensHelp = "roost_tokens_total", "Tokens as providers have counted them."
	)
	r := &requests{
		open:      set.Gauge("roost_provider_requests", "Requests to model providers in progress."),
		ok:        set.Counter(name, help, "outcome", "ok"),
		canceled:  set.Counter(name, help, "outcome", "canceled"),
		faults:    make(map[provider.Fault]*telemetry.Counter),
		input:     set.Counter(tokens, tokensHelp, "kind", "input"),
		output:    set.Counter(tokens, tokensHelp, "kind", "output"),
		cacheRead: set.Counter(tokens, tokensHelp, "kind", "cache_read"),
		cacheIn:   set.Counter(tokens, tokensHelp, "kind", "cache_write"),
	}
	for fault := provider.FaultProtocol; fault <= provider.FaultFilter; fault++ {
		r.faults[fault] = set.Counter(name, help, "outcome", faultNames[fault])
	}
	return r
}

// countedModel is a model whose requests are counted.
type countedModel struct {
	provider.Model
	counts *requests
}

// Stream is that of the model.
func (m countedModel) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		m.counts.open.Add(1)
		var (
			failure error
			usage   session.Usage
			whole   bool
		)
		defer func() {
			m.counts.open.Add(-1)
			m.counts.ended(whole, failure, usage)
		}()
		for part, err := range m.Model.Stream(ctx, req) {
			switch {
			case err != nil:
				failure = err
			case part.Kind == provider.UsageReport:
				usage = part.Usage
			case part.Kind == provider.Finish:
				whole = true
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// ended counts a request. One that was given up before its end is canceled.
func (r *requests) ended(whole bool, failure error, usage session.Usage) {
	fault, isFault := errors.AsType[*provider.Error](failure)
	switch {
	case isFault:
		r.faults[fault.Fault].Inc()
	case failure != nil || !whole:
		r.canceled.Inc()
	default:
		r.ok.Inc()
	}
	r.input.Add(positive(usage.Input))
	r.output.Add(positive(usage.Output))
	r.cacheRead.Add(positive(usage.CacheRead))
	r.cacheIn.Add(positive(usage.CacheWrite))
}

func positive(n int64) uint64 { return uint64(max(0, n)) }
