package server

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/anthropic"
	"github.com/roost-dev/roost/internal/provider/openaichat"
	"github.com/roost-dev/roost/internal/provider/scripted"
	"github.com/roost-dev/roost/internal/session"
)

// maxOffered bounds the models that a provider without a list offers.
const maxOffered = 30

// models is every model that can be asked. It is safe for concurrent use.
type models struct {
	cfg       *config.Config
	providers map[string]provider.Model
	describe  func() []catalog.Model // in the order of the configuration
}

func openModels(cfg *config.Config, counts *requests) (*models, error) {
	m := &models{cfg: cfg, providers: make(map[string]provider.Model)}
	for _, p := range cfg.Providers {
		opened, err := openProvider(p)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
		m.providers[p.Name] = countedModel{opened, counts}
	}
	// Late, because the embedded catalogue takes longer to decode than the rest to start.
	m.describe = sync.OnceValue(func() []catalog.Model { return describe(cfg) })
	return m, nil
}

// openProvider makes the client of one provider; this is where a new dialect is added.
func openProvider(p config.Provider) (provider.Model, error) {
	key := func(ctx context.Context) (string, error) {
		if p.Key == nil {
			return "", nil
		}
		secret, err := p.Key.Value(ctx)
		return secret.Reveal(), err
	}
	headers := make(map[string]string)
	for _, h := range p.Headers {
		headers[h.Name] = h.Value.Reveal()
	}
	switch p.API {
	case config.APIOpenAIChat:
		return openaichat.New(openaichat.Options{Name: p.Name, BaseURL: p.BaseURL, Key: key, Headers: headers, Idle: p.IdleTimeout}), nil
	case config.APIAnthropic:
		return anthropic.New(anthropic.Options{Name: p.Name, BaseURL: p.BaseURL, Key: key, Headers: headers, Idle: p.IdleTimeout}), nil
	case config.APIScripted:
		if p.Script == "" {
			return scripted.Demo(), nil
		}
		text, err := os.ReadFile(p.Script)
		if err != nil {
			return nil, err
		}
		return scripted.Parse(text)
	}
	return nil, fmt.Errorf("unknown api %q", p.API)
}

// describe lists the models of the configuration. A provider without a list offers the newest
// that the catalogue knows of it.
func describe(cfg *config.Config) []catalog.Model {
	var (
		known catalog.Catalog
		all   []catalog.Model
	)
	for _, p := range cfg.Providers {
		var list []catalog.Model
		for _, m := range p.Models {
			list = append(list, known.Lookup(session.ModelRef{Provider: p.Name, ID: m.ID}, "", dialects[p.API], override(m)))
		}
		if len(list) == 0 {
			list = known.Known(p.Name)
			list = list[:min(len(list), maxOffered)]
		}
		for _, m := range list {
			m.Authenticated = p.Key != nil || p.API == config.APIScripted || p.BaseURL != config.DefaultBaseURL(p.API)
			all = append(all, m)
		}
	}
	return all
}

var dialects = map[config.API]string{
	config.APIOpenAIChat: catalog.APIOpenAIChat,
	config.APIAnthropic:  catalog.APIAnthropic,
	config.APIScripted:   catalog.APIScripted,
}

func override(m config.Model) catalog.Override {
	o := catalog.Override{
		Name: m.Name, Reasoning: m.Reasoning, ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutputTokens,
		Cost: m.Cost, ThinkingLevels: m.ThinkingLevels,
	}
	for _, i := range m.Input {
		o.Input = append(o.Input, string(i))
	}
	return o
}

// Find implements the engine's need of models.
func (m *models) Find(ref session.ModelRef) (provider.Model, catalog.Model, error) {
	p, ok := m.providers[ref.Provider]
	if !ok {
		return nil, catalog.Model{}, session.Errorf(session.Invalid, "there is no provider %q; see the list of models", ref.Provider)
	}
	list := m.describe()
	i := slices.IndexFunc(list, func(d catalog.Model) bool { return d.Ref == ref })
	if i < 0 {
		return nil, catalog.Model{}, session.Errorf(session.Invalid, "provider %s has no model %q; see the list of models", ref.Provider, ref.ID)
	}
	return p, list[i], nil
}

// first is the model of new sessions that name none.
func (m *models) first() session.ModelRef {
	if !m.cfg.DefaultModel.IsZero() {
		return m.cfg.DefaultModel
	}
	if list := m.describe(); len(list) > 0 {
		return list[0].Ref
	}
	return session.ModelRef{}
}
