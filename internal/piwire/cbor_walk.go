package piwire

import "bytes"

// walker goes over one item of any form. It is the one complete statement of
// section 1.2: it validates payloads, skips items, and copies free JSON values
// into their canonical form.
type walker struct {
	cborReader
	copying bool
	out     []byte // the canonical form, when copying
	bytes   bool   // a byte string was met, which no message accepts
}

// checkPayload returns what is wrong with payload as exactly one CBOR item.
func checkPayload(payload []byte) string {
	w := walker{cborReader: cborReader{b: payload}}
	if _, _, fault := w.item(0); fault != "" {
		return fault
	}
	if w.pos < len(payload) {
		return faultTrailing
	}
	return ""
}

// item reads the item at depth and everything in it. It returns its major type
// and height: how many levels lie below it.
func (w *walker) item(depth int) (major byte, height int, fault string) {
	if depth > maxDepth {
		return 0, 0, faultDepth
	}
	major, arg, fault := w.head()
	if fault != "" {
		return 0, 0, fault
	}
	switch major {
	case majorUint:
		w.emitHead(major, arg)
	case majorNegative:
		if arg >= MaxCount {
			return 0, 0, faultInteger
		}
		w.emitHead(major, arg)
	case majorBytes, majorText:
		fault = w.copyString(major, arg)
	case majorArray:
		height, fault = w.array(depth, arg)
	case majorMap:
		height, fault = w.object(depth, arg)
	default:
		fault = w.simple(byte(arg))
	}
	return major, height, fault
}

func (w *walker) emitHead(major byte, arg uint64) {
	if w.copying {
		w.out = appendHead(w.out, major, arg)
	}
}

func (w *walker) copyString(major byte, n uint64) string {
	s, fault := w.str(major, n)
	if fault != "" {
		return fault
	}
	w.bytes = w.bytes || major == majorBytes
	if w.copying {
		w.out = append(appendHead(w.out, major, n), s...)
	}
	return ""
}

func (w *walker) simple(first byte) string {
	if first != simpleFloat {
		if w.copying {
			w.out = append(w.out, first)
		}
		return ""
	}
	f, fault := w.float()
	if fault == "" && w.copying {
		w.out = appendNumber(w.out, f)
	}
	return fault
}

func (w *walker) array(depth int, n uint64) (height int, fault string) {
	if fault := container(majorArray, n); fault != "" {
		return 0, fault
	}
	w.emitHead(majorArray, n)
	for range n {
		_, h, fault := w.item(depth + 1)
		if fault != "" {
			return 0, fault
		}
		height = max(height, h+1)
	}
	return height, ""
}

func (w *walker) object(depth int, n uint64) (height int, fault string) {
	if fault := container(majorMap, n); fault != "" {
		return 0, fault
	}
	w.emitHead(majorMap, n)
	var keys keySet
	for range n {
		key, fault := w.key(depth + 1)
		if fault != "" {
			return 0, fault
		}
		if !keys.add(key) {
			return 0, "CBOR map contains a duplicate key"
		}
		_, h, fault := w.item(depth + 1)
		if fault != "" {
			return 0, fault
		}
		height = max(height, h+1)
	}
	return height, ""
}

// key reads a map key. One of another type is read to its end first, because its
// own faults come before the fault of not being text.
func (w *walker) key(depth int) ([]byte, string) {
	start := w.pos
	major, _, fault := w.item(depth)
	if fault != "" {
		return nil, fault
	}
	if major != majorText {
		return nil, "CBOR map keys must be strings"
	}
	again := cborReader{b: w.b, pos: start}
	_, n, _ := again.head()
	return w.b[w.pos-int(n) : w.pos], ""
}

// smallMap is the number of keys up to which comparing beats hashing.
const smallMap = 12

// keySet finds duplicate keys. The keys alias the payload.
type keySet struct {
	few  [smallMap][]byte
	n    int
	many map[string]struct{}
}

// add reports whether key is new.
func (s *keySet) add(key []byte) bool {
	if s.n < smallMap {
		for _, k := range s.few[:s.n] {
			if bytes.Equal(k, key) {
				return false
			}
		}
		s.few[s.n] = key
		s.n++
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 4*smallMap)
		for _, k := range s.few {
			s.many[string(k)] = struct{}{}
		}
	}
	if _, found := s.many[string(key)]; found {
		return false
	}
	s.many[string(key)] = struct{}{}
	return true
}
