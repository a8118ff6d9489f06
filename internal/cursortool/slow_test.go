package cursortool

import (
	"strings"
	"testing"
	"time"
)

// Arguments and files that are made to be slow are not: a card is made for each piece that a model
// writes, and all of a session waits for it.
func TestNothingIsQuadratic(t *testing.T) {
	start := time.Now()
	for _, in := range []string{
		`{"contents":"` + strings.Repeat(`x\n`, 300_000),
		`{"a":[` + strings.Repeat("1,", 300_000),
		`{` + strings.Repeat(`"a":1,`, 100_000),
		`{"a"` + strings.Repeat(" ", 500_000) + `:"x`,
		strings.Repeat(`{"a":[`, 30) + strings.Repeat("[],", 100_000),
	} {
		Card("Write", in)
	}
	same := strings.Repeat("a\n", 500_000)
	if _, _, err := patch(same, strings.Repeat(" a\n", 5000)+"b", "c", false); err == nil {
		t.Error("what is not there was replaced")
	}
	newDiff(same, strings.Repeat("a\nb\n", 200_000))
	// Quadratic, it takes a minute or more; as it is, less than a second.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
