package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// maxAliases bounds the names, above any list of models that a client brings.
const maxAliases = 1000

// aliasName is what clients call models: no spaces, which they trim, and no controls.
var aliasName = regexp.MustCompile(`^[!-~]{1,128}$`)

// reservedAliases ask for the default model.
var reservedAliases = []string{"default", "auto"}

// modelRef decodes "provider/model" and checks that both exist. A provider without a list offers
// the catalogue's models, which are not known here.
func (d *decoder) modelRef(c *Config, v value) (session.ModelRef, bool) {
	s, written, ok := d.text(v, nil)
	if !ok {
		return session.ModelRef{}, false
	}
	name, id, found := strings.Cut(s, "/") // a model's id may have slashes itself
	if !found || name == "" || id == "" {
		d.problemf(v, "must be provider/model, not %s", quote(written))
		return session.ModelRef{}, false
	}
	p, ok := c.Provider(name)
	if !ok {
		var names []string
		for _, p := range c.Providers {
			names = append(names, p.Name)
		}
		d.problemf(v, "%s", unknown("provider", writtenName(written), names))
		return session.ModelRef{}, false
	}
	var ids []string
	for _, m := range p.Models {
		ids = append(ids, m.ID)
	}
	if len(ids) > 0 && !slices.Contains(ids, id) {
		d.problemf(v, "provider %s: %s", name, unknown("model", strings.TrimPrefix(written, name+"/"), ids))
		return session.ModelRef{}, false
	}
	return session.ModelRef{Provider: name, ID: id}, true
}

// writtenName is the provider's part of a model as it is written in the file.
func writtenName(written string) string {
	name, _, _ := strings.Cut(written, "/")
	return name
}

// aliases decodes further names of models. None may hide a name that means something already.
func (d *decoder) aliases(c *Config, v value) {
	d.entries(v, func(name string, entry, at value) {
		provider, _, _ := strings.Cut(name, "/")
		_, hides := c.Provider(provider)
		switch {
		case !aliasName.MatchString(name):
			d.problemf(at, "%s must be 1 to 128 visible ASCII characters without spaces", quote(name))
		case slices.Contains(reservedAliases, name):
			d.problemf(at, "%s asks for the default model; set default_model", quote(name))
		case hides && provider != name:
			d.problemf(at, "%s would hide a model of provider %s", quote(name), provider)
		case len(c.Aliases) >= maxAliases:
			d.problemf(at, "more than %d aliases", maxAliases)
		default:
			d.alias(c, name, entry)
		}
	})
}

func (d *decoder) alias(c *Config, name string, v value) {
	ref, ok := d.modelRef(c, v)
	if !ok {
		return
	}
	if c.Aliases == nil {
		c.Aliases = make(map[string]session.ModelRef)
	}
	c.Aliases[name] = ref
}
