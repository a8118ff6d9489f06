package piwire

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// AppendClient appends the payload of a client message to dst. A message that
// breaks a rule of the protocol is refused with an [*Error] and dst returned
// unchanged.
func AppendClient(dst []byte, m ClientMessage) ([]byte, error) {
	e := encoder{b: dst}
	e.clientMessage(m)
	return e.finish(FromClient, len(dst))
}

// AppendServer appends the payload of a server message to dst. A message that
// breaks a rule of the protocol is refused with an [*Error] and dst returned
// unchanged. Nothing is allocated when dst has room.
func AppendServer(dst []byte, m ServerMessage) ([]byte, error) {
	e := encoder{b: dst}
	e.serverMessage(m)
	return e.finish(FromServer, len(dst))
}

// AppendClientFrame is [AppendClient] with the frame's header before the payload,
// which may have limit bytes.
func AppendClientFrame(dst []byte, m ClientMessage, limit uint32) ([]byte, error) {
	e := encoder{b: append(dst, 0, 0, 0, 0)}
	e.clientMessage(m)
	return e.finishFrame(FromClient, len(dst), limit)
}

// AppendServerFrame is [AppendServer] with the frame's header before the payload,
// which may have limit bytes.
func AppendServerFrame(dst []byte, m ServerMessage, limit uint32) ([]byte, error) {
	e := encoder{b: append(dst, 0, 0, 0, 0)}
	e.serverMessage(m)
	return e.finishFrame(FromServer, len(dst), limit)
}

// AppendItem appends the encoding of one transcript item to dst, as it stands
// inside a message.
func AppendItem(dst []byte, it Item) ([]byte, error) {
	e := encoder{b: dst}
	e.item(it, 0)
	return e.finish(FromServer, len(dst))
}

// encoder appends one message. What is wrong is noted and writing goes on, since
// the bytes are thrown away at the end; a broken schema outweighs text or numbers
// that cannot be written, as in pi's encoder.
type encoder struct {
	b       []byte
	invalid bool   // a rule of section 2 is broken
	fault   string // the first thing that section 1.3 cannot write
}

func (e *encoder) finish(dir Direction, start int) ([]byte, error) {
	switch {
	case e.invalid:
		return e.b[:start], newError(StageSchema, dir, "")
	case e.fault != "":
		return e.b[:start], newError(StageEncode, dir, e.fault)
	}
	return e.b, nil
}

func (e *encoder) finishFrame(dir Direction, start int, limit uint32) ([]byte, error) {
	size := len(e.b) - start - headerSize
	if size > int(limit) {
		e.refuse(overLimit("CBOR byte", limit))
	}
	b, err := e.finish(dir, start)
	if err == nil {
		binary.BigEndian.PutUint32(b[start:], uint32(size))
	}
	return b, err
}

// require notes a broken rule of section 2.
func (e *encoder) require(ok bool) {
	if !ok {
		e.invalid = true
	}
}

func (e *encoder) refuse(fault string) {
	if e.fault == "" {
		e.fault = fault
	}
}

func (e *encoder) object(entries int) { e.b = append(e.b, majorMap<<5|byte(entries)) }

func (e *encoder) array(n int) {
	if n > maxContainer {
		e.refuse(overLimit("CBOR array", maxContainer))
	}
	e.b = appendHead(e.b, majorArray, uint64(n))
}

// key writes the name of a field, which is a short constant.
func (e *encoder) key(name string) {
	e.b = append(append(e.b, majorText<<5|byte(len(name))), name...)
}

func (e *encoder) text(name, s string) {
	e.key(name)
	e.str(s)
}

func (e *encoder) str(s string) {
	if !utf8.ValidString(s) {
		e.refuse("CBOR text strings must contain valid Unicode scalar values")
	}
	if len(s) > MaxFrame {
		e.refuse(overLimit("CBOR byte", MaxFrame))
		return
	}
	e.b = appendText(e.b, s)
}

// full writes a string of at least one character.
func (e *encoder) full(name, s string) {
	e.require(s != "")
	e.text(name, s)
}

// optional writes a string whose absence is "".
func (e *encoder) optional(name, s string) {
	if s != "" {
		e.text(name, s)
	}
}

func (e *encoder) optionalText(name string, s *string) {
	if s != nil {
		e.text(name, *s)
	}
}

func (e *encoder) boolean(name string, v bool) {
	e.key(name)
	if v {
		e.b = append(e.b, simpleTrue)
	} else {
		e.b = append(e.b, simpleFalse)
	}
}

// count writes an integer from least to MaxCount.
func (e *encoder) count(name string, n, least int64) {
	e.key(name)
	e.require(n >= least)
	if n > MaxCount {
		e.refuse(faultUnsafe)
	}
	e.b = appendInt(e.b, n)
}

const faultUnsafe = "CBOR integers must be safe JavaScript integers"

// money writes a finite number that is not negative.
func (e *encoder) money(name string, f float64) {
	e.key(name)
	if f < 0 || math.IsNaN(f) || math.IsInf(f, 1) {
		e.invalid = true
		return
	}
	if f > MaxCount && math.Trunc(f) == f {
		e.refuse(faultUnsafe)
		return
	}
	e.b = appendNumber(e.b, f)
}

// value writes a free JSON value at depth.
func (e *encoder) value(name string, v Value, depth int) {
	e.key(name)
	if v.IsZero() {
		v = Null()
	}
	if depth+int(v.height) > maxDepth {
		e.refuse(faultDepth)
	}
	e.b = append(e.b, v.enc...)
}

// choice writes a word of a closed list.
func choice[T ~string](e *encoder, name string, list []T, v T) {
	e.require(oneOf(list, v))
	e.key(name)
	e.b = appendText(e.b, string(v))
}

// present counts the optional fields that are there.
func present(fields ...bool) (n int) {
	for _, there := range fields {
		if there {
			n++
		}
	}
	return n
}
