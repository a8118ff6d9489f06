package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

func kindOf(err error) string {
	if err == nil {
		return "ok"
	}
	return session.AsError(err).Kind.String()
}

func TestNew(t *testing.T) {
	good := session.Create{ID: "s-1_A", Cwd: "/w", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: session.ThinkingLow}
	for name, c := range map[string]struct {
		change func(*session.Create)
		want   string
	}{
		"good":             {func(*session.Create) {}, "ok"},
		"no id":            {func(c *session.Create) { c.ID = "" }, "invalid"},
		"an id as a path":  {func(c *session.Create) { c.ID = "../x" }, "invalid"},
		"a long id":        {func(c *session.Create) { c.ID = session.ID(strings.Repeat("a", 65)) }, "invalid"},
		"a relative cwd":   {func(c *session.Create) { c.Cwd = "w" }, "invalid"},
		"no cwd":           {func(c *session.Create) { c.Cwd = "" }, "invalid"},
		"a NUL in the cwd": {func(c *session.Create) { c.Cwd = "/a\x00b" }, "invalid"},
		"a long cwd":       {func(c *session.Create) { c.Cwd = "/" + strings.Repeat("a", session.MaxCwd) }, "invalid"},
		"no model":         {func(c *session.Create) { c.Model = session.ModelRef{} }, "invalid"},
		"odd thinking":     {func(c *session.Create) { c.Thinking = "deep" }, "invalid"},
		"a long name":      {func(c *session.Create) { c.Name = strings.Repeat("a", session.MaxName+1) }, "invalid"},
		"a name not UTF-8": {func(c *session.Create) { c.Name = "\xff" }, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			create := good
			c.change(&create)
			if _, err := session.New(create); kindOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	idle := func(t *testing.T) *session.State {
		s := running(t)
		apply(s, session.ToolEnded{Call: "call1-1-0"})
		apply(s, s.Advance(yes{}, 0)...)
		apply(s, session.PassEnded{Status: session.Complete, Stop: session.StopEnd})
		apply(s, s.Advance(yes{}, 0)...)
		return s
	}
	aborting := func(t *testing.T) *session.State {
		s := running(t)
		apply(s, session.AbortRequested{})
		return s
	}
	full := func(t *testing.T) *session.State {
		s := running(t)
		for range session.MaxQueue {
			events, err := s.Decide(session.Steer{Text: "x"})
			if err != nil {
				t.Fatal(err)
			}
			apply(s, events...)
		}
		return s
	}
	levels := []session.Thinking{session.ThinkingOff, session.ThinkingHigh}
	other := session.ModelRef{Provider: "p", ID: "other"}
	long := strings.Repeat("x", session.MaxPrompt+1)
	for name, c := range map[string]struct {
		state func(*testing.T) *session.State
		cmd   session.Command
		want  string // kind of the error, or the events
	}{
		"prompt when idle":          {idle, session.Prompt{Text: "x"}, "[session.RunStarted]"},
		"empty prompt":              {idle, session.Prompt{}, "[session.RunStarted]"},
		"prompt when busy":          {running, session.Prompt{Text: "x"}, "busy"},
		"prompt too large":          {idle, session.Prompt{Text: long}, "too_large"},
		"prompt not UTF-8":          {idle, session.Prompt{Text: "\xff"}, "invalid"},
		"prompt with a long id":     {idle, session.Prompt{ID: strings.Repeat("x", session.MaxPromptID+1)}, "invalid"},
		"steer when idle":           {idle, session.Steer{Text: "x"}, "busy"},
		"steer when busy":           {running, session.Steer{Text: "x"}, "[session.SteerQueued]"},
		"steer when aborting":       {aborting, session.Steer{Text: "x"}, "busy"},
		"steer into a full queue":   {full, session.Steer{Text: "x"}, "busy"},
		"steer too large":           {running, session.Steer{Text: long}, "too_large"},
		"abort when idle":           {idle, session.Abort{}, "busy"},
		"abort when busy":           {running, session.Abort{}, "[session.AbortRequested]"},
		"abort again":               {aborting, session.Abort{}, "[]"},
		"model when idle":           {idle, session.SetModel{Model: other, Levels: levels}, "[session.ModelSet]"},
		"the same model":            {idle, session.SetModel{Model: session.ModelRef{Provider: "p", ID: "m"}, Levels: levels}, "[]"},
		"model when busy":           {running, session.SetModel{Model: other, Levels: levels}, "busy"},
		"thinking when idle":        {idle, session.SetThinking{Thinking: session.ThinkingHigh, Levels: levels}, "[session.ThinkingSet]"},
		"thinking it does not have": {idle, session.SetThinking{Thinking: session.ThinkingLow, Levels: levels}, "invalid"},
		"thinking when busy":        {running, session.SetThinking{Thinking: session.ThinkingHigh, Levels: levels}, "busy"},
		"rename when busy":          {running, session.Rename{Name: "n"}, "[session.Renamed]"},
		"a name too long":           {idle, session.Rename{Name: strings.Repeat("n", session.MaxName+1)}, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := c.state(t).Decide(c.cmd)
			got := kindOf(err)
			if err == nil {
				var types []string
				for _, e := range events {
					types = append(types, fmt.Sprintf("%T", e))
				}
				got = fmt.Sprint(types)
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestRepeatedPromptIsFound(t *testing.T) {
	s := running(t)
	for _, cmd := range []session.Command{session.Steer{ID: "a", Text: "x"}, session.Steer{ID: "a", Text: "x"}} {
		events, err := s.Decide(cmd)
		if err != nil {
			t.Fatal(err)
		}
		apply(s, events...)
	}
	if len(s.Queue) != 1 || s.FindPrompt("a") != s.Queue[0] || s.FindPrompt("") != nil || s.FindPrompt("b") != nil {
		t.Errorf("queue %v", s.Queue)
	}
}

func TestClamp(t *testing.T) {
	some := []session.Thinking{session.ThinkingLow, session.ThinkingHigh}
	for _, c := range []struct {
		level  session.Thinking
		levels []session.Thinking
		want   session.Thinking
	}{
		{session.ThinkingHigh, some, session.ThinkingHigh},
		{session.ThinkingMax, some, session.ThinkingHigh},
		{session.ThinkingMedium, some, session.ThinkingLow},
		{session.ThinkingOff, some, session.ThinkingLow},
		{session.ThinkingHigh, nil, session.ThinkingOff},
	} {
		if got := session.Clamp(c.level, c.levels); got != c.want {
			t.Errorf("Clamp(%s, %v) = %s, want %s", c.level, c.levels, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	busy := fmt.Errorf("wrapped: %w", session.Errorf(session.Busy, "not now"))
	if e := session.AsError(busy); e.Kind != session.Busy || !e.Retry || e.Error() != "not now" {
		t.Errorf("got %+v", e)
	}
	if e := session.AsError(fmt.Errorf("open /secret/path")); e.Kind != session.Internal || strings.Contains(e.Message, "secret") {
		t.Errorf("an error without a kind becomes %+v", e)
	}
	if got := session.Kind(200).String(); got != "internal" {
		t.Errorf("an unknown kind is %q", got)
	}
}
