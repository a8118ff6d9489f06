package simulation

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

var (
	seeds   = flag.String("seeds", "0-99", "the seeds to run: one, or from-to")
	tell    = flag.Uint64("tell", 1<<63, "print the story of this seed")
	day     = flag.Int("day", 6, "hours of TestDay")
	daySeed = flag.Uint64("day-seed", 1, "the seed of TestDay")
	steps   = flag.Int("steps", 25, "steps of each seed")
)

// TestSeeds runs one world for each seed.
func TestSeeds(t *testing.T) {
	from, to, err := parseSeeds(*seeds)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for seed := from; seed <= to; seed++ {
		fmt.Println("seed", seed)
		story := io.Discard // it is told even then, because that has a part in the order in which goroutines run
		if seed == *tell {
			story = os.Stdout
		}
		if failure := simulate(t, seed, dir, *steps, story); failure != "" {
			t.Errorf("seed %d: %s", seed, failure)
		}
	}
	fmt.Printf("simulated seeds %d to %d\n", from, to)
}

func parseSeeds(s string) (from, to uint64, err error) {
	first, last, ok := strings.Cut(s, "-")
	if !ok {
		last = first
	}
	if from, err = strconv.ParseUint(first, 10, 64); err != nil {
		return 0, 0, err
	}
	to, err = strconv.ParseUint(last, 10, 64)
	return from, to, err
}
