package cli

import (
	"fmt"
	"slices"
	"strings"
)

// oneOf is a flag that takes a few values, so that a wrong one is wrong usage before anything
// is done.
type oneOf struct {
	value  string
	values []string
}

// String implements pflag.Value.
func (o *oneOf) String() string { return o.value }

// Set implements pflag.Value.
func (o *oneOf) Set(value string) error {
	if !slices.Contains(o.values, value) {
		return fmt.Errorf("use one of %s", strings.Join(o.values, ", "))
	}
	o.value = value
	return nil
}

// Type implements pflag.Value; it is what the help calls the value.
func (o *oneOf) Type() string { return strings.Join(o.values, "|") }
