package cursor

import (
	"testing"
	"testing/synctest"
	"time"
)

// A late append of a run that is over does not hold up its request id.
func TestLateAppend(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(hubOptions{Drive: echo})
			defer h.Close()
			for _, what := range []string{"one", "two"} {
				r := read(h, "id")
				synctest.Wait()
				if s := send(h, "id", 0, runRequest(what)); s() != 200 {
					t.Fatal(what, s())
				}
				if s := send(h, "id", 1, execResult(1)); s() != 200 {
					t.Fatal(what, s())
				}
				<-r.over
				if texts, _, _, _ := r.got(t); len(texts) != 2 || texts[0] != what {
					t.Errorf("%q", texts)
				}
				time.Sleep(wait) // of the bubble's clock
				late := send(h, "id", 7, execResult(2))
				time.Sleep(12 * time.Second)
				if late() != 200 {
					t.Errorf("a late append: %d", late())
				}
			}
		})
	}
}
