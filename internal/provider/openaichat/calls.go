package openaichat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/provider"
)

// maxCalls bounds the calls of one answer; further ones are dropped.
const maxCalls = 256

// calls gathers the tool calls of an answer. Servers differ in how they tell them apart:
// by index, by id, or only by the order in which they come.
type calls struct {
	list []*call
}

type call struct {
	index *float64
	id    string
	name  string
	args  strings.Builder
	begun bool // CallStart was sent
}

// delta takes a piece of a call.
func (cs *calls) delta(d callDelta, parts []provider.Part) []provider.Part {
	args := arguments(d.Function.Arguments)
	c, key := cs.find(d)
	if c == nil {
		return parts
	}
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Function.Name
	}
	if args != "" && again(c.args.String(), args) {
		args = ""
	}
	c.args.WriteString(args)
	if !c.begun && c.name != "" {
		args = c.args.String() // what came before a late name, too
		c.begun = true
		parts = append(parts, provider.Part{Kind: provider.CallStart, Key: key, Name: c.name})
	}
	if c.begun && args != "" {
		parts = append(parts, provider.Part{Kind: provider.CallDelta, Key: key, Text: args})
	}
	return parts
}

// find returns the call that a piece belongs to, a new one if need be, and its key.
func (cs *calls) find(d callDelta) (*call, int) {
	for key, v := range slices.Backward(cs.list) {
		if v.has(d, key == len(cs.list)-1) {
			return v, key
		}
	}
	if len(cs.list) == maxCalls {
		return nil, 0
	}
	cs.list = append(cs.list, &call{index: d.Index})
	return cs.list[len(cs.list)-1], len(cs.list) - 1
}

// has reports whether d is a piece of c. newest says that c is the newest call.
func (c *call) has(d callDelta, newest bool) bool {
	if c.index != nil && d.Index != nil {
		// Some servers number every call 0 and tell them apart by id only.
		other := d.ID != "" && c.id != "" && d.ID != c.id && d.Function.Name != ""
		return *c.index == *d.Index && !other
	}
	if d.ID != "" && c.id != "" {
		return d.ID == c.id
	}
	// Neither index nor id: a name begins another call, anything else goes on.
	another := d.Function.Name != "" && c.name != ""
	return newest && !another && (d.ID == "" || c.id == "")
}

// again reports whether a piece repeats the whole arguments, as some servers do at the end.
func again(args, piece string) bool {
	return strings.HasPrefix(piece, "{") && strings.HasSuffix(args, "}") &&
		json.Valid([]byte(piece)) && json.Valid([]byte(args))
}

// arguments returns the text of an arguments field: a string, or JSON as it is.
func arguments(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// end completes the calls. When the answer was cut for its length, a call whose arguments
// are not whole gets no CallEnd, so that nobody runs it.
func (cs *calls) end(cut bool, parts []provider.Part) []provider.Part {
	for key, c := range cs.list {
		args := c.args.String()
		if !c.begun {
			parts = append(parts, provider.Part{Kind: provider.CallStart, Key: key, Name: "unknown"})
			if args != "" {
				parts = append(parts, provider.Part{Kind: provider.CallDelta, Key: key, Text: args})
			}
		}
		if cut && !json.Valid([]byte(args)) {
			continue
		}
		if strings.TrimSpace(args) == "" {
			parts = append(parts, provider.Part{Kind: provider.CallDelta, Key: key, Text: "{}"})
		}
		parts = append(parts, provider.Part{Kind: provider.CallEnd, Key: key})
	}
	return parts
}
