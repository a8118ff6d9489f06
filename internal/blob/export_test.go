package blob

import "testing"

// OnSync has f called with each directory before it is synced, as long as the test runs.
func OnSync(t *testing.T, f func(path string)) {
	t.Helper()
	sync := syncDir
	t.Cleanup(func() { syncDir = sync })
	syncDir = func(path string) error {
		f(path)
		return sync(path)
	}
}
