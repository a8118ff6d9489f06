package actor

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Limits of one compaction.
const (
	maxSummary        = 64 << 10 // bytes
	compactionTimeout = 10 * time.Minute
)

// compaction has a model summarise old items.
type compaction struct {
	job
	task session.Summarize
	wake func()

	mu      sync.Mutex
	closed  bool
	summary string
	usage   *session.Usage
	failure string
}

func (a *actor) startCompaction(task session.Summarize) *compaction {
	ctx, j := a.newJob()
	c := &compaction{job: j, task: task, wake: a.wake}
	model, info, err := a.engine.cfg.Models.Find(a.state.Model)
	if err != nil {
		c.end("", nil, session.AsError(err).Message)
		close(c.over)
		return c
	}
	state := a.state.Clone()
	go func() {
		defer close(c.over)
		defer func() {
			if v := recover(); v != nil {
				a.log.Error("compaction failed", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
				c.end("", nil, "internal error")
			}
		}()
		limited, cancel := context.WithTimeout(ctx, compactionTimeout)
		defer cancel()
		c.run(limited, model, info, func() *provider.Request {
			return a.engine.request(limited, prompt.Summary(state, task.Through, info))
		})
	}()
	return c
}

// run asks until there is a summary or no hope. What a failed attempt said is thrown away.
func (c *compaction) run(ctx context.Context, model provider.Model, info catalog.Model, request func() *provider.Request) {
	for attempt := 1; ; attempt++ {
		summary, usage, err := summarize(ctx, model, request())
		if usage != nil {
			usage.Cost = catalog.Price(info.Cost, *usage)
		}
		if err == nil {
			c.end(summary, usage, "")
			return
		}
		delay, again := provider.Delay(attempt, err)
		if !again {
			c.end("", usage, err.Error())
			return
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			c.end("", usage, err.Error())
			return
		}
	}
}

// summarize makes one request and returns the text of the answer.
func summarize(ctx context.Context, model provider.Model, req *provider.Request) (string, *session.Usage, error) {
	var (
		text     strings.Builder
		usage    *session.Usage
		finished bool
	)
	for part, err := range model.Stream(ctx, req) {
		if err != nil {
			if fault, ok := errors.AsType[*provider.Error](err); ok {
				return "", usage, fault
			}
			return "", usage, provider.Errorf(provider.FaultRequest, "%v", err)
		}
		switch part.Kind {
		case provider.TextDelta:
			if text.Len() < maxSummary {
				text.WriteString(part.Text)
			}
		case provider.UsageReport:
			usage = &part.Usage
		case provider.Finish:
			finished = true
		case provider.ReasoningDelta, provider.ReasoningEnd, provider.CallStart, provider.CallDelta, provider.CallEnd:
		}
	}
	summary := strings.TrimSpace(utf8Text(text.String()))
	switch {
	case !finished:
		return "", usage, provider.Errorf(provider.FaultNetwork, "the model's summary broke off")
	case summary == "":
		return "", usage, provider.Errorf(provider.FaultRequest, "the model gave no summary")
	}
	return summary, usage, nil
}

func (c *compaction) end(summary string, usage *session.Usage, failure string) {
	c.mu.Lock()
	c.summary, c.usage, c.failure, c.closed = summary, usage, utf8Text(failure), true
	c.mu.Unlock()
	c.wake()
}

func (c *compaction) effect() session.Effect { return c.task }

func (c *compaction) collect(a *actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		return
	}
	c.collected = true
	c.cancel(nil)
	run := a.state.Run
	if c.stopAt.IsZero() && run != nil && run.Compaction != nil && run.Compaction.Through == c.task.Through {
		a.emit(a.state.EndCompaction(c.summary, c.usage, c.failure))
	}
}
