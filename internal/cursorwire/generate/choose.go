package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// selection is what selection.txt says.
type selection struct {
	rpcs     []string // service/method
	messages []string // read or written on their own, as blobs or details
	cuts     []string // a message, or one field of a message
}

// readSelection reads lines of "rpc NAME", "message NAME" and "cut NAME"; # starts a comment.
func readSelection(path string) (selection, error) {
	var sel selection
	data, err := os.ReadFile(path)
	if err != nil {
		return sel, err
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		into := map[string]*[]string{"rpc": &sel.rpcs, "message": &sel.messages, "cut": &sel.cuts}[words[0]]
		if into == nil || len(words) != 2 {
			return sel, fmt.Errorf("%s: cannot read %q", path, strings.TrimSpace(line))
		}
		*into = append(*into, words[1])
	}
	return sel, nil
}

// schema is what is printed.
type schema struct {
	messages map[string][]field // by number
	cut      map[string][]field // the fields left out of a message, by number
	enums    map[string][]value // by number
	rpcs     []rpc              // by service and method
}

// choose returns what sel reaches in t. A name that means nothing is an error, so that no line of
// selection.txt outlives its reason.
func choose(t *tables, sel selection) (*schema, error) {
	c := chooser{
		t: t, unused: map[string]bool{},
		s: &schema{messages: map[string][]field{}, cut: map[string][]field{}, enums: map[string][]value{}},
	}
	for _, name := range sel.cuts {
		c.unused[name] = true
	}
	c.cuts = maps.Clone(c.unused)
	queue := slices.Clone(sel.messages)
	for _, name := range sel.rpcs {
		r, ok := t.rpcs[name]
		if !ok {
			return nil, fmt.Errorf("no table has the rpc %s", name)
		}
		c.s.rpcs = append(c.s.rpcs, r)
		queue = append(queue, r.input, r.output)
	}
	for len(queue) > 0 {
		next, err := c.message(queue[0])
		if err != nil {
			return nil, err
		}
		queue = append(queue[1:], next...)
	}
	if len(c.unused) > 0 {
		return nil, fmt.Errorf("cut, but not reached: %v", slices.Sorted(maps.Keys(c.unused)))
	}
	slices.SortFunc(c.s.rpcs, func(a, b rpc) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.method, b.method))
	})
	return c.s, c.s.checkScopes()
}

type chooser struct {
	t      *tables
	s      *schema
	cuts   map[string]bool
	unused map[string]bool // the cuts that nothing has met
}

// message takes a message over and returns the messages that its fields name.
func (c *chooser) message(name string) ([]string, error) {
	if _, done := c.s.messages[name]; done {
		return nil, nil
	}
	fields, ok := c.t.messages[name]
	if !ok {
		return nil, fmt.Errorf("no table has the message %s", name)
	}
	c.s.messages[name] = nil
	var next []string
	for _, f := range slices.SortedFunc(slices.Values(fields), func(a, b field) int { return a.number - b.number }) {
		values, isEnum := c.t.enums[f.typ]
		_, isMessage := c.t.messages[f.typ]
		switch {
		case c.isCut(f):
			c.s.cut[name] = append(c.s.cut[name], f)
			continue
		case isEnum:
			c.s.enums[f.typ] = slices.SortedFunc(slices.Values(values), func(a, b value) int { return a.number - b.number })
		case isMessage:
			next = append(next, f.typ)
		case strings.Contains(f.typ, ".") && !strings.HasPrefix(f.typ, "google.protobuf."):
			return nil, fmt.Errorf("no table has %s, the type of %s.%s", f.typ, name, f.name)
		}
		c.s.messages[name] = append(c.s.messages[name], f)
	}
	return next, nil
}

func (c *chooser) isCut(f field) bool {
	cut := false
	for _, name := range []string{f.typ, f.message + "." + f.name} {
		if c.cuts[name] {
			delete(c.unused, name)
			cut = true
		}
	}
	return cut
}

// checkScopes makes sure that what encloses a chosen type is chosen.
func (s *schema) checkScopes() error {
	for _, name := range slices.Concat(slices.Collect(maps.Keys(s.messages)), slices.Collect(maps.Keys(s.enums))) {
		scope := name[:strings.LastIndexByte(name, '.')]
		if _, ok := s.messages[scope]; !ok && scope != packageOf(name) {
			return fmt.Errorf("%s is chosen, but %s around it is not", name, scope)
		}
	}
	return nil
}

// packageOf is the package of a message or enum: the words that start with a small letter.
func packageOf(name string) string {
	words := strings.Split(name, ".")
	i := slices.IndexFunc(words, func(w string) bool { return strings.ToUpper(w[:1]) == w[:1] })
	return strings.Join(words[:i], ".")
}
