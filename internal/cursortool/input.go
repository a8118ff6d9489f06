package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
)

// decode reads the arguments of a call into v and, when v has a method check, lets it look at them.
// What v does not know is ignored. The error is a text for the model.
func decode(args json.RawMessage, v any) error {
	if err := json.Unmarshal(args, v); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
			return fmt.Errorf("%s must not be a %s: see the tool's parameters", t.Field, t.Value)
		}
		return err
	}
	if c, ok := v.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// peek reads what can be read of args into v, field by field: one that does not fit is left out.
func peek(args json.RawMessage, v any) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return
	}
	for name, value := range fields {
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil {
			_ = json.Unmarshal(one, v) // what does not fit is what is to be left out
		}
	}
}

// number is a whole number as models write it: also in quotes, or as 3.0.
type number int32

// UnmarshalJSON accepts whole numbers of 32 bits.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	f, err := looseNumber(b)
	if err != nil || f != float64(int32(f)) {
		return fmt.Errorf("%.40s is not a whole number", b)
	}
	*n = number(f)
	return nil
}

// opt returns n as an optional field.
func (n *number) opt() *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

// truth is a boolean as models write it: also in quotes.
type truth bool

// UnmarshalJSON accepts true and false.
func (t *truth) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true", `"true"`:
		*t = true
	case "false", `"false"`, "null":
		*t = false
	default:
		return fmt.Errorf("%.40s is neither true nor false", b)
	}
	return nil
}

// list is strings as models write them: also a single one, or a list as JSON in a string.
type list []string

// UnmarshalJSON accepts a list of strings, or a string.
func (l *list) UnmarshalJSON(b []byte) error {
	var many []string
	if json.Unmarshal(b, &many) == nil {
		*l = many
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return fmt.Errorf("%.40s is not a list of strings", b)
	}
	if json.Unmarshal([]byte(one), &many) == nil {
		*l = many
		return nil
	}
	*l = list{one}
	return nil
}

// first returns the first of texts that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// opt returns t as an optional field.
func (t *truth) opt() *bool {
	if t == nil {
		return nil
	}
	return new(bool(*t))
}
