package cursor

import (
	"encoding/json"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// wirePart is a message, or a value in one, of which roost reads or writes so few fields that generated
// code would be a waste. Most of what a start-up asks is of that kind.
type wirePart struct {
	codec cursorwire.Codec
	data  []byte
}

func (r unaryRequest) part() wirePart { return wirePart{r.codec, r.body} }

// all returns the values of a field of p, in order: of its number in protobuf, of its name in JSON.
// Only texts, bytes and messages are found. What cannot be read has no values.
func (p wirePart) all(number protowire.Number, name string) []wirePart {
	if p.codec == cursorwire.JSON {
		return p.allJSON(name)
	}
	var values []wirePart
	for data := p.data; len(data) > 0; {
		n, wire, head := protowire.ConsumeTag(data)
		if head < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(n, wire, data[head:])
		if size < 0 {
			return nil
		}
		if n == number && wire == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data[head:])
			values = append(values, wirePart{p.codec, value})
		}
		data = data[head+size:]
	}
	return values
}

func (p wirePart) allJSON(name string) []wirePart {
	var fields map[string]json.RawMessage
	if json.Unmarshal(p.data, &fields) != nil || fields[name] == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(fields[name], &list) != nil {
		return []wirePart{{p.codec, fields[name]}}
	}
	values := make([]wirePart, 0, len(list))
	for _, value := range list {
		values = append(values, wirePart{p.codec, value})
	}
	return values
}

// text returns p as a text, empty if it is none.
func (p wirePart) text() string {
	if p.codec == cursorwire.Proto {
		return string(p.data)
	}
	var s string
	_ = json.Unmarshal(p.data, &s) // what is no text stays empty
	return s
}

// texts returns the texts of a field that are not empty.
func (p wirePart) texts(number protowire.Number, name string) []string {
	var all []string
	for _, value := range p.all(number, name) {
		if s := value.text(); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// wireField is one value of a reply: a string, an int32 or a float64.
type wireField struct {
	number protowire.Number
	name   string
	value  any
}

// fields returns a message with these fields as the reply.
func (r unaryRequest) fields(list ...wireField) ([]byte, error) {
	if r.codec == cursorwire.JSON {
		m := make(map[string]any, len(list))
		for _, f := range list {
			m[f.name] = f.value
		}
		return json.Marshal(m)
	}
	var out []byte
	for _, f := range list {
		switch v := f.value.(type) {
		case string:
			out = protowire.AppendString(protowire.AppendTag(out, f.number, protowire.BytesType), v)
		case int32:
			out = protowire.AppendVarint(protowire.AppendTag(out, f.number, protowire.VarintType), uint64(v))
		case float64:
			out = protowire.AppendFixed64(protowire.AppendTag(out, f.number, protowire.Fixed64Type), math.Float64bits(v))
		}
	}
	return out, nil
}
