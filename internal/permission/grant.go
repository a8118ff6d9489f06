package permission

import "slices"

// Grants holds what a person has allowed for longer than once: canonical strings out of
// Decision.Remember, as "bash:go test *" or "edit:./**". In JSON it is an array. They count for
// the directory they were given in; whoever keeps them keeps them by directory, and for a
// session or for always as the person has said.
//
// A part is compared with them as a whole, never as a pattern: the "*" in them is part of the
// name of a kind of command, which is made by the same code that judges.
type Grants []string

// With returns the grants and these, sorted and without repetition. g stays as it is.
func (g Grants) With(keys ...string) Grants {
	all := slices.Sorted(slices.Values(append(slices.Clone(g), keys...)))
	return slices.Compact(all)
}

func (g Grants) has(key string) bool { return key != "" && slices.Contains(g, key) }
