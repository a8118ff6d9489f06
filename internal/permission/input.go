package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxInput  = 8 << 20 // bytes of a call's input that are looked at
	maxFields = 1000    // names in a call's input, at any depth
)

var (
	errInput     = errors.New("its input is not an object that can be read")
	errAmbiguous = errors.New("its input names something twice, so two programs may read it differently")
)

// field is a text in a call's input, with its name in lower case.
type field struct {
	name, text string
	top        bool // not nested
}

// readInput lists the texts in a call's input. Names that differ only in case count as the
// same, because decoders disagree about those.
func readInput(raw json.RawMessage) ([]field, error) {
	if len(raw) > maxInput || !json.Valid(raw) { // Valid bounds the depth as well
		return nil, errInput
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errInput
	}
	in := inputReader{d: d}
	if err := in.object(true); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errInput
	}
	return in.fields, nil
}

type inputReader struct {
	d      *json.Decoder
	fields []field
	names  int
}

// object reads the rest of an object.
func (r *inputReader) object(top bool) error {
	seen := map[string]bool{}
	for r.d.More() {
		t, err := r.d.Token()
		if err != nil {
			return errInput
		}
		name := strings.ToLower(fmt.Sprint(t)) // a string: Valid has seen to that
		r.names++
		if seen[name] {
			return errAmbiguous
		}
		if r.names > maxFields {
			return errInput
		}
		seen[name] = true
		if err := r.value(name, top); err != nil {
			return err
		}
	}
	_, err := r.d.Token()
	return err
}

// value reads a value; the elements of an array have the array's name.
func (r *inputReader) value(name string, top bool) error {
	t, err := r.d.Token()
	if err != nil {
		return errInput
	}
	switch t := t.(type) {
	case string:
		r.fields = append(r.fields, field{name: name, text: t, top: top})
	case json.Delim:
		if t == '{' {
			return r.object(false)
		}
		for r.d.More() {
			if err := r.value(name, false); err != nil {
				return err
			}
		}
		_, err = r.d.Token()
	}
	return err
}

// top returns the text of a field that is not nested.
func top(in []field, name string) (string, bool) {
	for _, f := range in {
		if f.top && f.name == name {
			return f.text, true
		}
	}
	return "", false
}
