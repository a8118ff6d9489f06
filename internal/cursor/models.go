package cursor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
)

// modelNames finds models by the names that clients use. It is safe for concurrent use.
type modelNames struct {
	models   func() []catalog.Model
	standard func() session.ModelRef
	aliases  map[string]session.ModelRef
	thinking session.Thinking
}

// newModelNames takes Models, Default, Aliases and Thinking of opt.
func newModelNames(opt Options) modelNames {
	return modelNames{models: opt.Models, standard: opt.Default, aliases: opt.Aliases, thinking: opt.Thinking}
}

// find returns the model that a client asks for and the level it shall think at: one of the model's,
// the server's own default if the client asks for none. A model is called "provider/model", by an
// alias, or by its id alone if only one provider has it; "default", "auto" and nothing are the
// default model. Another name is an error that a client shows and does not retry.
func (n modelNames) find(model string, effort cursorwire.Effort) (catalog.Model, session.Thinking, *cursorwire.Error) {
	list := n.models()
	found, err := n.search(list, strings.TrimSpace(model))
	if err != nil {
		return catalog.Model{}, "", err
	}
	return found, session.Clamp(n.wanted(effort), found.ThinkingLevels), nil
}

func (n modelNames) search(list []catalog.Model, name string) (catalog.Model, *cursorwire.Error) {
	if isStandard(name) {
		return n.reference(list, n.standard(), "the default model")
	}
	if i := slices.IndexFunc(list, func(m catalog.Model) bool { return m.Ref.String() == name }); i >= 0 {
		return list[i], nil
	}
	if ref, ok := n.aliases[name]; ok {
		return n.reference(list, ref, fmt.Sprintf("%q", name))
	}
	var same []catalog.Model
	for _, m := range list {
		if m.Ref.ID == name {
			same = append(same, m)
		}
	}
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
		return catalog.Model{}, cursorwire.BadModel(fmt.Sprintf("There is no model %.80q. %s", name, some(list)))
	default:
		return catalog.Model{}, cursorwire.BadModel(fmt.Sprintf("Several providers have a model %.80q. %s", name, some(same)))
	}
}

// reference returns the model of a reference that the configuration made.
func (n modelNames) reference(list []catalog.Model, ref session.ModelRef, name string) (catalog.Model, *cursorwire.Error) {
	i := slices.IndexFunc(list, func(m catalog.Model) bool { return m.Ref == ref })
	switch {
	case i >= 0:
		return list[i], nil
	case ref.IsZero():
		return catalog.Model{}, cursorwire.BadModel("No model is configured. Name one in roost's configuration.")
	default:
		return catalog.Model{}, cursorwire.BadModel(fmt.Sprintf("%s is %s, which is not on offer. %s", name, ref, some(list)))
	}
}

// some says what may be asked for instead.
func some(list []catalog.Model) string {
	const most = 8
	var names []string
	for _, m := range list[:min(len(list), most)] {
		names = append(names, m.Ref.String())
	}
	switch more := len(list) - most; {
	case len(list) == 0:
		return "No model is configured."
	case more > 0:
		return fmt.Sprintf("Choose one of %s, and %d more.", strings.Join(names, ", "), more)
	default:
		return fmt.Sprintf("Choose one of %s.", strings.Join(names, ", "))
	}
}

// wanted returns the level that an effort asks for.
func (n modelNames) wanted(effort cursorwire.Effort) session.Thinking {
	switch effort {
	case cursorwire.EffortDisabled:
		return session.ThinkingOff
	case cursorwire.EffortLow:
		return session.ThinkingLow
	case cursorwire.EffortMedium:
		return session.ThinkingMedium
	case cursorwire.EffortHigh:
		return session.ThinkingHigh
	case cursorwire.EffortXHigh:
		return session.ThinkingXHigh
	case cursorwire.EffortMax:
		return session.ThinkingMax
	case cursorwire.EffortUnset:
		return n.thinking
	default:
		return n.thinking
	}
}

// effortOf returns the effort that asks for a level. The lowest levels have one in common.
func effortOf(level session.Thinking) cursorwire.Effort {
	switch level {
	case session.ThinkingOff:
		return cursorwire.EffortDisabled
	case session.ThinkingMinimal, session.ThinkingLow:
		return cursorwire.EffortLow
	case session.ThinkingMedium:
		return cursorwire.EffortMedium
	case session.ThinkingHigh:
		return cursorwire.EffortHigh
	case session.ThinkingXHigh:
		return cursorwire.EffortXHigh
	case session.ThinkingMax:
		return cursorwire.EffortMax
	default:
		return cursorwire.EffortUnset
	}
}

// offer is one entry of a client's list of models.
type offer struct {
	name    string // what the client asks for; unique and stable
	display string // for people; unique
	aliases []string
	model   catalog.Model
}

// offers lists the models in the order of the configuration, and then the aliases in that of the
// alphabet. A client that gets two entries of one name shows one for all (section 9.2).
func (n modelNames) offers() []offer {
	list := n.models()
	asked, shown := make(map[string]int), make(map[string]int) // how often a name may mean something
	for _, m := range list {
		asked[m.Ref.ID]++
		asked[m.Ref.String()]++
		shown[m.Name]++
	}
	var all []offer
	taken := make(map[string]bool)
	for _, m := range list {
		o := offer{name: m.Ref.String(), display: m.Name, model: m}
		if shown[m.Name] > 1 || taken[o.display] {
			o.display = o.name
		}
		if _, other := n.aliases[m.Ref.ID]; asked[m.Ref.ID] == 1 && !other && !isStandard(m.Ref.ID) {
			o.aliases = []string{m.Ref.ID}
		}
		if !taken[o.name] {
			all = append(all, o)
		}
		taken[o.name], taken[o.display] = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(n.aliases)) {
		m, err := n.reference(list, n.aliases[name], name)
		if err != nil {
			continue
		}
		o := offer{name: name, display: name, model: m}
		if taken[name] {
			o.display = name + " (" + o.model.Ref.String() + ")"
		}
		all = append(all, o)
	}
	return all
}

// isStandard reports whether a name asks for the default model.
func isStandard(name string) bool { return name == "" || name == "default" || name == "auto" }

// standardOffer returns the entry of the default model, or the first one; ok is false without models.
func (n modelNames) standardOffer(all []offer) (o offer, ok bool) {
	if len(all) == 0 {
		return offer{}, false
	}
	ref := n.standard()
	if i := slices.IndexFunc(all, func(o offer) bool { return o.model.Ref == ref }); i >= 0 {
		return all[i], true
	}
	return all[0], true
}
