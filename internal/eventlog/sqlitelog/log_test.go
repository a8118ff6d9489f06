package sqlitelog_test

import (
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/eventlogtest"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

func open(t testing.TB, dir string) *sqlitelog.Log {
	t.Helper()
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func TestContract(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Log { return open(t, t.TempDir()) })
	eventlogtest.RunDurable(t, func(t *testing.T, dir string) eventlog.Log { return open(t, dir) })
}
