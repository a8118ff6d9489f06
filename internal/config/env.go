package config

import (
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// FromEnv returns the configuration of a user without a file. OPENAI_API_KEY and
// ANTHROPIC_API_KEY give the providers "openai" and "anthropic", whose addresses are
// OPENAI_BASE_URL and ANTHROPIC_BASE_URL when set, the latter with or without its "/v1"; without either key there is the
// provider "demo" with the model "demo", which answers from a script. A variable with a
// value that cannot be used gives an [*Error].
func FromEnv(getenv func(string) string) (*Config, error) {
	d := &decoder{file: "environment", getenv: getenv}
	c := defaults()
	d.envProviders(c)
	return d.finish(c)
}

// envProviders adds the environment's providers to c, or the demo, and the default model.
func (d *decoder) envProviders(c *Config) {
	for _, s := range []struct {
		name        string
		api         API
		key, urlVar string
	}{
		{"openai", APIOpenAIChat, "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{"anthropic", APIAnthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
	} {
		key := d.getenv(s.key)
		if key == "" {
			continue
		}
		d.keyEnv = append(d.keyEnv, s.key)
		if !headerText(key) {
			d.problemf(value{}, "%s: %v", s.key, errKeyText)
		}
		p := Provider{Name: s.name, API: s.api, BaseURL: DefaultBaseURL(s.api), Key: newKey(key), IdleTimeout: DefaultIdleTimeout}
		if raw := d.getenv(s.urlVar); raw != "" {
			var err error
			if p.BaseURL, err = parseBaseURL(raw); err != nil {
				d.problemf(value{}, "%s: %v", s.urlVar, err)
			}
			// Other programs that read this variable add the version themselves.
			if p.API == APIAnthropic && !strings.HasSuffix(p.BaseURL, "/v1") {
				p.BaseURL += "/v1"
			}
			d.warnCleartext(p)
		}
		c.Providers = append(c.Providers, p)
	}
	if len(c.Providers) == 0 {
		c.Providers = []Provider{{Name: "demo", API: APIScripted, IdleTimeout: DefaultIdleTimeout, Models: []Model{demoModel()}}}
	}
	c.DefaultModel = firstModel(c.Providers)
}

// firstModel returns the first model that a list names. It is zero when the first provider
// leaves the choice to the catalogue.
func firstModel(providers []Provider) session.ModelRef {
	if len(providers) == 0 || len(providers[0].Models) == 0 {
		return session.ModelRef{}
	}
	return session.ModelRef{Provider: providers[0].Name, ID: providers[0].Models[0].ID}
}
