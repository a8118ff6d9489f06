package sqlitelog_test

import "testing"

// Every commit is synced before it is acknowledged, and the file is never mapped, so that a
// disk error is an error and not a fault.
func TestCommitsAreSynced(t *testing.T) {
	log := open(t, t.TempDir())
	const full = 2
	for query, want := range map[string]int{
		`SELECT synchronous FROM pragma_synchronous`:                          full,
		`SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'`: 1,
		`PRAGMA mmap_size`: 0,
		`SELECT timeout > 0 FROM pragma_busy_timeout`: 1,
		`PRAGMA wal_autocheckpoint`:                   0,
	} {
		if got, err := log.Count(query); got != want || err != nil {
			t.Errorf("%s: got %d, %v; want %d", query, got, err, want)
		}
	}
}
