package main

import (
	"cmp"
	"slices"
	"time"
)

// quantile returns the value below which the part q of the values lies (0 for the least, 1
// for the greatest), by the nearest rank; the zero value when there are none.
func quantile[T cmp.Ordered](values []T, q float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// median returns the middle of the values.
func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// ms is a duration as a number of milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// mb is a number of bytes as a number of MB.
func mb(n int64) float64 { return float64(n) / 1e6 }
