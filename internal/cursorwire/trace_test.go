package cursorwire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	// For the registry: paths and types are found by name.
	_ "github.com/roost-dev/roost/proto/aiserver/v1"
)

// trace is a line of testdata/messages.jsonl: what a real client sent, or accepted, with the
// protocol's own names. Long strings are cut.
type trace struct {
	Trace, Type, Path string
	Msg               map[string]any
}

func traces(tb testing.TB) []trace {
	tb.Helper()
	f, err := os.Open("testdata/messages.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []trace
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var tr trace
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&tr); err != nil {
			tb.Fatal(err)
		}
		if tr.Path != "" {
			tr.Type = inputOf(tb, tr.Path)
		}
		all = append(all, tr)
	}
	if lines.Err() != nil || len(all) < 400 {
		tb.Fatalf("%d traces, %v", len(all), lines.Err())
	}
	return all
}

// inputOf is the request of the call with this path.
func inputOf(tb testing.TB, path string) string {
	tb.Helper()
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + method))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return string(d.(protoreflect.MethodDescriptor).Input().FullName())
}

func newMessage(tb testing.TB, name string) proto.Message {
	tb.Helper()
	typ, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return typ.New().Interface()
}

func (tr trace) message(tb testing.TB) proto.Message {
	tb.Helper()
	m := newMessage(tb, tr.Type)
	if err := fill(m.ProtoReflect(), tr.Msg); err != nil {
		tb.Fatalf("%s: %s: %v", tr.Trace, tr.Type, err)
	}
	return m
}

// Every message of the traces has a place in the generated types, and comes back from bytes with the
// same value.
func TestTraces(t *testing.T) {
	for _, tr := range traces(t) {
		data, err := Proto.Append(nil, tr.message(t))
		if err != nil {
			t.Fatal(err)
		}
		m := newMessage(t, tr.Type)
		if tr.Type == "agent.v1.AgentClientMessage" {
			m, err = DecodeClient(Proto, data)
		} else {
			err = Proto.Decode(data, m)
		}
		if err != nil {
			t.Fatalf("%s: %v", tr.Trace, err)
		}
		if got := dump(m.ProtoReflect()); !reflect.DeepEqual(prune(got), prune(tr.Msg)) || !proto.Equal(m, tr.message(t)) {
			t.Errorf("%s:\n got %v\nwant %v", tr.Trace, got, tr.Msg)
		}
		again, err := Proto.Append(nil, m)
		if err != nil || len(again) != len(data) {
			t.Errorf("%s: %d bytes, then %d, %v", tr.Trace, len(data), len(again), err)
		}
		checkJSON(t, tr, m)
	}
}

// prune removes empty strings and lists, which may or may not be written.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if list, ok := item.([]any); item != "" && (!ok || len(list) > 0) {
				out[name] = prune(item)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, prune(item))
		}
		return out
	default:
		return v
	}
}

// checkJSON sends the message through the other codec.
func checkJSON(t *testing.T, tr trace, m proto.Message) {
	t.Helper()
	data, err := JSON.Append(nil, m)
	if err != nil {
		t.Fatalf("%s: %v", tr.Trace, err)
	}
	back := newMessage(t, tr.Type)
	if err := JSON.Decode(data, back); err != nil || !proto.Equal(m, back) {
		t.Errorf("%s: %s: %v", tr.Trace, data, err)
	}
}

// fill sets the fields of m from values under the protocol's own names; a name that m has not is an
// error. A value of google.protobuf.Value is written with its fields, unlike in protobuf's JSON.
func fill(m protoreflect.Message, values map[string]any) error {
	for name, v := range values {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil {
			return fmt.Errorf("%s has no field %s", m.Descriptor().FullName(), name)
		}
		if err := fillField(m, f, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func fillField(m protoreflect.Message, f protoreflect.FieldDescriptor, v any) error {
	switch {
	case f.IsMap():
		for key, item := range v.(map[string]any) {
			value := m.Mutable(f).Map().NewValue()
			if err := fillValue(f.MapValue(), &value, item); err != nil {
				return err
			}
			m.Mutable(f).Map().Set(protoreflect.ValueOfString(key).MapKey(), value)
		}
	case f.IsList():
		for _, item := range v.([]any) {
			value := m.Mutable(f).List().NewElement()
			if err := fillValue(f, &value, item); err != nil {
				return err
			}
			m.Mutable(f).List().Append(value)
		}
	default:
		value := m.NewField(f)
		if err := fillValue(f, &value, v); err != nil {
			return err
		}
		m.Set(f, value)
	}
	return nil
}

func fillValue(f protoreflect.FieldDescriptor, value *protoreflect.Value, v any) error {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return fill(value.Message(), v.(map[string]any))
	case protoreflect.StringKind:
		*value = protoreflect.ValueOfString(v.(string))
	case protoreflect.BoolKind:
		*value = protoreflect.ValueOfBool(v.(bool))
	case protoreflect.BytesKind:
		data, err := base64.StdEncoding.DecodeString(v.(string))
		*value = protoreflect.ValueOfBytes(data)
		return err
	case protoreflect.EnumKind:
		e := f.Enum().Values().ByName(protoreflect.Name(v.(string)))
		if e == nil {
			return fmt.Errorf("no value %v", v)
		}
		*value = protoreflect.ValueOfEnum(e.Number())
	default:
		return fillNumber(f, value, fmt.Sprint(v))
	}
	return nil
}

func fillNumber(f protoreflect.FieldDescriptor, value *protoreflect.Value, text string) error {
	var err error
	switch f.Kind() {
	case protoreflect.DoubleKind:
		var n float64
		n, err = strconv.ParseFloat(text, 64)
		*value = protoreflect.ValueOfFloat64(n)
	case protoreflect.Int32Kind:
		var n int64
		n, err = strconv.ParseInt(text, 10, 32)
		*value = protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		*value = protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 32)
		*value = protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		*value = protoreflect.ValueOfUint64(n)
	default:
		err = fmt.Errorf("kind %v", f.Kind())
	}
	return err
}

// dump is the opposite of fill.
func dump(m protoreflect.Message) any {
	out := map[string]any{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		switch {
		case f.IsMap():
			items := map[string]any{}
			v.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				items[key.String()] = dumpValue(f.MapValue(), item)
				return true
			})
			out[name] = items
		case f.IsList():
			var items []any
			for i := range v.List().Len() {
				items = append(items, dumpValue(f, v.List().Get(i)))
			}
			out[name] = items
		default:
			out[name] = dumpValue(f, v)
		}
		return true
	})
	return out
}

func dumpValue(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return dump(v.Message())
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.BoolKind:
		return v.Bool()
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.EnumKind:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		return v.String()
	default:
		return json.Number(v.String())
	}
}
