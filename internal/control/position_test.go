package control

import (
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

// FuzzLastEventID reads whatever a client may send: what is taken is what a server has written.
func FuzzLastEventID(f *testing.F) {
	for _, s := range []string{"", "1-0", "1-5", "18446744073709551615-9223372036854775807", "0-1", "1-", "-1", "1-+5", "1-05", "1-5 ", "1--5", "1-9223372036854775808", "１-5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePosition(s)
		if err != nil {
			if statusOf(err) != 400 || session.AsError(err).Kind != session.Invalid {
				t.Errorf("%q is refused with %v", s, err)
			}
			return
		}
		if got := formatPosition(*p); got != s || p.Epoch == 0 {
			t.Errorf("%q became %+v, which is %q", s, p, got)
		}
	})
}
