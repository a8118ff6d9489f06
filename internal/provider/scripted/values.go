package scripted

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Limits of a script's values.
const (
	maxWait   = 24 * time.Hour
	maxNumber = 10_000_000 // of rate and repeat
)

var faults = map[string]provider.Fault{
	"protocol": provider.FaultProtocol, "network": provider.FaultNetwork, "stalled": provider.FaultStalled,
	"rate_limit": provider.FaultRateLimit, "overload": provider.FaultOverload, "auth": provider.FaultAuth,
	"context": provider.FaultContext, "request": provider.FaultRequest, "filter": provider.FaultFilter,
}

var stops = map[string]session.StopReason{
	"end": session.StopEnd, "length": session.StopLength, "tool_use": session.StopToolUse, "refusal": session.StopRefusal,
}

// duration reads "300ms" or "2 * 200ms"; "" is 0.
func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	factor, unit := 1.0, s
	if a, b, ok := strings.Cut(s, "*"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
		if err != nil {
			return 0, fmt.Errorf("duration %q: %q is not a number", s, a)
		}
		factor, unit = f, b
	}
	d, err := time.ParseDuration(strings.TrimSpace(unit))
	if err != nil {
		return 0, err
	}
	if f := factor * float64(d); f >= 0 && f <= float64(maxWait) {
		return time.Duration(f), nil
	}
	return 0, fmt.Errorf("duration %q is not between 0 and %v", s, maxWait)
}

// number reads a whole number from 1 to maxNumber; "" is the given default.
func number(s string, unset int) (int, error) {
	if s == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 || n > maxNumber {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", s, maxNumber)
	}
	return n, nil
}

var placeholder = regexp.MustCompile(`\$\{(prompt|(tool)?(\d+)(?::(\d+))?)\}`)

// scope is what a script's placeholders stand for.
type scope struct {
	prompt   string
	captures []string // 1 is the first group
	tools    []string // the results since the prompt
}

// expand replaces the placeholders in s. One that stands for nothing becomes "".
func (sc *scope) expand(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		m := placeholder.FindStringSubmatch(p)
		if m[1] == "prompt" {
			return sc.prompt
		}
		n, err := strconv.Atoi(m[3])
		if err != nil {
			return ""
		}
		if m[2] == "" {
			return at(sc.captures, n)
		}
		text := at(sc.tools, n-1)
		if lines, err := strconv.Atoi(m[4]); err == nil {
			text = head(text, lines)
		}
		return text
	})
}

func at(list []string, n int) string {
	if n < 0 || n >= len(list) {
		return ""
	}
	return list[n]
}

// head returns the first n lines of s.
func head(s string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(s, "\n"), "\n")
	return strings.TrimRight(strings.Join(lines[:min(n, len(lines))], ""), "\n")
}

// value expands every string inside a tool's input.
func (sc *scope) value(v any) any {
	switch v := v.(type) {
	case string:
		return sc.expand(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = sc.value(v[i])
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for k := range v {
			fields[k] = sc.value(v[k])
		}
		return fields
	}
	return v
}
