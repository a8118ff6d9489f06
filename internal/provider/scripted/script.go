package scripted

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxScript is the limit of a script, in bytes.
const maxScript = 1 << 20

// script is the file's form.
type script struct {
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Contains string   `yaml:"contains"`
	Regex    string   `yaml:"regex"`
	Default  bool     `yaml:"default"`
	Passes   [][]step `yaml:"passes"`

	pattern *regexp.Regexp
}

// step is one thing to do; exactly one of the fields before the blank line is set.
type step struct {
	Text  *string   `yaml:"text"`
	Think *string   `yaml:"think"`
	Tool  *toolStep `yaml:"tool"`
	Delay string    `yaml:"delay"`
	Hang  bool      `yaml:"hang"`
	Error *failure  `yaml:"error"`
	Usage *counts   `yaml:"usage"`
	Stop  string    `yaml:"stop"`

	Chunk  int    `yaml:"chunk"`
	Every  string `yaml:"every"`
	Rate   string `yaml:"rate"`
	Repeat string `yaml:"repeat"`
	Cut    *int   `yaml:"cut"`
	Times  int    `yaml:"times"`
}

type toolStep struct {
	Name  string         `yaml:"name"`
	Input map[string]any `yaml:"input"`
	Raw   *string        `yaml:"raw"`
}

type failure struct {
	Fault      string `yaml:"fault"`
	Message    string `yaml:"message"`
	RetryAfter string `yaml:"retry_after"`
}

type counts struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cache_read"`
	CacheWrite int64 `yaml:"cache_write"`
	Reasoning  int64 `yaml:"reasoning"`
}

// parse reads a script and checks everything that can be checked before it runs.
func parse(data []byte) (*script, error) {
	if len(data) > maxScript {
		return nil, fmt.Errorf("script: over %d bytes", maxScript)
	}
	var s script
	if err := yaml.UnmarshalWithOptions(data, &s, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if len(s.Rules) == 0 {
		return nil, errors.New("script: it has no rules")
	}
	for i := range s.Rules {
		if err := s.Rules[i].check(); err != nil {
			return nil, fmt.Errorf("script: rule %d: %w", i+1, err)
		}
	}
	return &s, nil
}

func (r *rule) check() error {
	if n := count(r.Contains != "", r.Regex != "", r.Default); n != 1 {
		return fmt.Errorf("it needs exactly one of contains, regex and default, and has %d", n)
	}
	if r.Regex != "" {
		p, err := regexp.Compile(r.Regex)
		if err != nil {
			return err
		}
		r.pattern = p
	}
	if len(r.Passes) == 0 {
		return errors.New("it has no passes")
	}
	for p, steps := range r.Passes {
		for i, st := range steps {
			if err := st.check(); err != nil {
				return fmt.Errorf("pass %d, step %d: %w", p+1, i+1, err)
			}
		}
	}
	return nil
}

func (st step) check() error {
	actions := count(st.Text != nil, st.Think != nil, st.Tool != nil, st.Delay != "", st.Hang, st.Error != nil, st.Usage != nil, st.Stop != "")
	speaks := st.Text != nil || st.Think != nil
	switch {
	case actions != 1:
		return fmt.Errorf("it needs exactly one of text, think, tool, delay, hang, error, usage and stop, and has %d", actions)
	case !speaks && (st.Chunk != 0 || st.Every != "" || st.Rate != "" || st.Repeat != ""):
		return errors.New("chunk, every, rate and repeat are for text and think")
	case st.Every != "" && st.Rate != "":
		return errors.New("every and rate exclude each other")
	case st.Chunk < 0 || st.Times < 0 || st.Cut != nil && *st.Cut < 0:
		return errors.New("chunk, times and cut are not negative")
	case st.Cut != nil && !speaks && st.Tool == nil:
		return errors.New("cut is for text, think and tool")
	case st.Times != 0 && st.Error == nil && st.Cut == nil:
		return errors.New("times is for error and cut")
	}
	return st.checkValues()
}

// checkValues tries every value that does not depend on the prompt.
func (st step) checkValues() error {
	if t := st.Tool; t != nil && (t.Name == "" || t.Raw != nil && t.Input != nil) {
		return errors.New("a tool needs a name, and either input or raw")
	}
	durations := []string{st.Delay, st.Every}
	if f := st.Error; f != nil {
		durations = append(durations, f.RetryAfter)
		if _, ok := faults[f.Fault]; !ok {
			return fmt.Errorf("fault %q is not one of protocol, network, stalled, rate_limit, overload, auth, context, request, filter", f.Fault)
		}
	}
	for _, d := range durations {
		if _, err := duration(d); err != nil && !strings.Contains(d, "${") {
			return err
		}
	}
	for _, n := range []string{st.Rate, st.Repeat} {
		if _, err := number(n, 1); err != nil && !strings.Contains(n, "${") {
			return err
		}
	}
	if _, ok := stops[st.Stop]; !ok && st.Stop != "" {
		return fmt.Errorf("stop %q is not one of end, length, tool_use, refusal", st.Stop)
	}
	return nil
}

func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}
