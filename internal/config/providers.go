package config

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
)

// reservedHeaders belong to the HTTP client.
var reservedHeaders = []string{"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer"}

func (d *decoder) providers(dst *[]Provider, v value) {
	d.entries(v, func(name string, entry, at value) {
		if !providerName.MatchString(name) {
			d.problemf(at, "provider name %s must be 1 to 64 of a-z, 0-9, '.', '_' and '-'", quote(name))
			return
		}
		if p, ok := d.provider(name, entry); ok {
			*dst = append(*dst, p)
		}
	})
}

// maxTokens bounds the sizes of models, far above any that exist.
const maxTokens = math.MaxInt32

// keySources collects the ways in which a provider says where its key is.
type keySources struct {
	key   *Key
	count int
}

func (d *decoder) provider(name string, v value) (Provider, bool) {
	p := Provider{Name: name, IdleTimeout: DefaultIdleTimeout}
	var (
		keys    keySources
		network []string // keys that make no sense without a network
	)
	net := func(key string, decode func(value)) func(value) {
		return func(v value) {
			network = append(network, key)
			decode(v)
		}
	}
	before := len(d.problems)
	d.mapping(v, fields{
		"api":             d.api(&p.API),
		"base_url":        net("base_url", func(v value) { d.baseURL(&p.BaseURL, v) }),
		"api_key":         net("api_key", func(v value) { d.apiKey(&keys, v) }),
		"api_key_file":    net("api_key_file", func(v value) { d.apiKeyFile(&keys, v) }),
		"api_key_command": net("api_key_command", func(v value) { d.apiKeyCommand(&keys, v) }),
		"headers":         net("headers", func(v value) { d.headers(&p.Headers, v) }),
		"idle_timeout":    d.duration(&p.IdleTimeout, time.Second, time.Hour),
		"script":          d.path(&p.Script),
		"models":          func(v value) { d.list(v, func(v value) { d.model(&p.Models, v) }) },
	})
	if len(d.problems) > before {
		return p, true // so that default_model is not blamed as well
	}
	p.Key = keys.key
	switch {
	case p.API == "":
		d.problemf(v, "needs api: openai-chat, anthropic or scripted")
	case keys.count > 1:
		d.problemf(v, "has more than one of api_key, api_key_file and api_key_command")
	case p.API == APIScripted && len(network) > 0:
		d.problemf(v, "%s has no meaning for api: scripted", network[0])
	case p.API != APIScripted && p.Script != "":
		d.problemf(v, "script has a meaning for api: scripted only")
	}
	if p.BaseURL == "" {
		p.BaseURL = DefaultBaseURL(p.API)
	}
	if p.API == APIScripted && len(p.Models) == 0 {
		p.Models = []Model{demoModel()}
	}
	d.warnCleartext(p)
	return p, true
}

func (d *decoder) api(dst *API) func(value) {
	return func(v value) {
		s, _, ok := d.text(v, nil)
		if ok && slices.Contains(laterAPIs, s) {
			d.problemf(v, "%s is not supported by this version; use openai-chat, anthropic or scripted", s)
			return
		}
		enum(d, dst, APIOpenAIChat, APIAnthropic, APIScripted)(v)
	}
}

func (d *decoder) baseURL(dst *string, v value) {
	var s string
	if d.str(&s)(v); s == "" {
		return
	}
	s, err := parseBaseURL(s)
	if err != nil {
		d.problemf(v, "%v", err)
		return
	}
	*dst = s
}

func (d *decoder) apiKey(k *keySources, v value) {
	k.count++
	if s, ok := d.secret(v); ok {
		k.key = newKey(strings.TrimSpace(s.Reveal()))
	}
}

func (d *decoder) apiKeyFile(k *keySources, v value) {
	k.count++
	var path string
	if d.path(&path)(v); path != "" {
		k.key = keyFromFile(path)
	}
}

func (d *decoder) apiKeyCommand(k *keySources, v value) {
	k.count++
	var command []string
	d.list(v, func(v value) {
		if s, _, ok := d.text(v, &d.keyEnv); ok {
			if strings.ContainsRune(s, 0) {
				d.problemf(v, "has a NUL character")
			}
			command = append(command, s)
		}
	})
	if len(command) == 0 || command[0] == "" {
		d.problemf(v, "must be a list: a program and its arguments")
		return
	}
	k.key = keyFromCommand(command)
}

func (d *decoder) headers(dst *[]Header, v value) {
	d.entries(v, func(name string, entry, at value) {
		switch {
		case !headerName.MatchString(name):
			d.problemf(at, "%s is not the name of a header", quote(name))
			return
		case slices.Contains(reservedHeaders, strings.ToLower(name)):
			d.problemf(at, "header %s is set by roost", name)
			return
		case slices.ContainsFunc(*dst, func(h Header) bool { return strings.EqualFold(h.Name, name) }):
			d.problemf(at, "header %s is given twice", name)
			return
		}
		if s, ok := d.secret(entry); ok {
			*dst = append(*dst, Header{Name: name, Value: s})
		}
	})
}

func (d *decoder) model(dst *[]Model, v value) {
	var m Model
	before := len(d.problems)
	d.mapping(v, fields{
		"id":                d.str(&m.ID),
		"name":              d.str(&m.Name),
		"context_window":    d.integer(&m.ContextWindow, 1, maxTokens),
		"max_output_tokens": d.integer(&m.MaxOutputTokens, 1, maxTokens),
		"reasoning":         func(v value) { m.Reasoning = new(bool); d.boolean(m.Reasoning)(v) },
		"input":             func(v value) { m.Input = set(d, v, InputText, InputImage) },
		"thinking_levels":   func(v value) { m.ThinkingLevels = set(d, v, session.ThinkingLevels...) },
		"cost":              func(v value) { m.Cost = d.cost(v) },
	})
	switch {
	case m.ID == "":
		if len(d.problems) == before {
			d.problemf(v, "needs an id")
		}
		return
	case len(m.ID) > 256:
		d.problemf(v, "the id is longer than 256 bytes")
	case slices.ContainsFunc(*dst, func(o Model) bool { return o.ID == m.ID }):
		d.problemf(v, "a second model with the same id")
	case m.ContextWindow > 0 && m.MaxOutputTokens > m.ContextWindow:
		d.problemf(v, "max_output_tokens is larger than context_window")
	}
	*dst = append(*dst, m)
}

// set decodes a list of different words, at least one.
func set[T ~string](d *decoder, v value, known ...T) []T {
	var words []T
	before := len(d.problems)
	d.list(v, func(v value) {
		var w T
		enum(d, &w, known...)(v)
		if w != "" && slices.Contains(words, w) {
			d.problemf(v, "%s is given twice", w)
		}
		words = append(words, w)
	})
	if len(words) == 0 && len(d.problems) == before {
		d.problemf(v, "is empty; give at least one, or remove the key")
	}
	return words
}

func (d *decoder) cost(v value) *session.Cost {
	var c session.Cost
	d.mapping(v, fields{
		"input":       d.number(&c.Input),
		"output":      d.number(&c.Output),
		"cache_read":  d.number(&c.CacheRead),
		"cache_write": d.number(&c.CacheWrite),
	})
	return &c
}
