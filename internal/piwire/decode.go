package piwire

import (
	"math"
	"math/bits"
)

// DecodeClient reads the payload of one frame from a client. Any failure is an
// [*Error]; the message shares no memory with payload.
func DecodeClient(payload []byte) (ClientMessage, error) {
	d := decoder{cborReader: cborReader{b: payload}}
	m := d.clientMessage()
	if err := d.finish(FromClient); err != nil {
		return nil, err
	}
	return m, nil
}

// DecodeServer reads the payload of one frame from a server. Any failure is an
// [*Error]; the message shares no memory with payload.
func DecodeServer(payload []byte) (ServerMessage, error) {
	d := decoder{cborReader: cborReader{b: payload}}
	m := d.serverMessage()
	if err := d.finish(FromServer); err != nil {
		return nil, err
	}
	return m, nil
}

// decoder reads one message straight into its structs. It only notes that
// something is wrong, not what: see finish.
type decoder struct {
	cborReader
	depth   int // of the item read next
	bad     bool
	scratch []byte // the last free value
}

// finish returns the error, if there is one. CBOR faults anywhere in the payload
// come before a broken schema, so a second pass looks for them.
func (d *decoder) finish(dir Direction) error {
	if !d.bad && d.pos == len(d.b) {
		return nil
	}
	if fault := checkPayload(d.b); fault != "" {
		return newError(StageFrame, dir, fault)
	}
	return newError(StageSchema, dir, "")
}

// expect reads a head of the given major type.
func (d *decoder) expect(major byte) (arg uint64) {
	got, arg, fault := d.head()
	if fault != "" || got != major {
		d.bad = true
		return 0
	}
	return arg
}

// fields describes a closed object: its keys in the order in which they are
// usually written, and which must be there.
type fields struct {
	names    []string
	required uint32 // bit i is names[i]
}

// closed makes the fields of an object. A leading ? marks an optional one.
func closed(names ...string) *fields {
	f := &fields{names: names}
	for i, name := range names {
		if name[0] == '?' {
			names[i] = name[1:]
		} else {
			f.required |= 1 << i
		}
	}
	return f
}

// object is a map that is being read.
type object struct {
	d      *decoder
	fields *fields
	left   uint64
	guess  int // where the next key probably is in fields
	seen   uint32
	key    string
}

// open begins a map with the given fields.
func (d *decoder) open(f *fields) object {
	n := d.expect(majorMap)
	if n > uint64(len(f.names)) || n < uint64(bits.OnesCount32(f.required)) {
		d.bad = true
	}
	d.depth++
	return object{d: d, fields: f, left: n}
}

// next reads the next key into o.key. It returns false at the end of the map,
// and at an unknown, repeated or missing key.
func (o *object) next() bool {
	d := o.d
	if d.bad {
		return false
	}
	if o.left == 0 {
		d.bad = o.fields.required&^o.seen != 0
		d.depth--
		return false
	}
	o.left--
	i := o.find(d.bytes())
	if d.bad || i < 0 || o.seen&(1<<i) != 0 {
		d.bad = true
		return false
	}
	o.seen |= 1 << i
	o.guess = i + 1
	o.key = o.fields.names[i]
	return true
}

func (o *object) find(key []byte) int {
	names := o.fields.names
	for i := o.guess; i < len(names); i++ {
		if names[i] == string(key) {
			return i
		}
	}
	for i := range names[:o.guess] {
		if names[i] == string(key) {
			return i
		}
	}
	return -1
}

// has reports whether the field of that name was there.
func (o *object) has(name string) bool {
	for i, n := range o.fields.names {
		if n == name {
			return o.seen&(1<<i) != 0
		}
	}
	return false
}

// peek returns the text under key in the map at the cursor, without moving it.
// It is how a union finds its variant wherever the key stands.
func (d *decoder) peek(key string) []byte {
	ahead := walker{cborReader: d.cborReader}
	major, n, fault := ahead.head()
	if fault != "" || major != majorMap {
		return nil
	}
	for range n {
		name, fault := ahead.key(d.depth + 1)
		if fault != "" {
			return nil
		}
		if string(name) == key {
			value := decoder{cborReader: ahead.cborReader}
			return value.bytes()
		}
		if _, _, fault := ahead.item(d.depth + 1); fault != "" {
			return nil
		}
	}
	return nil
}

// only reads an object of two fields: the one that peek has looked at, and one that
// read reads.
func only[T any](d *decoder, f *fields, read func(*decoder) T) (v T) {
	for o := d.open(f); o.next(); {
		if o.key == f.names[0] {
			d.known()
		} else {
			v = read(d)
		}
	}
	return v
}

// list reads an array whose elements read reads.
func list[T any](d *decoder, read func(*decoder) T) []T {
	n := d.expect(majorArray)
	if container(majorArray, n) != "" {
		d.bad = true
	}
	if d.bad || n == 0 {
		return nil
	}
	d.depth++
	out := make([]T, 0, min(n, 64)) // the declared length is not to be trusted
	for range n {
		v := read(d)
		if d.bad {
			return nil
		}
		out = append(out, v)
	}
	d.depth--
	return out
}

// bytes reads a text, which aliases the payload.
func (d *decoder) bytes() []byte {
	s, fault := d.str(majorText, d.expect(majorText))
	if fault != "" {
		d.bad = true
	}
	if d.bad {
		return nil
	}
	return s
}

func (d *decoder) text() string { return string(d.bytes()) }

// full reads a text of at least one character.
func (d *decoder) full() string {
	s := d.text()
	d.bad = d.bad || s == ""
	return s
}

func (d *decoder) optionalText() *string {
	s := d.text()
	return &s
}

// known passes the word by which peek has found the variant. It is the same one,
// since a repeated key is refused.
func (d *decoder) known() { d.bytes() }

// version reads the literal 1.
func (d *decoder) version() {
	if d.count(1) != ProtocolVersion {
		d.bad = true
	}
}

// word reads a text of a closed list.
func word[T ~string](d *decoder, list []T) T {
	v, ok := lookup(list, d.bytes())
	d.bad = d.bad || !ok
	return v
}

func (d *decoder) boolean() bool {
	first := byte(d.expect(majorSimple))
	d.bad = d.bad || first != simpleTrue && first != simpleFalse
	return first == simpleTrue
}

// number reads an integer or a float.
func (d *decoder) number() float64 {
	major, arg, fault := d.head()
	var f float64
	switch {
	case fault != "":
	case major == majorUint:
		return float64(arg)
	case major == majorNegative && arg < MaxCount:
		return -1 - float64(arg)
	case major == majorSimple && arg == simpleFloat:
		if f, fault = d.float(); fault == "" {
			return f
		}
	}
	d.bad = true
	return 0
}

// count reads an integer of at least least. A float without a fraction is one.
func (d *decoder) count(least int64) int64 {
	f := d.number()
	d.bad = d.bad || math.Trunc(f) != f || f < float64(least)
	return int64(f)
}

func (d *decoder) money() float64 {
	f := d.number()
	d.bad = d.bad || f < 0
	return f
}

// value reads a free JSON value.
func (d *decoder) value() Value {
	w := walker{cborReader: d.cborReader, copying: true, out: d.scratch[:0]}
	_, height, fault := w.item(d.depth)
	d.pos = w.pos
	d.scratch = w.out
	if fault != "" || w.bytes {
		d.bad = true
		return Value{}
	}
	return Value{enc: string(w.out), height: uint8(height)}
}
