package eventlog

import (
	"encoding/json"
	"math"
	"reflect"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/session"
)

// drawEvent returns an event of any type with any content.
func drawEvent(t *rapid.T) session.Event {
	v := reflect.New(reflect.TypeOf(rapid.SampledFrom(sampleEvents).Draw(t, "type"))).Elem()
	fill(t, v)
	return v.Interface().(session.Event)
}

func drawItem(t *rapid.T) session.Item {
	v := reflect.New(reflect.TypeOf(rapid.SampledFrom(sampleItems).Draw(t, "type")).Elem())
	fill(t, v.Elem())
	return v.Interface().(session.Item)
}

func drawValue[T any](t *rapid.T) T {
	var value T
	fill(t, reflect.ValueOf(&value).Elem())
	return value
}

// enums are the numbers of values of the types that have few.
var enums = map[reflect.Type]uint8{
	reflect.TypeFor[session.Status]():     uint8(session.Aborted) + 1,
	reflect.TypeFor[session.StopReason](): uint8(session.StopRefusal) + 1,
	reflect.TypeFor[session.Host]():       uint8(session.HostClient) + 1,
	reflect.TypeFor[session.Outcome]():    uint8(session.RunFailed) + 1,
}

// fill sets v and all in it to values that a session may have. Empty slices are nil, as the
// decoder makes them.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.String:
		v.SetString(drawText(t))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int: // indexes and passes
		v.SetInt(int64(rapid.Uint32().Draw(t, "int")))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int64"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8Range(0, enums[v.Type()]-1).Draw(t, "enum")))
	case reflect.Uint32:
		v.SetUint(uint64(rapid.Uint32().Draw(t, "uint32")))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint64"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[session.Item]() {
			v.Set(reflect.ValueOf(drawItem(t)))
			return
		}
		block := reflect.New(reflect.TypeOf(rapid.SampledFrom(sampleBlocks).Draw(t, "block"))).Elem()
		fill(t, block)
		v.Set(block)
	case reflect.Slice:
		fillSlice(t, v)
	case reflect.Map: // of what front ends remember
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			value := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "value")
			v.SetMapIndex(reflect.ValueOf(drawText(t)), reflect.ValueOf(value))
		}
	default:
		t.Fatalf("no generator for %s", v.Type())
	}
}

func fillSlice(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() || v.Type() == reflect.TypeFor[[]byte]() {
		if text := drawText(t); text != "" {
			v.SetBytes([]byte(text))
		}
		return
	}
	n := rapid.IntRange(0, 3).Draw(t, "length")
	for range n {
		element := reflect.New(v.Type().Elem()).Elem()
		fill(t, element)
		v.Set(reflect.Append(v, element))
	}
}

// drawText returns text, and sometimes bytes that are none.
func drawText(t *rapid.T) string {
	if rapid.Bool().Draw(t, "bytes") {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "text"))
	}
	return rapid.String().Draw(t, "text")
}
